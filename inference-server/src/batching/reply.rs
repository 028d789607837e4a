//! Turns the outputs of a batch into answers: priors of the legal actions, or logits, and values.

use std::{sync::Arc, time::Instant};

use network::{
    batch::Outputs,
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
        answer(&batch, &mut scratch, cache.as_deref(), metrics);
        if telemetry::is_on() {
            record_span(&batch);
        }
    }
}

/// Buffers that are reused for each slice.
#[derive(Debug, Default)]
struct Scratch {
    values: Vec<f32>,
    policy: Vec<f32>,
}

fn answer(batch: &ComputedBatch, scratch: &mut Scratch, cache: Option<&Cache>, metrics: &Metrics) {
    let (info, slices) = (&batch.formed.model.info, &batch.formed.slices);
    let outputs = match &batch.outputs {
        Ok(outputs) => outputs,
        Err(error) => {
            for slice in slices {
                slice.job.refuse(Refusal::Device(error.0.clone()));
            }
            return;
        }
    };
    let mut first = 0;
    for slice in slices {
        let read = scratch.read(outputs, info.layout.actions as usize, slice, |number| {
            let place = batch.places.get(first + number);
            place.map_or(first + number, |&place| place as usize)
        });
        first += slice.count;
        if let Err(position) = read {
            tracing::error!(
                version = info.version,
                position,
                "the model's answer is not finite"
            );
            metrics.not_finite.increment(1);
            slice.job.refuse(Refusal::NotFinite { position });
            continue;
        }
        if let Some(cache) = cache {
            slice.store(cache, info.id, &scratch.values, &scratch.policy);
        }
        if let Some(positions) = slice.answer(&info.version, &scratch.values, &scratch.policy) {
            metrics.answered(positions);
        }
    }
}

impl Scratch {
    /// Reads the values and the policies of a slice. `place` returns the place in the batch of the slice's position of a number.
    ///
    /// # Errors
    /// Index in the request of the first position whose value or policy is not finite.
    fn read(
        &mut self,
        outputs: &Outputs,
        actions: usize,
        slice: &JobSlice,
        place: impl Fn(usize) -> usize,
    ) -> Result<(), usize> {
        self.values.clear();
        self.policy.clear();
        let (all, picked, values) = (outputs.logits(), outputs.legal_logits(), outputs.values());
        for (number, position) in slice.positions().enumerate() {
            let place = place(number);
            let row = |width: usize| place * width..(place + 1) * width;
            let logits = all.get(row(actions)).unwrap_or_default();
            let value = values.get(place).copied().unwrap_or(f32::NAN);
            let legal = slice.job.legal(position);
            let is_finite = match (slice.job.wants(), picked) {
                (Wants::Logits, _) => {
                    self.policy.extend_from_slice(logits);
                    logits.iter().all(|logit| logit.is_finite())
                }
                (Wants::Priors, None) => softmax(logits, legal, &mut self.policy),
                (Wants::Priors, Some((picked, width))) => {
                    let own = picked.get(row(width)).unwrap_or_default();
                    let own = own.get(..legal.len());
                    own.is_some_and(|own| softmax_of(own.iter().copied(), &mut self.policy))
                }
            };
            if !is_finite || !value.is_finite() {
                return Err(position);
            }
            self.values.push(value);
        }
        Ok(())
    }
}

/// Sends the trace span of a batch that was just answered: the wait of its requests, the duration of each step, and links to the
/// calls that brought the requests.
fn record_span(batch: &ComputedBatch) {
    let ComputedBatch {
        formed,
        outputs,
        times,
        ..
    } = batch;
    let Times {
        taken,
        assembled,
        computed,
    } = *times;
    let info = &formed.model.info;
    let jobs = formed.slices.iter().map(|slice| &slice.job);
    let queued = jobs.clone().map(|job| job.queued.into_std()).min();
    let steps = [
        ("queue", queued.unwrap_or(taken), taken),
        ("assemble", taken, assembled),
        ("device", assembled, computed),
        ("reply", computed, Instant::now()),
    ];
    let attributes = [
        KeyValue::new("minuet.model.version", info.version.clone()),
        KeyValue::new("minuet.model.provider", info.provider),
        KeyValue::new("minuet.batch.requests", formed.slices.len() as i64),
        KeyValue::new("minuet.batch.positions", formed.positions as i64),
        KeyValue::new("minuet.batch.failed", outputs.is_err()),
    ];
    let causes: Vec<Cause> = jobs.filter_map(|job| job.cause.clone()).collect();
    steps::record_spans("batch", &steps, causes, attributes);
}
