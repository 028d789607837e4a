//! Tests on the CPU of the GPU's code paths: batches bound to memory, legal logits picked by the model, half precision.

use std::sync::Arc;

use crate::{
    batch,
    common::{chess, file, othello, small, tower},
    largest_difference, load, load_file, model_file, run,
};
use config::Provider;
use games::RowLayout;
use inference_server::{
    batching::{
        batcher::{Batcher, BatchingPolicy},
        executor::Executor,
        job::{Evaluation, Job, ReplyTo},
        reply,
    },
    intake::request::{Caller, ClientId, EvaluationRequest, Wants},
    metrics::Metrics,
    models::table::ResolvedModel,
};
use network::{loader::LoadError, model::Model, provider::ProviderSettings};
use onnx::{Input, TowerShape, TowerWeights};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

fn load_with(settings: ProviderSettings, file: &[u8], layout: &RowLayout) -> Result<Model, LoadError> {
    load_file(Provider::Cpu, settings, &model_file(file, layout))
}

fn bound() -> ProviderSettings {
    ProviderSettings {
        bind_always: true,
        ..ProviderSettings::from(1)
    }
}

/// Returns different legal actions for each of `positions` positions, few for some of them.
fn legal(layout: &RowLayout, positions: usize) -> Vec<Vec<u32>> {
    (0..positions as u32)
        .map(|position| {
            let step = 1 + position % 3;
            let first = position % layout.actions;
            (first..layout.actions).step_by(step as usize).take(40).collect()
        })
        .collect()
}

#[test]
fn bound_batches_give_equal_outputs_and_only_legal_logits_if_requested() {
    for layout in [small(), othello(), chess()] {
        for input in [Input::Rows, Input::Planes] {
            let file = file(&tower(&layout, 3), &layout, input);
            let plain = load(Provider::Cpu, &file, &layout).unwrap();
            let bound = load_with(bound(), &file, &layout).unwrap();
            assert!(bound.picks_legal && !plain.picks_legal);
            let rows = onnx::random::rows(&layout, 7, 0.8, 4);
            let (logits, values) = run(&plain, &rows);
            // All logits, if a request wants them.
            let whole = run(&bound, &rows);
            assert!(largest_difference(&whole.0, &logits) < 1e-6);
            assert!(largest_difference(&whole.1, &values) < 1e-6);

            let legal = legal(&layout, 7);
            let width = 64.min(layout.actions as usize);
            let mut padded = vec![0; 7 * width];
            for (row, own) in padded.chunks_mut(width).zip(&legal) {
                for (place, &action) in row.iter_mut().zip(own) {
                    *place = action as i32;
                }
            }
            let outputs = bound
                .run(batch(&layout, &rows).with_legal(padded, width))
                .unwrap();
            assert!(outputs.logits().is_empty());
            assert!(largest_difference(outputs.values(), &values) < 1e-6);
            let (picked, found_width) = outputs.legal_logits().unwrap();
            assert_eq!((picked.len(), found_width), (7 * width, width));
            for (position, own) in legal.iter().enumerate() {
                for (place, &action) in own.iter().enumerate() {
                    let expected = logits[position * layout.actions as usize + action as usize];
                    assert!((picked[position * width + place] - expected).abs() < 1e-6);
                }
            }
        }
    }
}

#[test]
fn bound_batches_take_the_session_of_their_size() {
    let layout = chess();
    let file = file(&tower(&layout, 3), &layout, Input::Rows);
    let plain = load(Provider::Cpu, &file, &layout).unwrap();
    // This provider has sessions of their own for batches of 32 and 64.
    let bound = load_file(Provider::OpenvinoF32, bound(), &model_file(&file, &layout)).unwrap();
    for size in [64, 7, 32] {
        let rows = onnx::random::rows(&layout, size, 0.8, 4);
        let (expected, found) = (run(&plain, &rows), run(&bound, &rows));
        assert!(largest_difference(&found.0, &expected.0) < 1e-4);
        assert!(largest_difference(&found.1, &expected.1) < 1e-4);
        let actions: Vec<i32> = (0..size).flat_map(|row| [row as i32, 3]).collect();
        let batch = batch(&layout, &rows).with_legal(actions, 2);
        let outputs = bound.run(batch).unwrap();
        let (picked, width) = outputs.legal_logits().unwrap();
        assert_eq!((picked.len(), width), (2 * size, 2));
        for (row, picked) in picked.chunks(2).enumerate() {
            let logits = &expected.0[row * layout.actions as usize..];
            assert!((picked[0] - logits[row]).abs() < 1e-4 && (picked[1] - logits[3]).abs() < 1e-4);
        }
    }
}

/// Answers requests through queue, batcher, executor and reply.
async fn answers(model: Model, asked: &[EvaluationRequest]) -> Vec<Evaluation> {
    let metrics = Arc::new(Metrics::new());
    let policy = BatchingPolicy {
        max_batch: 64,
        max_queue: 1000,
    };
    let (batcher, model) = (Batcher::new(policy, metrics.clone()), Arc::new(model));
    let mut waiting = Vec::new();
    for asked in asked {
        let (sender, answer) = mpsc::unbounded_channel();
        let named = ResolvedModel {
            model: model.clone(),
            slot: None,
        };
        let caller = Caller {
            client: ClientId(1),
            cause: None,
            peer: None,
        };
        let job = Job::new(named, asked.clone(), caller, ReplyTo::new(0, sender, None));
        batcher.push(Arc::new(job)).unwrap();
        waiting.push(answer);
    }
    let executor = Executor::start(&batcher, &metrics, 1).unwrap();
    tokio::spawn(async move { batcher.run(executor.batches, CancellationToken::new()).await });
    tokio::spawn(async move { reply::run(executor.finished, None, &metrics).await });
    let mut answers = Vec::new();
    for mut answer in waiting {
        answers.push(answer.recv().await.unwrap().answer.unwrap());
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_do_not_depend_on_where_legal_logits_are_picked() {
    let layout = chess();
    let file = file(&tower(&layout, 3), &layout, Input::Rows);
    let asked = |seed, positions, wants| {
        let legal = match wants {
            Wants::Logits => vec![Vec::new(); positions],
            Wants::Priors => legal(&layout, positions),
        };
        EvaluationRequest {
            indices: onnx::random::rows(&layout, positions, 0.8, seed),
            legal_counts: legal.iter().map(|own| own.len() as u32).collect(),
            legal_actions: legal.concat(),
            wants,
            ..EvaluationRequest::default()
        }
    };
    let legal_only = [
        asked(1, 3, Wants::Priors),
        asked(2, 1, Wants::Priors),
        asked(3, 9, Wants::Priors),
    ];
    // One request of the batch wants all logits, so the model returns all.
    let mixed = [asked(1, 3, Wants::Priors), asked(2, 2, Wants::Logits)];
    for requests in [&legal_only[..], &mixed] {
        let plain = answers(load(Provider::Cpu, &file, &layout).unwrap(), requests).await;
        let bound = answers(load_with(bound(), &file, &layout).unwrap(), requests).await;
        assert_eq!(plain, bound);
        assert_eq!(plain.len(), requests.len());
    }
}

#[test]
fn half_precision_is_near_f32_and_differs_from_it() {
    for (layout, input) in [
        (small(), Input::Rows),
        (chess(), Input::Rows),
        (othello(), Input::Planes),
    ] {
        let shape = TowerShape {
            pooling: 8,
            outcomes: layout == chess(),
            ..TowerShape::new(&layout, 4, 32)
        };
        let file = file(&TowerWeights::random(&shape, 7), &layout, input);
        let settings = ProviderSettings {
            fp16: true,
            ..bound()
        };
        let rows = onnx::random::rows(&layout, 32, 0.8, 9);
        let truth = run(&load(Provider::Cpu, &file, &layout).unwrap(), &rows);
        // Loading compares the model with f32 and refuses it if the difference is too large.
        let model = load_with(settings, &file, &layout).unwrap();
        assert_eq!(model.info.provider, "cpu-fp16");
        let half = run(&model, &rows);
        let spread = truth
            .0
            .iter()
            .fold(0.0_f32, |spread, logit| spread.max(logit.abs()));
        let difference = largest_difference(&truth.0, &half.0);
        println!("{}: {difference} of {spread}", layout.game);
        assert!(
            difference > 0.0 && difference < 0.01 * spread.max(1.0),
            "{difference} of {spread}"
        );
        assert!(largest_difference(&truth.1, &half.1) < 0.01);
    }
}

#[test]
fn a_weight_that_half_precision_cannot_hold_is_refused_by_name() {
    let layout = small();
    let mut weights = tower(&layout, 1);
    weights.layer_mut("value.hidden").unwrap().bias[0] = 1e5;
    let file = file(&weights, &layout, Input::Rows);
    let settings = ProviderSettings {
        fp16: true,
        ..ProviderSettings::from(1)
    };
    let error = load_with(settings, &file, &layout).unwrap_err();
    let refused = service::chain(&error).to_string();
    assert!(
        refused.starts_with("inference.fp16: ") && refused.contains(": `value.hidden.bias` holds 100000"),
        "{refused}"
    );
}
