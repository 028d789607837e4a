//! The thread that owns the device: one batch after the other.

use std::{sync::Arc, thread, time::Instant};

use tokio::sync::mpsc;

use crate::{
    batcher::Batcher,
    job::Piece,
    metrics::Metrics,
    model::Model,
    queue::Formed,
    runner::{Batch, Outputs, RunError},
};

/// Finished batches that may wait to be answered.
const FINISHED: usize = 2;

/// A batch that the device is done with.
pub struct Finished {
    /// The model that answered.
    pub model: Arc<Model>,
    /// Whose positions it holds, in order.
    pub pieces: Vec<Piece>,
    /// What the model gave.
    pub outputs: Result<Box<dyn Outputs>, RunError>,
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
                let executed = execute(formed, &metrics);
                batcher.finished();
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
    let size = model.buckets.fit(positions);
    let began = Instant::now();
    for piece in &pieces {
        if piece.first == 0 {
            metrics.queued_for(piece.job.queued.elapsed());
        }
    }
    let outputs = model.run(assemble(&pieces, positions, size));
    metrics.batch(positions, size, began.elapsed());
    if let Err(error) = &outputs {
        metrics.device_failed();
        tracing::error!(version = model.info.version, positions, %error, "the device failed");
    }
    Finished {
        model,
        pieces,
        outputs,
    }
}

/// Rows of all pieces, padded with copies of the first one: a row that is known to be valid, and as fast as any.
fn assemble(pieces: &[Piece], positions: usize, size: usize) -> Batch {
    let count: usize = pieces.iter().map(|piece| piece.rows().len()).sum();
    let row_len = count / positions.max(1);
    let mut rows = Vec::with_capacity(size * row_len);
    for piece in pieces {
        // Validated: indices are below 4096, constants below their limits. Larger constants would saturate.
        rows.extend(
            piece
                .rows()
                .iter()
                .map(|&number| i32::try_from(number).unwrap_or(i32::MAX)),
        );
    }
    for _ in positions..size {
        rows.extend_from_within(..row_len);
    }
    Batch::new(rows, size)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc::UnboundedReceiver;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        job::Answer,
        models::Models,
        refusal::Refusal,
        reply,
        testing::{FAILS, NOT_FINITE, job, model},
    };

    /// The whole way of requests whose rows hold their own ids, in batches of at most 8.
    async fn answers(jobs: &[(u64, usize)]) -> Vec<(u64, Answer)> {
        let metrics = Arc::new(Metrics::new());
        let models = Arc::new(Models::new("latest"));
        models.serve(model("7", 8));
        let batcher = Batcher::new(models, 1000, Duration::ZERO, metrics.clone());
        let mut receivers: Vec<UnboundedReceiver<_>> = jobs
            .iter()
            .map(|&(id, positions)| {
                // Queued before anything runs, so that the batches are the same every time.
                let (job, answers) = job(0, id, positions);
                batcher.push(job).unwrap();
                answers
            })
            .collect();
        let executor = Executor::start(batcher.clone(), metrics.clone()).unwrap();
        tokio::spawn(async move { batcher.run(executor.batches, CancellationToken::new()).await });
        tokio::spawn(async move { reply::run(executor.finished, &metrics).await });
        let mut answers = Vec::new();
        for receiver in &mut receivers {
            answers.push(receiver.recv().await.unwrap());
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
            let reply = answer.1.as_ref().unwrap();
            proto::priors::decode(&reply.priors, 2 * positions, &mut priors).unwrap();
            for pair in priors.chunks(2) {
                let quotient = (pair[0] / pair[1]).ln();
                assert!((quotient - 3.0 * id as f32 / 100.0).abs() < 2e-3, "{pair:?}");
            }
        }
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
