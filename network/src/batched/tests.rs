//! Batched searches against a plain loop that evaluates each position alone.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use games::{Game, MoverValue, RowLayout, connect_four::ConnectFour};
use proptest::prelude::*;
use search::{ApplyError, Decision, Evaluation, GameKey, Search, Settings};

use super::*;
use crate::{
    cache::{Cache, VersionId},
    client::{Description, Network, NetworkError, PositionBatch, Predictions},
};

/// Evaluates by hashes of the row: any fixed function of the position will do.
#[derive(Debug)]
struct HashNetwork(Description);

impl HashNetwork {
    fn new() -> Self {
        Self(Description {
            version: "1".into(),
            step: 1,
            layout: layout(),
            provider: "test".into(),
        })
    }
}

fn layout() -> RowLayout {
    ConnectFour::layout(Default::default())
}

fn predict(row: &[u32], legal: &[u32], predictions: &mut Predictions) {
    let number = |salt: u32| {
        let mut hasher = DefaultHasher::new();
        (row, salt).hash(&mut hasher);
        (hasher.finish() >> 40) as f32 / (1 << 24) as f32
    };
    let weights: Vec<f32> = legal.iter().map(|&action| 0.05 + number(action)).collect();
    let sum: f32 = weights.iter().sum();
    predictions
        .priors
        .extend(weights.iter().map(|weight| weight / sum));
    predictions.values.push(2.0 * number(u32::MAX) - 1.0);
}

impl Network for HashNetwork {
    fn description(&self) -> &Description {
        &self.0
    }

    fn evaluate(&self, positions: &PositionBatch, predictions: &mut Predictions) -> Result<(), NetworkError> {
        each(positions).for_each(|(row, legal)| predict(row, legal, predictions));
        Ok(())
    }
}

fn searches(count: usize, leaves: u32) -> Vec<Search<ConnectFour>> {
    let settings = Settings {
        visits: 60,
        leaves,
        ..Settings::default()
    };
    let start = ConnectFour::start(&Default::default(), None).unwrap();
    (0..count)
        .map(|number| {
            // Every third search has the draws of an earlier one, so that equal leaves are in flight together.
            let game = (number / 3) as u64;
            Search::new(start, settings.clone(), GameKey { run_seed: 7, game })
        })
        .collect()
}

fn each(batch: &PositionBatch) -> impl Iterator<Item = (&[u32], &[u32])> {
    (0..batch.len()).map(|position| batch.get(position))
}

/// Returns the decisions of searches whose leaves are evaluated one by one.
fn plain(mut searches: Vec<Search<ConnectFour>>) -> Vec<Decision> {
    for search in &mut searches {
        while !search.is_decided() {
            let mut batch = PositionBatch::default();
            let mut leaves = Vec::new();
            search.gather(|leaf| {
                batch.push(&leaf, Default::default());
                leaves.push(leaf.id);
            });
            for (leaf, (row, legal)) in leaves.into_iter().zip(each(&batch)) {
                let mut predictions = Predictions::default();
                predict(row, legal, &mut predictions);
                let evaluation = Evaluation {
                    priors: &predictions.priors,
                    value: MoverValue::new(predictions.values[0]),
                };
                search.apply(leaf, evaluation).unwrap();
            }
        }
    }
    searches.iter().map(Search::decision).collect()
}

fn text(decisions: &[Decision]) -> Vec<String> {
    decisions.iter().map(|decision| format!("{decision:?}")).collect()
}

#[derive(Debug)]
struct TestError;

impl From<NetworkError> for TestError {
    fn from(_: NetworkError) -> Self {
        Self
    }
}

impl From<ApplyError> for TestError {
    fn from(_: ApplyError) -> Self {
        Self
    }
}

#[test]
fn batched_evaluator_decides_as_a_plain_loop_does() {
    for cache in [None, Cache::new(1 << 20).map(Arc::new)] {
        let has_cache = cache.is_some();
        let network: Arc<dyn Network> = Arc::new(HashNetwork::new());
        let source = EvaluationSource::Network { network, cache };
        let mut evaluator = BatchedEvaluator::<ConnectFour>::new(source, Default::default());
        let mut batched = searches(9, 4);
        while !batched.iter().all(Search::is_decided) {
            for (slot, search) in batched.iter_mut().enumerate() {
                while !search.is_decided() && !search.is_waiting() {
                    search.gather(|leaf| evaluator.add(slot, &leaf));
                    evaluator
                        .take_known(|_, leaf, evaluation| search.apply(leaf, evaluation))
                        .unwrap();
                }
            }
            evaluator
                .flush(|slot, leaf, evaluation| {
                    batched[slot].apply(leaf, evaluation).map_err(TestError::from)
                })
                .unwrap();
        }
        let decisions: Vec<Decision> = batched.iter().map(Search::decision).collect();
        assert_eq!(text(&decisions), text(&plain(searches(9, 4))));
        let counts = evaluator.counts();
        assert!(
            counts.duplicates > 0 && counts.fresh > counts.batches,
            "{counts:?}"
        );
        assert_eq!(counts.cached > 0, has_cache, "{counts:?}");
    }
}

#[test]
fn uniform_evaluations_need_no_network() {
    let mut evaluator = BatchedEvaluator::<ConnectFour>::new(EvaluationSource::Uniform, Default::default());
    let mut search = searches(1, 4).remove(0);
    while !search.is_decided() {
        search.gather(|leaf| evaluator.add(0, &leaf));
        evaluator
            .take_known(|_, leaf, evaluation| search.apply(leaf, evaluation))
            .unwrap();
        assert!(!search.is_waiting());
    }
    assert_eq!(evaluator.counts(), EvaluationCounts::default());
}

#[test]
fn a_failed_batch_is_forgotten_and_the_searches_can_abandon_it() {
    #[derive(Debug)]
    struct Failing(Description);
    impl Network for Failing {
        fn description(&self) -> &Description {
            &self.0
        }
        fn evaluate(&self, _: &PositionBatch, _: &mut Predictions) -> Result<(), NetworkError> {
            Err(NetworkError::Run("no device".into()))
        }
    }
    let network: Arc<dyn Network> = Arc::new(Failing(HashNetwork::new().0));
    let source = EvaluationSource::Network { network, cache: None };
    let mut evaluator = BatchedEvaluator::<ConnectFour>::new(source, Default::default());
    let mut search = searches(1, 4).remove(0);
    search.gather(|leaf| evaluator.add(0, &leaf));
    assert_eq!(evaluator.waiting(), 1);
    let flushed = evaluator.flush(|_, _, _| -> Result<(), TestError> { panic!("nothing was evaluated") });
    assert!(flushed.is_err());
    assert_eq!(evaluator.waiting(), 0);
    search.abandon();
    search.gather(|leaf| evaluator.add(0, &leaf));
    assert_eq!(
        evaluator.waiting(),
        1,
        "the position is not taken for one in flight"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Several small batches in flight, completed in a random order.
    #[test]
    fn order_of_completion_changes_no_decision(
        batch_size in 1usize..7,
        in_flight in 1usize..5,
        leaves in 1u32..6,
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..50),
    ) {
        let cache = Cache::new(1 << 20).map(Arc::new);
        let mut batcher = Batcher::new(cache, batch_size);
        let mut batched = searches(6, leaves);
        let mut order = order.iter().cycle();
        // Answers that are computed and not passed on yet.
        let mut answers: Vec<(u64, Predictions)> = Vec::new();
        while !batched.iter().all(Search::is_decided) {
            let mut all_wait = true;
            for (slot, search) in batched.iter_mut().enumerate() {
                if !search.is_decided() && !search.is_waiting() {
                    search.gather(|leaf| {
                        batcher.add(slot, &leaf, Default::default(), Some(VersionId(3)));
                    });
                    batcher
                        .take_known(|waiter, evaluation, _| {
                            assert_eq!(waiter.slot, slot);
                            search.apply(waiter.leaf, evaluation)
                        })
                        .unwrap();
                    all_wait &= search.is_waiting();
                }
            }
            while answers.len() < in_flight
                && let Some((id, positions)) = batcher.next_batch(all_wait)
            {
                let mut predictions = Predictions::default();
                each(positions).for_each(|(row, legal)| predict(row, legal, &mut predictions));
                answers.push((id, predictions));
            }
            prop_assert_eq!(batcher.in_flight(), answers.len());
            if !answers.is_empty() {
                let at = order.next().unwrap().index(answers.len());
                let (id, predictions) = answers.swap_remove(at);
                batcher
                    .complete(id, VersionId(3), &predictions, |waiter, evaluation| {
                        batched[waiter.slot].apply(waiter.leaf, evaluation)
                    })
                    .unwrap();
            }
        }
        let decisions: Vec<Decision> = batched.iter().map(Search::decision).collect();
        prop_assert_eq!(text(&decisions), text(&plain(searches(6, leaves))));
    }
}
