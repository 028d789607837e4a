//! Parts shared by unit tests: a small layout, models without a runtime.

use std::sync::Arc;

use games::{ConstantPlane, PlaneStack, RowForm, RowLayout};
use tokio::sync::mpsc;

use crate::{
    batching::{
        batcher::BatchingPolicy,
        job::{Job, JobReply, ReplyTo},
    },
    intake::request::{Caller, ClientId, EvaluationRequest},
    models::{
        names::{Pointer, ServedName},
        table::{ModelSlot, ResolvedModel},
    },
};
use network::{
    batch::{Batch, Outputs, RunError, Runner},
    buckets::Buckets,
    model::{Model, ModelInfo},
};

/// Returns a layout of rows of three values: two indices into planes 0 and 2, one constant up to 100.
pub(crate) fn layout() -> RowLayout {
    RowLayout {
        game: "small".into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            height: 4,
            width: 16,
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
        }),
        actions: 5,
        mirrored_actions: false,
        policy_head: games::PolicyHead::Dense,
    }
}

/// First index of a row whose value is not finite.
pub(crate) const NOT_FINITE: u32 = 62;
/// First index of a row that makes its batch fail.
pub(crate) const FAILS: u32 = 63;

/// A model without a runtime: the value of a row is its first index / 1000, the logits of its actions are
/// 0, 1, 2, … times its second index / 100.
struct FakeRunner;

impl Runner for FakeRunner {
    fn run(&mut self, batch: Batch) -> Result<Outputs, RunError> {
        let (mut logits, mut values) = (Vec::new(), Vec::new());
        for row in batch.each() {
            if row[0] == FAILS as i32 {
                return Err(RunError("out of memory".into()));
            }
            values.push(match row[0] == NOT_FINITE as i32 {
                true => f32::NAN,
                false => row[0] as f32 / 1000.0,
            });
            let logit = |action| action as f32 * row[1] as f32 / 100.0;
            logits.extend((0..layout().actions).map(logit));
        }
        Ok(Outputs::new(logits, values))
    }
}

/// Returns a fake model of this version, with batches of at most `max_batch`, that computes one batch at a time.
pub(crate) fn model(version: &str, max_batch: usize) -> Arc<Model> {
    model_on(1, version, max_batch)
}

/// Returns a fake model that computes `threads` batches at the same time.
pub(crate) fn model_on(threads: usize, version: &str, max_batch: usize) -> Arc<Model> {
    let info = ModelInfo {
        source: String::new(),
        version: version.into(),
        digest: version.into(),
        id: network::cache::VersionId(version.bytes().map(u32::from).sum()),
        step: 0,
        layout: layout(),
        provider: "fake",
        bytes: 1000,
        threads,
        speeds: Vec::new(),
    };
    let runners = (0..threads).map(|_| Box::new(FakeRunner) as Box<dyn Runner>);
    Arc::new(Model::new(info, Buckets::new(max_batch), runners.collect()))
}

/// Returns the name of the usual default model.
pub(crate) fn latest() -> ServedName {
    ServedName {
        source: String::new(),
        pointer: Pointer::Label("latest".into()),
    }
}

/// Returns a slot that points at `model`.
pub(crate) fn slot(model: Arc<Model>) -> Arc<ModelSlot> {
    let slot = ModelSlot::new(latest(), true);
    slot.replace(model);
    Arc::new(slot)
}

pub(crate) fn policy(max_batch: usize, max_queue: usize) -> BatchingPolicy {
    BatchingPolicy { max_batch, max_queue }
}

/// Returns a valid request of `positions` rows that contain `mark`.
pub(crate) fn request(positions: usize, mark: u32) -> EvaluationRequest {
    EvaluationRequest {
        indices: [mark % 64, mark % 64, 1].repeat(positions),
        legal_actions: [3, 0].repeat(positions),
        legal_counts: vec![2; positions],
        ..EvaluationRequest::default()
    }
}

/// Receiver of the answers to a job.
pub(crate) type Answers = mpsc::UnboundedReceiver<JobReply>;

/// Returns a job of a client for the model of `slot`, and the receiver of its answers.
pub(crate) fn job_of(slot: &Arc<ModelSlot>, client: u64, id: u64, positions: usize) -> (Arc<Job>, Answers) {
    let (sender, answers) = mpsc::unbounded_channel();
    let request = request(positions, id as u32);
    (job_with(slot, client, id, request, &sender), answers)
}

/// Returns a job whose answer goes to `sender`.
pub(crate) fn job_with(
    slot: &Arc<ModelSlot>,
    client: u64,
    id: u64,
    request: EvaluationRequest,
    sender: &mpsc::UnboundedSender<JobReply>,
) -> Arc<Job> {
    let named = ResolvedModel {
        model: slot.current().unwrap(),
        slot: Some(slot.clone()),
    };
    let caller = Caller {
        client: ClientId(client),
        cause: None,
        peer: None,
    };
    let reply_to = ReplyTo::new(id, sender.clone(), None);
    Arc::new(Job::new(named, request, caller, reply_to))
}
