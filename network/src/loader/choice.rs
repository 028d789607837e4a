//! Chooses the fastest provider that agrees with f32.

use std::time::{Duration, Instant};

use config::Provider;
use games::RowLayout;

use crate::{
    batch::{RunError, Runner},
    canary::{self, CanaryOutput},
    loader::{
        LoadError, Loader,
        kept::Conditions,
        runner::{Candidate, Task, varies},
    },
};

/// Of the providers that take at most a twentieth more time than the fastest one, the one nearest to f32 goes first.
const GAIN: u32 = 20;
/// Number of rounds of the measurement. The best round counts, so that other work on the machine has little effect.
const ROUNDS: usize = 3;
/// Shortest duration of one round.
const ROUND: Duration = Duration::from_millis(60);

impl Loader {
    /// Chooses the fastest provider that agrees with f32. The first call measures all providers, unless their order is kept from an
    /// earlier start; later calls use that order.
    pub(super) fn choose(
        &self,
        task: &Task<'_>,
        plain: Box<dyn Runner>,
        truth: &CanaryOutput,
    ) -> Result<(Provider, Box<dyn Runner>), LoadError> {
        let mut ranking = self.ranking.lock().clone();
        // The order for models of varying shapes differs from that of other models, so it is measured for each model.
        if ranking.is_empty() || varies(&task.file.layout) {
            let conditions = self.conditions(task.digest);
            ranking = self.kept_ranking(&conditions);
            if ranking.is_empty() {
                return self.measure_and_choose(task, plain, truth, conditions);
            }
            tracing::info!(fastest = %ranking[0], "the order of the providers is kept from an earlier start");
            self.rank(task, &ranking);
        }
        for provider in ranking
            .into_iter()
            .take_while(|&provider| provider != Provider::Cpu)
        {
            match self
                .candidate(provider, task, truth)
                .and_then(|candidate| candidate.checked(&self.settings))
            {
                Ok(candidate) => return Ok((provider, candidate.runner)),
                Err(error) => {
                    tracing::warn!(version = task.file.version, %provider, error = %service::chain(&error), "trying the next provider")
                }
            }
        }
        Ok((Provider::Cpu, plain))
    }

    fn measure_and_choose(
        &self,
        task: &Task<'_>,
        plain: Box<dyn Runner>,
        truth: &CanaryOutput,
        conditions: Conditions,
    ) -> Result<(Provider, Box<dyn Runner>), LoadError> {
        let mut candidates = vec![Candidate::plain(plain)];
        // TensorRT builds engines for minutes, so it must be named.
        let is_measured = |provider: &Provider| !matches!(provider, Provider::Cpu | Provider::Tensorrt);
        for provider in Provider::each().filter(is_measured) {
            let tried = self.try_out(provider);
            match tried.and_then(|()| self.candidate(provider, task, truth)) {
                Ok(candidate) => candidates.push(candidate),
                Err(error) => {
                    tracing::info!(%provider, error = %service::chain(&error), "provider not measured")
                }
            }
        }
        if candidates.len() > 1 {
            self.measure(&mut candidates, &task.file.layout)?;
        }
        let candidates = ordered(candidates);
        let ranking: Vec<Provider> = candidates.iter().map(|candidate| candidate.provider).collect();
        self.rank(task, &ranking);
        self.keep_ranking(conditions, ranking);
        // The plain provider is among them and always agrees.
        let mut refused = None;
        for candidate in candidates {
            match candidate.checked(&self.settings) {
                Ok(chosen) => {
                    tracing::info!(provider = %chosen.provider, "provider chosen");
                    return Ok((chosen.provider, chosen.runner));
                }
                Err(error) => {
                    tracing::warn!(version = task.file.version, error = %service::chain(&error), "trying the next provider");
                    refused = Some(error);
                }
            }
        }
        Err(refused.unwrap_or_else(|| RunError("no provider was measured".into()).into()))
    }

    /// Sets the order of the providers for other models whose shapes do not vary.
    fn rank(&self, task: &Task<'_>, ranking: &[Provider]) {
        if !varies(&task.file.layout) {
            *self.ranking.lock() = ranking.to_vec();
        }
    }

    /// Times batches of the largest size, all candidates in turn, and logs the results.
    fn measure(&self, candidates: &mut [Candidate], layout: &RowLayout) -> Result<(), RunError> {
        let size = self.buckets.largest();
        let batch = canary::batch(layout, size);
        for candidate in candidates.iter_mut() {
            candidate.runner.run(batch.clone())?;
        }
        for _ in 0..ROUNDS {
            for candidate in candidates.iter_mut() {
                let (began, mut runs) = (Instant::now(), 0);
                while runs == 0 || began.elapsed() < ROUND {
                    candidate.runner.run(batch.clone())?;
                    runs += 1;
                }
                candidate.time = candidate.time.min(began.elapsed() / runs);
            }
        }
        for candidate in candidates {
            let rate = size as f64 / candidate.time.as_secs_f64();
            tracing::info!(
                provider = %candidate.provider,
                positions_per_second = rate.round() as u64,
                batch = size,
                prior_distance = format_args!("{:.5}", candidate.distance.prior),
                value_distance = format_args!("{:.5}", candidate.distance.value),
                "provider measured"
            );
        }
        Ok(())
    }
}

/// Orders the candidates: the fastest first, but of those that are about as fast as the fastest, the one nearest to f32.
fn ordered(mut left: Vec<Candidate>) -> Vec<Candidate> {
    left.sort_by_key(|candidate| candidate.time);
    let mut ordered = Vec::with_capacity(left.len());
    while let Some(fastest) = left.first() {
        let limit = fastest.time.saturating_add(fastest.time / GAIN);
        let as_fast = left.iter().take_while(|candidate| candidate.time <= limit);
        let distance = |candidate: &Candidate| candidate.distance.prior.max(candidate.distance.value);
        let nearest = as_fast
            .enumerate()
            .min_by(|(_, one), (_, other)| distance(one).total_cmp(&distance(other)));
        ordered.push(left.remove(nearest.map_or(0, |(place, _)| place)));
    }
    ordered
}
