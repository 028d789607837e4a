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
