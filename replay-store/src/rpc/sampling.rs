//! One `Sample` stream. The next batches are drawn while a batch is being sent.

use std::{sync::Arc, time::Duration};

use proto::v1::{Batch, Purpose, SampleRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::shutting_down;
use crate::{
    log::drawn::BatchKey,
    settings::MAX_BATCH_POSITIONS,
    store::shared::StoreState,
    store::{SampleError, Store},
};

/// Maximum number of drawn batches that wait for the client.
const MAX_READY_BATCHES: usize = 2;

/// Interval at which a waiting batch checks its conditions without a notification.
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Checks the request and serves the stream in a new task.
pub(super) fn start(
    store: Arc<Store>,
    shutdown: CancellationToken,
    request: SampleRequest,
) -> Result<ReceiverStream<Result<Batch, Status>>, Status> {
    if !(1..=MAX_BATCH_POSITIONS).contains(&request.batch_size) {
        return Err(Status::invalid_argument(format!(
            "batch_size: {} is not between 1 and {MAX_BATCH_POSITIONS}",
            request.batch_size
        )));
    }
    if request.batches == 0 {
        return Err(Status::invalid_argument("batches: 0 is not allowed"));
    }
    let window = store.settings().window_positions;
    if request.min_positions > window {
        return Err(Status::failed_precondition(format!(
            "min_positions: {} exceeds the size of the window (replay.window_positions = {window})",
            request.min_positions
        )));
    }
    let (batches, stream) = mpsc::channel(MAX_READY_BATCHES);
    tokio::spawn(async move {
        let end = tokio::select! {
            end = run(&store, &request, &batches) => end,
            () = shutdown.cancelled() => Err(shutting_down()),
            // The client has disconnected or cancelled the call.
            () = batches.closed() => Ok(()),
        };
        if let Err(status) = end {
            // Sending fails if the client has disconnected.
            let _ = batches.send(Err(status)).await;
        }
    });
    Ok(ReceiverStream::new(stream))
}

/// Sends batches on which a network is measured. Sends none if there are no positions of this purpose.
async fn run_evaluation(
    store: &Arc<Store>,
    purpose: Purpose,
    request: &SampleRequest,
    batches: &mpsc::Sender<Result<Batch, Status>>,
) -> Result<(), Status> {
    for at in 0..u64::from(request.batches) {
        let (drawing, with_decisions) = (Arc::clone(store), request.decisions);
        let (seed, size) = (request.seed, request.batch_size as usize);
        let number = request.first_batch.wrapping_add(at);
        let draw = move || drawing.evaluation_batch(purpose, seed, number, size, with_decisions);
        let drawn = tokio::task::spawn_blocking(draw)
            .await
            .map_err(|error| Status::internal(error.to_string()))?;
        let batch = match drawn {
            Ok(batch) => batch,
            Err(SampleError::Empty) => return Ok(()),
            Err(SampleError::Failed(failure)) => return Err(Status::unavailable(failure.to_string())),
            Err(error) => return Err(Status::data_loss(error.to_string())),
        };
        if batches.send(Ok(batch)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

async fn run(
    store: &Arc<Store>,
    request: &SampleRequest,
    batches: &mpsc::Sender<Result<Batch, Status>>,
) -> Result<(), Status> {
    let purpose = request.purpose();
    if purpose != Purpose::Training {
        return run_evaluation(store, purpose, request, batches).await;
    }
    let mut positions = store.positions();
    let mut state = store.state();
    for at in 0..u64::from(request.batches) {
        let number = request.first_batch.wrapping_add(at);
        // While a batch waits, for whatever reason, games are accepted, so that batches and games never wait for each other.
        let mut waiting = None;
        let batch = loop {
            let enough = request.min_positions.max(1);
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
            let (drawing, size) = (Arc::clone(store), request.batch_size as usize);
            let with_decisions = request.decisions;
            let key = BatchKey {
                seed: request.seed,
                line: request.line,
                number,
            };
            let draw = move || drawing.training_batch(key, size, with_decisions);
            let drawn = tokio::task::spawn_blocking(draw)
                .await
                .map_err(|error| Status::internal(error.to_string()))?;
            match drawn {
                Ok(batch) => break batch,
                // The window has become empty, `max_uses` is reached, or the disk is full: wait and draw again.
                Err(SampleError::Empty | SampleError::Held | SampleError::Full) => {
                    waiting.get_or_insert_with(|| store.uses_bound().add_waiting_batch());
                }
                Err(error @ SampleError::Unreadable) => return Err(Status::data_loss(error.to_string())),
                Err(SampleError::Failed(failure)) => return Err(Status::unavailable(failure.to_string())),
            }
        };
        if batches.send(Ok(batch)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
