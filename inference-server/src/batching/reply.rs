//! Turns the outputs of a batch into answers: priors of the legal actions, or logits, and values.

use std::{sync::Arc, time::Instant};

use network::{
    cache::Cache,
    softmax::{softmax, softmax_of},
};
use service::telemetry::{
    self,
    steps::{self, Cause, KeyValue},
};
use tokio::sync::mpsc;

use crate::{
    batching::{
        executor::{ComputedBatch, Times},
        job::JobSlice,
    },
    intake::{refusal::Refusal, request::Wants},
    metrics::Metrics,
};

/// Answers computed batches until the channel closes, and stores the evaluations in `cache`.
pub async fn run(mut finished: mpsc::Receiver<ComputedBatch>, cache: Option<Arc<Cache>>, metrics: &Metrics) {
    let mut scratch = Scratch::default();
    while let Some(batch) = finished.recv().await {
        let span = BatchSpan::of(&batch);
        answer(batch, &mut scratch, cache.as_deref(), metrics);
        if let Some(span) = span {
            span.send();
        }
    }
}

/// Buffers that are reused for each slice.
#[derive(Debug, Default)]
struct Scratch {
    values: Vec<f32>,
    policy: Vec<f32>,
}

fn answer(batch: ComputedBatch, scratch: &mut Scratch, cache: Option<&Cache>, metrics: &Metrics) {
    let ComputedBatch {
        model,
        slices,
        places,
        outputs,
        times: _,
    } = batch;
    let outputs = match outputs {
        Ok(outputs) => outputs,
        Err(error) => {
            for slice in slices {
                slice.job.refuse(Refusal::Device(error.0.clone()));
            }
            return;
        }
    };
    let results = Results {
        actions: model.info.layout.actions as usize,
        logits: outputs.logits(),
        legal: outputs.legal_logits(),
        values: outputs.values(),
        places: &places,
    };
    let mut first = 0;
    for slice in slices {
        let read = results.read(&slice, first, scratch);
        first += slice.count;
        if let Err(position) = read {
            tracing::error!(
                version = model.info.version,
                position,
                "the model's answer is not finite"
            );
            metrics.not_finite();
            slice.job.refuse(Refusal::NotFinite { position });
            continue;
        }
        if let Some(cache) = cache {
            let mut priors = scratch.policy.as_slice();
            for (position, &value) in slice.positions().zip(&scratch.values) {
                let (own, others) = priors.split_at(priors.len().min(slice.legal(position).len()));
                priors = others;
                slice.store(cache, model.info.id, position, value, own);
            }
        }
        let answered = slice.answer(
            &model.info.version,
            &scratch.values,
            &scratch.policy,
            results.actions,
        );
        if let Some(positions) = answered {
            metrics.answered(positions);
        }
    }
}

/// Outputs of a batch.
struct Results<'a> {
    actions: usize,
    logits: &'a [f32],
    /// See [`network::batch::Outputs::legal_logits`].
    legal: Option<(&'a [f32], usize)>,
    values: &'a [f32],
    /// See [`ComputedBatch::places`].
    places: &'a [u32],
}

impl Results<'_> {
    /// Reads the values and the policies of a slice into `scratch`. `first` is the number of the slice's first position in
    /// the batch.
    ///
    /// # Errors
    /// Index in the request of the first position whose value or policy is not finite.
    fn read(&self, slice: &JobSlice, first: usize, scratch: &mut Scratch) -> Result<(), usize> {
        scratch.values.clear();
        scratch.policy.clear();
        for (number, position) in (first..).zip(slice.positions()) {
            let place = self.places.get(number).map_or(number, |&place| place as usize);
            let row = |width: usize| place * width..(place + 1) * width;
            let logits = self.logits.get(row(self.actions)).unwrap_or_default();
            let value = self.values.get(place).copied().unwrap_or(f32::NAN);
            let is_finite = match slice.job.wants() {
                Wants::Logits => {
                    scratch.policy.extend_from_slice(logits);
                    logits.iter().all(|logit| logit.is_finite())
                }
                _ => match self.legal {
                    None => softmax(logits, slice.legal(position), &mut scratch.policy),
                    Some((legal, width)) => {
                        let own = legal.get(row(width)).unwrap_or_default();
                        let count = slice.legal(position).len();
                        own.len() >= count && softmax_of(own.iter().copied().take(count), &mut scratch.policy)
                    }
                },
            };
            if !is_finite || !value.is_finite() {
                return Err(position);
            }
            scratch.values.push(value);
        }
        Ok(())
    }
}

/// Trace span of a batch that is about to be answered: the wait of its requests, the duration of each step, and links to the
/// calls that brought the requests.
struct BatchSpan {
    /// Time at which the oldest request was queued.
    queued: Instant,
    times: Times,
    causes: Vec<Cause>,
    attributes: [KeyValue; 5],
}

impl BatchSpan {
    /// Returns the span of `batch`. `None` if spans are not collected.
    fn of(batch: &ComputedBatch) -> Option<Self> {
        if !telemetry::is_on() {
            return None;
        }
        let queued = batch.slices.iter().map(|slice| slice.job.queued.into_std());
        let positions: usize = batch.slices.iter().map(|slice| slice.count).sum();
        let info = &batch.model.info;
        Some(Self {
            queued: queued.min().unwrap_or(batch.times.taken),
            times: batch.times,
            causes: batch
                .slices
                .iter()
                .filter_map(|slice| slice.job.cause.clone())
                .collect(),
            attributes: [
                KeyValue::new("minuet.model.version", info.version.clone()),
                KeyValue::new("minuet.model.provider", info.provider),
                KeyValue::new("minuet.batch.requests", batch.slices.len() as i64),
                KeyValue::new("minuet.batch.positions", positions as i64),
                KeyValue::new("minuet.batch.failed", batch.outputs.is_err()),
            ],
        })
    }

    /// Ends the span now and sends it to the collector.
    fn send(self) {
        let Times {
            taken,
            assembled,
            computed,
        } = self.times;
        let steps = [
            ("queue", self.queued, taken),
            ("assemble", taken, assembled),
            ("device", assembled, computed),
            ("reply", computed, Instant::now()),
        ];
        steps::record_spans("batch", &steps, self.causes, self.attributes);
    }
}
