//! What a collector of spans is told of a batch: how long its requests waited, how long each step took, and which calls
//! they came by.

use std::time::Instant;

use service::telemetry::{
    self,
    steps::{self, Cause, KeyValue},
};

use crate::batching::{
    executor::{Finished, Times},
    job::Piece,
};

/// A batch that is about to be answered.
#[derive(Debug)]
pub(crate) struct BatchSpan {
    /// When the request that waited longest was queued.
    queued: Instant,
    times: Times,
    causes: Vec<Cause>,
    attributes: [KeyValue; 5],
}

impl BatchSpan {
    /// What is to be told of `batch`; `None` where nobody collects spans.
    pub(crate) fn of(batch: &Finished) -> Option<Self> {
        if !telemetry::is_on() {
            return None;
        }
        let queued = batch.pieces.iter().map(|piece| piece.job.queued.into_std());
        let positions: usize = batch.pieces.iter().map(|piece| piece.count).sum();
        let info = &batch.model.info;
        Some(Self {
            queued: queued.min().unwrap_or(batch.times.taken),
            times: batch.times,
            causes: batch.pieces.iter().filter_map(cause).collect(),
            attributes: [
                KeyValue::new("minuet.model.version", info.version.clone()),
                KeyValue::new("minuet.model.provider", info.provider),
                KeyValue::new("minuet.batch.requests", batch.pieces.len() as i64),
                KeyValue::new("minuet.batch.positions", positions as i64),
                KeyValue::new("minuet.batch.failed", batch.outputs.is_err()),
            ],
        })
    }

    /// The batch has been answered just now.
    pub(crate) fn tell(self) {
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
        steps::tell("batch", &steps, self.causes, self.attributes);
    }
}

fn cause(piece: &Piece) -> Option<Cause> {
    piece.job.cause.clone()
}
