//! What the unit tests share: a small layout, models without a runtime.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use games::{ConstantPlane, RowLayout};
use proto::v1::EvaluateRequest;
use tokio::sync::mpsc;

use crate::{
    buckets::Buckets,
    job::{Answer, ClientId, Job, ReplyTo},
    model::{Model, ModelInfo},
    runner::{Batch, Outputs, RunError, Runner},
};

/// Rows of three values: two indices into planes 0 and 2, one constant up to 100.
pub(crate) fn layout() -> RowLayout {
    RowLayout {
        game: "small".into(),
        options: 0,
        entries: 2,
        planes: 4,
        sparse: vec![0, 2],
        constants: vec![ConstantPlane {
            name: "counter".into(),
            plane: 1,
            divisor: 100,
            max: 100,
        }],
        ones: vec![3],
        actions: 5,
        mirrored_actions: false,
    }
}

/// A row whose first index is this has no finite value.
pub(crate) const NOT_FINITE: u32 = 62;
/// A batch with a row whose first index is this fails.
pub(crate) const FAILS: u32 = 63;

/// A model without a runtime: the value of a row is its first index / 1000, the logits of its actions are
/// 0, 1, 2, … times its second index / 100.
pub(crate) struct FakeRunner;

pub(crate) struct FakeOutputs {
    logits: Vec<f32>,
    values: Vec<f32>,
}

impl Outputs for FakeOutputs {
    fn logits(&self) -> &[f32] {
        &self.logits
    }

    fn values(&self) -> &[f32] {
        &self.values
    }
}

impl Runner for FakeRunner {
    fn run(&mut self, batch: Batch) -> Result<Box<dyn Outputs>, RunError> {
        let layout = layout();
        let rows = batch.rows().chunks(layout.row_len());
        if rows.clone().any(|row| row[0] == FAILS as i32) {
            return Err(RunError("out of memory".into()));
        }
        let value = |row: &[i32]| {
            if row[0] == NOT_FINITE as i32 {
                f32::NAN
            } else {
                row[0] as f32 / 1000.0
            }
        };
        Ok(Box::new(FakeOutputs {
            logits: rows
                .clone()
                .flat_map(|row| (0..layout.actions).map(|action| action as f32 * row[1] as f32 / 100.0))
                .collect(),
            values: rows.map(value).collect(),
        }))
    }
}

/// A fake model of some version, with batches of at most `max_batch`.
pub(crate) fn model(version: &str, max_batch: usize) -> Arc<Model> {
    let info = ModelInfo {
        version: version.into(),
        step: 0,
        layout: layout(),
        provider: "fake",
    };
    Arc::new(Model::new(
        info,
        Buckets::new(&[], max_batch),
        Box::new(FakeRunner),
    ))
}

/// A valid request of `positions`, whose rows hold `mark`.
pub(crate) fn request(id: u64, positions: usize, mark: u32) -> EvaluateRequest {
    EvaluateRequest {
        id,
        indices: [mark % 64, mark % 64, 1].repeat(positions),
        legal_actions: [3, 0].repeat(positions),
        legal_counts: vec![2; positions],
        ..EvaluateRequest::default()
    }
}

/// A job of a stream, and that stream's answers.
pub(crate) fn job(
    client: u64,
    id: u64,
    positions: usize,
) -> (Arc<Job>, mpsc::UnboundedReceiver<(u64, Answer)>) {
    let (sender, answers) = mpsc::unbounded_channel();
    (job_for(client, id, positions, &sender), answers)
}

/// A job whose answer goes to `sender`.
pub(crate) fn job_for(
    client: u64,
    id: u64,
    positions: usize,
    sender: &mpsc::UnboundedSender<(u64, Answer)>,
) -> Arc<Job> {
    let request = request(id, positions, id as u32);
    Arc::new(Job::new(
        ClientId(client),
        None,
        request,
        layout().row_len(),
        ReplyTo::Stream(sender.clone()),
    ))
}
