//! Trace span of a batch: the wait of its requests, the duration of each step, and links to the calls that brought the
//! requests.

use std::time::Instant;

use service::telemetry::{
    self,
    steps::{self, Cause, KeyValue},
};

use crate::batching::{
    executor::{ComputedBatch, Times},
    job::JobSlice,
};

/// Span of a batch that is about to be answered.
#[derive(Debug)]
pub(crate) struct BatchSpan {
    /// Time at which the oldest request was queued.
    queued: Instant,
    times: Times,
    causes: Vec<Cause>,
    attributes: [KeyValue; 5],
}

impl BatchSpan {
    /// Returns the span of `batch`. `None` if spans are not collected.
    pub(crate) fn of(batch: &ComputedBatch) -> Option<Self> {
        if !telemetry::is_on() {
            return None;
        }
        let queued = batch.slices.iter().map(|slice| slice.job.queued.into_std());
        let positions: usize = batch.slices.iter().map(|slice| slice.count).sum();
        let info = &batch.model.info;
        Some(Self {
            queued: queued.min().unwrap_or(batch.times.taken),
            times: batch.times,
            causes: batch.slices.iter().filter_map(cause).collect(),
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
    pub(crate) fn send(self) {
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

fn cause(slice: &JobSlice) -> Option<Cause> {
    slice.job.cause.clone()
}
