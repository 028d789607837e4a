//! The threads of the device. Each executes one batch after the other.

use std::{collections::HashMap, sync::Arc, thread, time::Instant};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::{
    batching::{batcher::Batcher, job::JobSlice, queue::FormedBatch},
    intake::request::Wants,
    metrics::Metrics,
};
use network::{
    batch::{Outputs, RunError, legal_width},
    model::Model,
};

/// Largest number of computed batches that wait to be answered.
const MAX_COMPUTED: usize = 2;

/// A batch that the device has computed, or failed to compute.
pub struct ComputedBatch {
    /// Model that computed it.
    pub model: Arc<Model>,
    /// Slices of jobs whose positions it holds, in order.
    pub slices: Vec<JobSlice>,
    /// Place of each position in the batch, if equal positions share one. Empty: position n has place n.
    pub places: Vec<u32>,
    /// Outputs of the model.
    pub outputs: Result<Box<dyn Outputs>, RunError>,
    /// Times of its steps.
    pub times: Times,
}

/// Times of a batch's steps.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// A thread of the device took the batch.
    pub taken: Instant,
    /// The rows were put together and given to the model.
    pub assembled: Instant,
    /// The model had finished.
    pub computed: Instant,
}

/// A running executor.
pub struct Executor {
    /// Input of batches. One waits while others are executed.
    pub batches: mpsc::Sender<FormedBatch>,
    /// Output of computed batches. It closes when the threads end.
    pub finished: mpsc::Receiver<ComputedBatch>,
}

impl Executor {
    /// Starts `threads` threads, which end when `batches` is dropped. A model may use fewer of them.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn start(batcher: &Arc<Batcher>, metrics: &Arc<Metrics>, threads: usize) -> std::io::Result<Self> {
        let (batches, formed) = mpsc::channel::<FormedBatch>(1);
        let (done, finished) = mpsc::channel(MAX_COMPUTED);
        let formed = Arc::new(Mutex::new(formed));
        for _ in 0..threads.max(1) {
            let (batcher, metrics) = (batcher.clone(), metrics.clone());
            let (formed, done) = (formed.clone(), done.clone());
            let work = move || {
                loop {
                    // The lock is free again when the batch is executed.
                    let next = formed.lock().blocking_recv();
                    let Some(next) = next else {
                        return;
                    };
                    let (positions, requests) = (next.positions, next.slices.len());
                    let executed = execute(next, &metrics);
                    batcher.finished(positions, requests);
                    if done.blocking_send(executed).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new().name("device".into()).spawn(work)?;
        }
        Ok(Self { batches, finished })
    }
}

fn execute(formed: FormedBatch, metrics: &Metrics) -> ComputedBatch {
    let FormedBatch {
        model,
        slices,
        positions,
    } = formed;
    let taken = Instant::now();
    let (places, distinct) = share_places(&slices, positions);
    for slice in &slices {
        if slice.first == 0 {
            metrics.queued_for(slice.job.queued.elapsed());
        }
    }
    let mut batch = model.batch(placed(&slices, &places).map(|(slice, position)| slice.row(position)));
    let size = batch.size();
    if model.picks_legal && slices.iter().all(|slice| slice.job.wants() != Wants::Logits) {
        let (actions, width) = legal_actions(&slices, &places, model.info.layout.actions, size);
        batch = batch.with_legal(actions, width);
    }
    let assembled = Instant::now();
    let outputs = model.run(batch);
    let computed = Instant::now();
    metrics.duplicates(positions - distinct);
    let threads = u32::try_from(model.info.threads).unwrap_or(u32::MAX).max(1);
    metrics.batch(distinct, size, (computed - assembled) / threads);
    if let Err(error) = &outputs {
        metrics.device_failed();
        tracing::error!(version = model.info.version, positions, %error, "the device failed");
    }
    ComputedBatch {
        model,
        slices,
        places,
        outputs,
        times: Times {
            taken,
            assembled,
            computed,
        },
    }
}

/// Gives equal positions one place in the batch, so that they are computed once. Returns each position's place and the
/// number of places. The list of places is empty if all positions differ, or if they have no hashes.
fn share_places(slices: &[JobSlice], positions: usize) -> (Vec<u32>, usize) {
    if slices.iter().all(|slice| !slice.is_hashed()) {
        return (Vec::new(), positions);
    }
    let mut first_of: HashMap<u64, (u32, &JobSlice, usize)> = HashMap::with_capacity(positions);
    let mut places = Vec::with_capacity(positions);
    let mut distinct = 0;
    for slice in slices {
        for position in slice.positions() {
            let Some(hash) = slice.hash(position) else {
                places.push(distinct);
                distinct += 1;
                continue;
            };
            let (place, like, there) = *first_of.entry(hash).or_insert((distinct, slice, position));
            // Equal hashes do not mean equal positions.
            let is_shared = place < distinct
                && like.row(there) == slice.row(position)
                && like.legal(there) == slice.legal(position);
            places.push(if is_shared { place } else { distinct });
            distinct += u32::from(!is_shared);
        }
    }
    if distinct as usize == positions {
        places.clear();
    }
    (places, distinct as usize)
}

/// Returns the first position of each place, in the order of the places.
fn placed<'a>(slices: &'a [JobSlice], places: &'a [u32]) -> impl Iterator<Item = (&'a JobSlice, usize)> {
    let positions = slices
        .iter()
        .flat_map(|slice| slice.positions().map(move |position| (slice, position)));
    let mut filled = 0;
    positions
        .enumerate()
        .filter_map(move |(number, (slice, position))| {
            // An earlier, equal position has this place.
            if places.get(number).is_some_and(|&place| place < filled) {
                return None;
            }
            filled += 1;
            Some((slice, position))
        })
}

/// Returns the legal actions of all places as `[size][width]`, padded with action 0. Returns them and the width.
fn legal_actions(slices: &[JobSlice], places: &[u32], actions: u32, size: usize) -> (Vec<i32>, usize) {
    let most = placed(slices, places).map(|(slice, position)| slice.legal(position).len());
    let width = legal_width(most.max().unwrap_or_default(), actions);
    let mut padded = vec![0; size * width];
    for ((slice, position), own) in placed(slices, places).zip(padded.chunks_exact_mut(width)) {
        for (place, &action) in own.iter_mut().zip(slice.legal(position)) {
            // Validation has checked that the action is below the action count.
            *place = i32::try_from(action).unwrap_or_default();
        }
    }
    (padded, width)
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{self, UnboundedReceiver};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        batching::{
            job::{EvaluationResult, Job, ReplyTo},
            reply,
        },
        intake::refusal::Refusal,
        models::table::ResolvedModel,
        testing::{FAILS, NOT_FINITE, caller, job_of, model, policy, request, slot},
    };

    /// Runs requests whose rows hold their ids through queue, device and reply, in batches of at most 8.
    async fn answers(jobs: &[(u64, usize)]) -> Vec<(u64, EvaluationResult)> {
        let metrics = Arc::new(Metrics::new());
        let batcher = Batcher::new(policy(8, 1000), metrics.clone());
        let slot = slot(model("7", 8));
        let mut receivers: Vec<UnboundedReceiver<_>> = jobs
            .iter()
            .map(|&(id, positions)| {
                // The requests are queued before the device starts, so that the batches are always the same.
                let (job, answers) = job_of(&slot, 0, id, positions);
                batcher.push(job).unwrap();
                answers
            })
            .collect();
        let executor = Executor::start(&batcher, &metrics, 1).unwrap();
        tokio::spawn(async move { batcher.run(executor.batches, CancellationToken::new()).await });
        tokio::spawn(async move { reply::run(executor.finished, None, &metrics).await });
        let mut answers = Vec::new();
        for receiver in &mut receivers {
            let reply = receiver.recv().await.unwrap();
            answers.push((reply.id, reply.answer));
            assert!(receiver.recv().await.is_none(), "answered twice");
        }
        answers
    }

    fn values((_, answer): &(u64, EvaluationResult)) -> &[f32] {
        &answer.as_ref().unwrap().values
    }

    #[tokio::test]
    async fn each_request_gets_the_answers_to_its_own_rows() {
        let answers = answers(&[(1, 3), (2, 5), (3, 8), (4, 20), (5, 1)]).await;
        for (answer, (id, positions)) in answers.iter().zip([(1, 3), (2, 5), (3, 8), (4, 20), (5, 1)]) {
            assert_eq!(answer.0, id);
            assert_eq!(values(answer), vec![id as f32 / 1000.0; positions]);
            // The legal actions are 3 and 0, so the quotient of the priors identifies the row.
            let mut priors = Vec::new();
            let bytes = &answer.1.as_ref().unwrap().half_priors;
            proto::priors::decode(bytes, 2 * positions, &mut priors).unwrap();
            for pair in priors.chunks(2) {
                let quotient = (pair[0] / pair[1]).ln();
                assert!((quotient - 3.0 * id as f32 / 100.0).abs() < 2e-3, "{pair:?}");
            }
        }
    }

    #[test]
    fn equal_positions_share_a_place() {
        let model = model("7", 8);
        let (sender, _answers) = mpsc::unbounded_channel();
        let slice = |marks: &[u32], hashes: Vec<u64>| {
            let mut request = request(marks.len(), 0);
            request.indices = marks.iter().flat_map(|&mark| [mark, mark, 1]).collect();
            let named = ResolvedModel {
                model: model.clone(),
                slot: None,
            };
            let mut job = Job::new(
                named,
                request,
                caller(1),
                ReplyTo::stream(0, sender.clone(), None),
            );
            job.set_hashes(hashes);
            let job = Arc::new(job);
            let count = job.positions();
            JobSlice { job, first: 0, count }
        };
        let slices: Vec<JobSlice> = [[1, 2, 1].as_slice(), &[3, 2], &[1]]
            .into_iter()
            // Colliding hashes: the positions themselves are compared.
            .map(|marks| slice(marks, marks.iter().map(|&mark| u64::from(mark / 2)).collect()))
            .collect();
        let (places, distinct) = share_places(&slices, 6);
        // Positions 2 and 3 have the same hash and keep places of their own.
        assert_eq!((places.as_slice(), distinct), ([0, 1, 0, 2, 1, 0].as_slice(), 3));
        let rows: Vec<&[u32]> = placed(&slices, &places)
            .map(|(slice, position)| slice.row(position))
            .collect();
        assert_eq!(rows, [[1, 1, 1], [2, 2, 1], [3, 3, 1]]);
        // Each place has its legal actions 3 and 0, padded with 0. Padding places have zeros only.
        let (legal, width) = legal_actions(&slices, &places, 5, 4);
        assert_eq!(width, 5);
        let row = [3, 0, 0, 0, 0];
        assert_eq!(legal, [row, row, row, [0; 5]].concat());
        // Positions without hashes keep places of their own.
        let mut with_stranger = slices.clone();
        with_stranger.insert(1, slice(&[1, 1], Vec::new()));
        let (places, distinct) = share_places(&with_stranger, 8);
        assert_eq!(
            (places.as_slice(), distinct),
            ([0, 1, 0, 2, 3, 4, 1, 0].as_slice(), 5)
        );
        // Without duplicates there are no places.
        assert_eq!(share_places(&slices[1..2], 2), (Vec::new(), 2));
    }

    #[tokio::test]
    async fn an_output_that_is_not_finite_fails_only_its_own_request() {
        let not_finite = u64::from(NOT_FINITE);
        let answers = answers(&[(1, 3), (not_finite, 2), (3, 3), (not_finite, 20)]).await;
        assert_eq!(values(&answers[0]), [0.001; 3]);
        assert_eq!(answers[1].1, Err(Refusal::NotFinite { position: 0 }));
        assert_eq!(values(&answers[2]), [0.003; 3]);
        // A request in several slices is answered once.
        assert_eq!(answers[3].1, Err(Refusal::NotFinite { position: 0 }));
    }

    #[tokio::test]
    async fn a_failed_batch_does_not_stop_the_device() {
        let answers = answers(&[(1, 8), (u64::from(FAILS), 4), (2, 8), (3, 1)]).await;
        assert_eq!(values(&answers[0]), [0.001; 8]);
        assert_eq!(answers[1].1, Err(Refusal::Device("out of memory".into())));
        assert_eq!(values(&answers[2]), [0.002; 8]);
    }
}
