//! One `Sample` stream. The next batches are drawn while a batch is being sent. Memory for a batch is reserved before it is drawn.

use std::time::Duration;

use futures::stream::BoxStream;
use prost::Message as _;
use proto::v1::{Batch, Purpose, SampleRequest};
use service::calls::replies::{Replies, Reserved, handing_over};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::{Rpc, shutting_down};
use crate::{
    log::drawn::BatchKey,
    settings::MAX_BATCH_POSITIONS,
    store::shared::StoreState,
    store::{SampleError, Store},
};

/// Maximum number of drawn batches that wait for the client.
const MAX_READY_BATCHES: usize = 2;

/// Memory that is reserved for each position of the first batch of a stream, in bytes. Later batches are expected to be as long as the
/// one before.
const POSITION_BYTES: usize = 512;

/// Interval at which a waiting batch checks its conditions without a notification.
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);

type Batches = mpsc::Sender<(Result<Batch, Status>, Reserved)>;

/// Checks the request and serves the stream in a new task.
pub(super) fn start(
    rpc: Rpc,
    replies: Replies,
    request: SampleRequest,
) -> Result<BoxStream<'static, Result<Batch, Status>>, Status> {
    if !(1..=MAX_BATCH_POSITIONS).contains(&request.batch_size) {
        return Err(Status::invalid_argument(format!(
            "batch_size: {} is not between 1 and {MAX_BATCH_POSITIONS}",
            request.batch_size
        )));
    }
    if request.batches == 0 {
        return Err(Status::invalid_argument("batches: 0 is not allowed"));
    }
    let window = rpc.store.settings().window_positions;
    if request.min_positions > window {
        return Err(Status::failed_precondition(format!(
            "min_positions: {} exceeds the size of the window (replay.window_positions = {window})",
            request.min_positions
        )));
    }
    let (batches, stream) = mpsc::channel(MAX_READY_BATCHES);
    let shutdown = rpc.shutdown.clone();
    let mut drawing = Drawing {
        expected: request.batch_size as usize * POSITION_BYTES,
        rpc,
        replies,
        request,
    };
    tokio::spawn(async move {
        let end = tokio::select! {
            end = drawing.run(&batches) => end,
            () = shutdown.cancelled() => Err(shutting_down()),
            // The client has disconnected or cancelled the call.
            () = batches.closed() => Ok(()),
        };
        if let Err(status) = end {
            // Sending fails if the client has disconnected.
            let _ = batches.send((Err(status), Reserved::default())).await;
        }
    });
    Ok(handing_over(ReceiverStream::new(stream)))
}

/// The batches of one request.
struct Drawing {
    rpc: Rpc,
    replies: Replies,
    request: SampleRequest,
    /// Expected length of the next batch, in bytes.
    expected: usize,
}

impl Drawing {
    /// Draws a batch, after its memory has been reserved.
    async fn draw(
        &mut self,
        draw: impl FnOnce(&Store) -> Result<Batch, SampleError> + Send + 'static,
    ) -> Result<Result<(Batch, Reserved), SampleError>, Status> {
        let mut reserved = self.replies.reserve(self.expected).await;
        let drawn = self.rpc.on_thread_of(&self.rpc.draws, draw).await?;
        Ok(drawn.map(|batch| {
            self.expected = batch.encoded_len();
            reserved.resize(self.expected);
            (batch, reserved)
        }))
    }

    /// Sends all batches.
    async fn run(&mut self, batches: &Batches) -> Result<(), Status> {
        for at in 0..u64::from(self.request.batches) {
            let number = self.request.first_batch.wrapping_add(at);
            let next = match self.request.purpose() {
                Purpose::Training => Some(self.training_batch(number).await?),
                purpose => self.evaluation_batch(purpose, number).await?,
            };
            let Some((batch, reserved)) = next else {
                return Ok(());
            };
            if batches.send((Ok(batch), reserved)).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Draws a batch on which a network is measured. Returns `None` if there are no positions of this purpose.
    async fn evaluation_batch(
        &mut self,
        purpose: Purpose,
        number: u64,
    ) -> Result<Option<(Batch, Reserved)>, Status> {
        let (size, with_decisions) = (self.request.batch_size as usize, self.request.decisions);
        let seed = self.request.seed;
        let draw = move |store: &Store| store.evaluation_batch(purpose, seed, number, size, with_decisions);
        match self.draw(draw).await? {
            Ok(batch) => Ok(Some(batch)),
            Err(SampleError::Empty) => Ok(None),
            Err(SampleError::Failed(failure)) => Err(Status::unavailable(failure.to_string())),
            Err(error) => Err(Status::data_loss(error.to_string())),
        }
    }

    /// Draws a batch for training, when there are enough positions and the store's bounds allow it.
    async fn training_batch(&mut self, number: u64) -> Result<(Batch, Reserved), Status> {
        let store = self.rpc.store.clone();
        let (mut positions, mut state) = (store.positions(), store.state());
        let enough = self.request.min_positions.max(1);
        let (size, with_decisions) = (self.request.batch_size as usize, self.request.decisions);
        let key = BatchKey {
            seed: self.request.seed,
            line: self.request.line,
            number,
        };
        // While a batch waits, for whatever reason, games are accepted, so that batches and games never wait for each other.
        let mut waiting = None;
        loop {
            if waiting.is_some() || *positions.borrow() < enough {
                waiting.get_or_insert_with(|| store.uses_bound().add_waiting_batch());
                tokio::select! {
                    changed = positions.changed() => changed.map_err(|_| shutting_down())?,
                    () = tokio::time::sleep(RECHECK_INTERVAL) => {}
                    _ = state.wait_for(|state| matches!(state, StoreState::Failed(_))) => {
                        return Err(Status::unavailable("the replay store has failed"));
                    }
                }
                if *positions.borrow_and_update() < enough {
                    continue;
                }
            }
            let draw = move |store: &Store| store.training_batch(key, size, with_decisions);
            match self.draw(draw).await? {
                Ok(batch) => return Ok(batch),
                // The window has become empty, `max_uses` is reached, or the disk is full: wait and draw again.
                Err(SampleError::Empty | SampleError::Held | SampleError::Full) => {
                    waiting.get_or_insert_with(|| store.uses_bound().add_waiting_batch());
                }
                Err(error @ SampleError::Unreadable) => return Err(Status::data_loss(error.to_string())),
                Err(SampleError::Failed(failure)) => return Err(Status::unavailable(failure.to_string())),
            }
        }
    }
}
