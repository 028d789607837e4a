//! The thread that owns the device: one batch after the other.

use std::{collections::HashMap, sync::Arc, thread, time::Instant};

use tokio::sync::mpsc;

use crate::{
    batching::{batcher::Batcher, job::Piece, queue::Formed},
    metrics::Metrics,
    requests::request::Wants,
};
use network::{
    batch::{Batch, Outputs, RunError, legal_width},
    model::Model,
};

/// Finished batches that may wait to be answered.
const FINISHED: usize = 2;

/// A batch that the device is done with.
pub struct Finished {
    /// The model that answered.
    pub model: Arc<Model>,
    /// Whose positions it holds, in order.
    pub pieces: Vec<Piece>,
    /// Where in the batch each of these positions is, where equal ones share a place; empty: one after the other.
    pub places: Vec<u32>,
    /// What the model gave.
    pub outputs: Result<Box<dyn Outputs>, RunError>,
    /// When what was done.
    pub times: Times,
}

/// When a batch was on which step of its way.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The device's thread took it.
    pub taken: Instant,
    /// Its rows were put together, and given to the model.
    pub assembled: Instant,
    /// The model was done.
    pub computed: Instant,
}

/// A running executor.
pub struct Executor {
    /// Batches go in here; one waits beside the one that is executed.
    pub batches: mpsc::Sender<Formed>,
    /// Finished batches come out here. It ends when the thread does.
    pub finished: mpsc::Receiver<Finished>,
}

impl Executor {
    /// Starts the thread. It ends when `batches` is dropped.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(batcher: Arc<Batcher>, metrics: Arc<Metrics>) -> std::io::Result<Self> {
        let (batches, mut formed) = mpsc::channel::<Formed>(1);
        let (done, finished) = mpsc::channel(FINISHED);
        thread::Builder::new().name("device".into()).spawn(move || {
            while let Some(formed) = formed.blocking_recv() {
                let (positions, requests) = (formed.positions, formed.pieces.len());
                let executed = execute(formed, &metrics);
                batcher.finished(positions, requests);
                if done.blocking_send(executed).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { batches, finished })
    }
}

fn execute(formed: Formed, metrics: &Metrics) -> Finished {
    let Formed {
        model,
        pieces,
        positions,
    } = formed;
    let taken = Instant::now();
    let (places, distinct) = share_places(&pieces, positions);
    let size = model.buckets.fit(distinct);
    for piece in &pieces {
        if piece.first == 0 {
            metrics.queued_for(piece.job.queued.elapsed());
        }
    }
    let mut batch = assemble(&pieces, &places, model.info.layout.row_len(), size);
    if model.picks_legal && pieces.iter().all(|piece| piece.job.wants() != Wants::Logits) {
        let (actions, width) = legal_actions(&pieces, &places, model.info.layout.actions, size);
        batch = batch.with_legal(actions, width);
    }
    let assembled = Instant::now();
    let outputs = model.run(batch);
    let computed = Instant::now();
    metrics.duplicates(positions - distinct);
    metrics.batch(distinct, size, computed - assembled);
    if let Err(error) = &outputs {
        metrics.device_failed();
        tracing::error!(version = model.info.version, positions, %error, "the device failed");
    }
    Finished {
        model,
        pieces,
        places,
        outputs,
        times: Times {
            taken,
            assembled,
            computed,
        },
    }
}

/// Positions that ask the same are computed once: each position's place in the batch, and the number of places.
/// No places are given where all are different, or where there is no cache, so that nobody has compared them.
fn share_places(pieces: &[Piece], positions: usize) -> (Vec<u32>, usize) {
    if pieces.iter().all(|piece| !piece.is_hashed()) {
        return (Vec::new(), positions);
    }
    let mut first_of: HashMap<u64, (u32, &Piece, usize)> = HashMap::with_capacity(positions);
    let mut places = Vec::with_capacity(positions);
    let mut distinct = 0;
    for piece in pieces {
        for position in piece.positions() {
            let Some(hash) = piece.hash(position) else {
                places.push(distinct);
                distinct += 1;
                continue;
            };
            let (place, like, there) = *first_of.entry(hash).or_insert((distinct, piece, position));
            // Equal hashes do not mean equal questions.
            let is_shared = place < distinct
                && like.row(there) == piece.row(position)
                && like.legal(there) == piece.legal(position);
            places.push(if is_shared { place } else { distinct });
            distinct += u32::from(!is_shared);
        }
    }
    if distinct as usize == positions {
        places.clear();
    }
    (places, distinct as usize)
}

/// The positions of a batch that have a place of their own, in the order of their places.
fn placed<'a>(pieces: &'a [Piece], places: &'a [u32]) -> impl Iterator<Item = (&'a Piece, usize)> {
    let positions = pieces
        .iter()
        .flat_map(|piece| piece.positions().map(move |position| (piece, position)));
    let mut filled = 0;
    positions
        .enumerate()
        .filter_map(move |(number, (piece, position))| {
            // A place that is filled already is one of an equal position.
            if places.get(number).is_some_and(|&place| place < filled) {
                return None;
            }
            filled += 1;
            Some((piece, position))
        })
}

/// Legal actions of all places, `[size][width]`, padded with the first action there is.
fn legal_actions(pieces: &[Piece], places: &[u32], actions: u32, size: usize) -> (Vec<i32>, usize) {
    let most = placed(pieces, places).map(|(piece, position)| piece.legal(position).len());
    let width = legal_width(most.max().unwrap_or_default(), actions);
    let mut padded = vec![0; size * width];
    for ((piece, position), own) in placed(pieces, places).zip(padded.chunks_exact_mut(width)) {
        for (place, &action) in own.iter_mut().zip(piece.legal(position)) {
            // Validated: below the model's action count.
            *place = i32::try_from(action).unwrap_or_default();
        }
    }
    (padded, width)
}

/// Rows of all places, padded with copies of the first one: a row that is known to be valid, and as fast as any.
fn assemble(pieces: &[Piece], places: &[u32], row_len: Option<usize>, size: usize) -> Batch {
    let (mut rows, mut ends) = (Vec::with_capacity(size * row_len.unwrap_or(64)), Vec::new());
    let mut filled = 0;
    for (piece, position) in placed(pieces, places) {
        filled += 1;
        // Validated: indices are below 4096, constants below their limits. Larger constants would saturate.
        let row = piece.row(position).iter();
        rows.extend(row.map(|&number| i32::try_from(number).unwrap_or(i32::MAX)));
        if row_len.is_none() {
            ends.push(rows.len());
        }
    }
    let first = row_len.or(ends.first().copied()).unwrap_or(rows.len());
    for _ in filled..size {
        rows.extend_from_within(..first);
        if row_len.is_none() {
            ends.push(rows.len());
        }
    }
    match row_len {
        Some(_) => Batch::new(rows, size),
        None => Batch::varied(rows, ends),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{self, UnboundedReceiver};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        batching::{draft::Draft, reply},
        models::table::Named,
        requests::{
            refusal::Refusal,
            request::ClientId,
            response::{Answer, Policy, ReplyTo},
        },
        testing::{FAILS, NOT_FINITE, asked, job_of, model, policy, slot},
    };

    /// The whole way of requests whose rows hold their own ids, in batches of at most 8.
    async fn answers(jobs: &[(u64, usize)]) -> Vec<(u64, Answer)> {
        let metrics = Arc::new(Metrics::new());
        let batcher = Batcher::new(policy(8, 1000), metrics.clone());
        let slot = slot(model("7", 8));
        let mut receivers: Vec<UnboundedReceiver<_>> = jobs
            .iter()
            .map(|&(id, positions)| {
                // Queued before anything runs, so that the batches are the same every time.
                let (job, answers) = job_of(&slot, 0, id, positions);
                batcher.push(job).unwrap();
                answers
            })
            .collect();
        let executor = Executor::start(batcher.clone(), metrics.clone()).unwrap();
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

    fn values((_, answer): &(u64, Answer)) -> &[f32] {
        &answer.as_ref().unwrap().values
    }

    #[tokio::test]
    async fn everybody_gets_the_answers_to_their_own_rows() {
        let answers = answers(&[(1, 3), (2, 5), (3, 8), (4, 20), (5, 1)]).await;
        for (answer, (id, positions)) in answers.iter().zip([(1, 3), (2, 5), (3, 8), (4, 20), (5, 1)]) {
            assert_eq!(answer.0, id);
            assert_eq!(values(answer), vec![id as f32 / 1000.0; positions]);
            // The legal actions are 3 and 0, in this order: the priors' quotient says whose logits they are.
            let mut priors = Vec::new();
            let Policy::HalfPriors(bytes) = &answer.1.as_ref().unwrap().policy else {
                panic!("{answer:?}")
            };
            proto::priors::decode(bytes, 2 * positions, &mut priors).unwrap();
            for pair in priors.chunks(2) {
                let quotient = (pair[0] / pair[1]).ln();
                assert!((quotient - 3.0 * id as f32 / 100.0).abs() < 2e-3, "{pair:?}");
            }
        }
    }

    #[test]
    fn equal_positions_share_a_place() {
        let slot = slot(model("7", 8));
        let (sender, _answers) = mpsc::unbounded_channel();
        let pieces: Vec<Piece> = [vec![1, 2, 1], vec![3, 2], vec![1]]
            .into_iter()
            .map(|marks: Vec<u32>| {
                let mut asked = asked(marks.len(), 0);
                asked.indices = marks.iter().flat_map(|&mark| [mark, mark, 1]).collect();
                let named = Named {
                    model: slot.current().unwrap(),
                    slot: None,
                };
                let mut draft = Draft::new(named, asked);
                // One hash for all: what is compared is the question itself.
                draft.set_hashes(marks.iter().map(|&mark| u64::from(mark / 2)).collect());
                let job = Arc::new(draft.into_job(ClientId(1), ReplyTo::stream(0, sender.clone(), None)));
                let count = job.positions();
                Piece { job, first: 0, count }
            })
            .collect();
        let (places, distinct) = share_places(&pieces, 6);
        // 2 and 3 have the same hash: the second of them is not shared, which costs a place and no more.
        assert_eq!((places.as_slice(), distinct), ([0, 1, 0, 2, 1, 0].as_slice(), 3));
        let batch = assemble(&pieces, &places, Some(3), 4);
        assert_eq!(batch.rows(), [1, 1, 1, 2, 2, 1, 3, 3, 1, 1, 1, 1]);
        assert_eq!(assemble(&pieces, &places, None, 4).each().count(), 4);
        // Each place has its own legal actions, 3 and 0, and what pads them; so have the places that pad the batch.
        let (legal, width) = legal_actions(&pieces, &places, 5, 4);
        assert_eq!(width, 5);
        let row = [3, 0, 0, 0, 0];
        assert_eq!(legal, [row, row, row, [0; 5]].concat());
        // Who was not compared has places of its own, and takes nobody else's.
        let named = Named {
            model: slot.current().unwrap(),
            slot: None,
        };
        let stranger = Draft::new(named, crate::testing::asked(2, 1));
        let stranger = Arc::new(stranger.into_job(ClientId(2), ReplyTo::stream(0, sender.clone(), None)));
        let mut with_stranger = pieces.clone();
        let (job, first, count) = (stranger, 0, 2);
        with_stranger.insert(1, Piece { job, first, count });
        let (places, distinct) = share_places(&with_stranger, 8);
        assert_eq!(
            (places.as_slice(), distinct),
            ([0, 1, 0, 2, 3, 4, 1, 0].as_slice(), 5)
        );
        // Without duplicates there are no places.
        assert_eq!(share_places(&pieces[1..2], 2), (Vec::new(), 2));
    }

    #[tokio::test]
    async fn what_is_not_finite_is_an_error_of_its_own_request_only() {
        let not_finite = u64::from(NOT_FINITE);
        let answers = answers(&[(1, 3), (not_finite, 2), (3, 3), (not_finite, 20)]).await;
        assert_eq!(values(&answers[0]), [0.001; 3]);
        assert_eq!(answers[1].1, Err(Refusal::NotFinite { position: 0 }));
        assert_eq!(values(&answers[2]), [0.003; 3]);
        // A request in pieces is answered once, by its first piece.
        assert_eq!(answers[3].1, Err(Refusal::NotFinite { position: 0 }));
    }

    #[tokio::test]
    async fn a_batch_that_fails_does_not_stop_the_device() {
        let answers = answers(&[(1, 8), (u64::from(FAILS), 4), (2, 8), (3, 1)]).await;
        assert_eq!(values(&answers[0]), [0.001; 8]);
        assert_eq!(answers[1].1, Err(Refusal::Device("out of memory".into())));
        assert_eq!(values(&answers[2]), [0.002; 8]);
    }
}
