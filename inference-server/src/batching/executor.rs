//! The threads of the device. Each executes one batch after the other.

use std::{collections::HashMap, sync::Arc, thread, time::Instant};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::{
    batching::{
        batcher::Batcher,
        job::{Job, JobSlice},
        queue::FormedBatch,
    },
    intake::request::Wants,
    metrics::Metrics,
};
use network::batch::{Outputs, RunError, legal_width};

/// Largest number of computed batches that wait to be answered.
const MAX_COMPUTED: usize = 2;

/// A batch that the device has computed, or failed to compute.
pub struct ComputedBatch {
    /// The batch as it was formed.
    pub formed: FormedBatch,
    /// Place of each position in the batch, if equal positions share one. Empty: position n has place n.
    pub places: Vec<u32>,
    /// Outputs of the model.
    pub outputs: Result<Outputs, RunError>,
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
    } = &formed;
    let taken = Instant::now();
    let (places, distinct) = share_places(slices, *positions);
    for slice in slices.iter().filter(|slice| slice.first == 0) {
        metrics.queue_seconds.record(slice.job.queued.elapsed());
    }
    let mut batch = model.batch(placed(slices, &places).map(|(job, position)| job.row(position)));
    let size = batch.size();
    if model.picks_legal && slices.iter().all(|slice| slice.job.wants() != Wants::Logits) {
        let (actions, width) = legal_actions(slices, &places, model.info.layout.actions, size);
        batch = batch.with_legal(actions, width);
    }
    let assembled = Instant::now();
    let outputs = model.run(batch);
    let computed = Instant::now();
    let threads = u32::try_from(model.info.threads).unwrap_or(u32::MAX).max(1);
    metrics.batch(distinct, size, (computed - assembled) / threads);
    if let Err(error) = &outputs {
        metrics.device_failures.increment(1);
        tracing::error!(version = model.info.version, positions, %error, "the device failed");
    }
    ComputedBatch {
        formed,
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
    if slices.iter().all(|slice| slice.job.hashes.is_empty()) {
        return (Vec::new(), positions);
    }
    let mut first_of: HashMap<u64, (u32, &Job, usize)> = HashMap::with_capacity(positions);
    let mut places = Vec::with_capacity(positions);
    let mut distinct = 0;
    for (job, position) in positions_of(slices) {
        let first = job
            .hash(position)
            .map(|hash| *first_of.entry(hash).or_insert((distinct, job, position)));
        // Equal hashes do not mean equal positions.
        let shared = first.filter(|&(place, like, there)| {
            place < distinct
                && like.row(there) == job.row(position)
                && like.legal(there) == job.legal(position)
        });
        places.push(shared.map_or(distinct, |(place, ..)| place));
        distinct += u32::from(shared.is_none());
    }
    if distinct as usize == positions {
        places.clear();
    }
    (places, distinct as usize)
}

fn positions_of(slices: &[JobSlice]) -> impl Iterator<Item = (&Job, usize)> {
    let slices = slices.iter();
    slices.flat_map(|slice| slice.positions().map(move |position| (&*slice.job, position)))
}

/// Returns the first position of each place, in the order of the places.
fn placed<'a>(slices: &'a [JobSlice], places: &'a [u32]) -> impl Iterator<Item = (&'a Job, usize)> {
    let mut filled = 0;
    let mut is_first = move |number: usize| {
        // An earlier, equal position may have the place.
        let is_first = places.get(number).is_none_or(|&place| place >= filled);
        filled += u32::from(is_first);
        is_first
    };
    let numbered = positions_of(slices).enumerate();
    numbered.filter_map(move |(number, position)| is_first(number).then_some(position))
}

/// Returns the legal actions of all places as `[size][width]`, padded with action 0. Returns them and the width.
fn legal_actions(slices: &[JobSlice], places: &[u32], actions: u32, size: usize) -> (Vec<i32>, usize) {
    let most = placed(slices, places).map(|(job, position)| job.legal(position).len());
    let width = legal_width(most.max().unwrap_or_default(), actions);
    let mut padded = vec![0; size * width];
    for ((job, position), own) in placed(slices, places).zip(padded.chunks_exact_mut(width)) {
        for (place, &action) in own.iter_mut().zip(job.legal(position)) {
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
        batching::{job::EvaluationResult, reply},
        intake::refusal::Refusal,
        tests::{FAILS, NOT_FINITE, job_of, job_with, model, policy, request, slot},
    };

    /// Runs requests whose rows hold their ids through queue, device and reply, in batches of at most 8.
    async fn answers(jobs: &[(u64, usize)]) -> Vec<EvaluationResult> {
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
        for (receiver, &(id, _)) in receivers.iter_mut().zip(jobs) {
            let reply = receiver.recv().await.unwrap();
            assert_eq!(reply.id, id);
            answers.push(reply.answer);
            assert!(receiver.recv().await.is_none(), "answered twice");
        }
        answers
    }

    fn values(answer: &EvaluationResult) -> &[f32] {
        &answer.as_ref().unwrap().values
    }

    #[tokio::test]
    async fn each_request_gets_the_answers_to_its_own_rows() {
        let jobs = [(1, 3), (2, 5), (3, 8), (4, 20), (5, 1)];
        for (answer, (id, positions)) in answers(&jobs).await.iter().zip(jobs) {
            assert_eq!(values(answer), vec![id as f32 / 1000.0; positions]);
            // The legal actions are 3 and 0, so the quotient of the priors identifies the row.
            for pair in answer.as_ref().unwrap().policy.chunks(2) {
                let quotient = (pair[0] / pair[1]).ln();
                assert!((quotient - 3.0 * id as f32 / 100.0).abs() < 1e-4, "{pair:?}");
            }
        }
    }

    #[test]
    fn equal_positions_share_a_place() {
        let slot = slot(model("7", 8));
        let (sender, _answers) = mpsc::unbounded_channel();
        let slice = |marks: &[u32], hashes: Vec<u64>| {
            let mut request = request(marks.len(), 0);
            request.indices = marks.iter().flat_map(|&mark| [mark, mark, 1]).collect();
            let mut job = job_with(&slot, 1, 0, request, &sender);
            Arc::get_mut(&mut job).unwrap().hashes = hashes;
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
            .map(|(job, position)| job.row(position))
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
        assert_eq!((places, distinct), (vec![0, 1, 0, 2, 3, 4, 1, 0], 5));
        // Without duplicates there are no places.
        assert_eq!(share_places(&slices[1..2], 2), (Vec::new(), 2));
    }

    #[tokio::test]
    async fn an_output_that_is_not_finite_fails_only_its_own_request() {
        let not_finite = u64::from(NOT_FINITE);
        let answers = answers(&[(1, 3), (not_finite, 2), (3, 3), (not_finite, 20)]).await;
        assert_eq!(values(&answers[0]), [0.001; 3]);
        assert_eq!(answers[1], Err(Refusal::NotFinite { position: 0 }));
        assert_eq!(values(&answers[2]), [0.003; 3]);
        // A request in several slices is answered once.
        assert_eq!(answers[3], Err(Refusal::NotFinite { position: 0 }));
    }

    #[tokio::test]
    async fn a_failed_batch_does_not_stop_the_device() {
        let answers = answers(&[(1, 8), (u64::from(FAILS), 4), (2, 8), (3, 1)]).await;
        assert_eq!(values(&answers[0]), [0.001; 8]);
        assert_eq!(answers[1], Err(Refusal::Device("out of memory".into())));
        assert_eq!(values(&answers[2]), [0.002; 8]);
    }
}
