//! One `Sample` stream: the next batch is made while the last one is on its way.

use std::{sync::Arc, time::Duration};

use proto::v1::{Batch, Purpose, SampleRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::stopping;
use crate::{
    settings::MAX_BATCH_POSITIONS,
    store::shared::State,
    store::{SampleError, Store},
    window::sampler::{Measured, WantedTargets},
};

/// Batches that are ready and wait for the client.
const READY: usize = 2;

/// How long a batch that waits does so without another look.
const LOOK: Duration = Duration::from_millis(500);

/// Checks the request and serves the stream in a task of its own.
pub(super) fn start(
    store: Arc<Store>,
    shutdown: CancellationToken,
    request: SampleRequest,
) -> Result<ReceiverStream<Result<Batch, Status>>, Status> {
    if !(1..=MAX_BATCH_POSITIONS).contains(&request.batch_size) {
        return Err(Status::invalid_argument(format!(
            "batch_size: {}, 1 to {MAX_BATCH_POSITIONS} are possible",
            request.batch_size
        )));
    }
    if request.batches == 0 {
        return Err(Status::invalid_argument("batches: 0 asks for nothing"));
    }
    let window = store.settings().window_positions;
    if request.min_positions > window {
        return Err(Status::failed_precondition(format!(
            "min_positions: {} is more than the window ever holds for certain ({window}, replay.window_positions)",
            request.min_positions
        )));
    }
    let wanted = WantedTargets::of(&request)
        .map_err(|name| Status::invalid_argument(format!("targets: this store does not know `{name}`")))?;
    let wanted = Arc::new(wanted);
    let (batches, stream) = mpsc::channel(READY);
    tokio::spawn(async move {
        let end = tokio::select! {
            end = run(&store, &request, &wanted, &batches) => end,
            () = shutdown.cancelled() => Err(stopping()),
            // The client has gone, or gave up waiting.
            () = batches.closed() => Ok(()),
        };
        if let Err(status) = end {
            // A client that has gone needs no status.
            let _ = batches.send(Err(status)).await;
        }
    });
    Ok(ReceiverStream::new(stream))
}

/// Batches to measure a network by: none where there is no position of that kind.
async fn run_measuring(
    store: &Arc<Store>,
    of: Measured,
    request: &SampleRequest,
    wanted: &Arc<WantedTargets>,
    batches: &mpsc::Sender<Result<Batch, Status>>,
) -> Result<(), Status> {
    for at in 0..u64::from(request.batches) {
        let (drawing, wanted) = (Arc::clone(store), Arc::clone(wanted));
        let (seed, size) = (request.seed, request.batch_size as usize);
        let number = request.first_batch.wrapping_add(at);
        let drawn =
            tokio::task::spawn_blocking(move || drawing.measuring_batch(of, seed, number, size, &wanted))
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
    wanted: &Arc<WantedTargets>,
    batches: &mpsc::Sender<Result<Batch, Status>>,
) -> Result<(), Status> {
    match request.purpose() {
        Purpose::Training => {}
        Purpose::HeldOut => return run_measuring(store, Measured::HeldOut, request, wanted, batches).await,
        Purpose::Trained => return run_measuring(store, Measured::Trained, request, wanted, batches).await,
    }
    let mut positions = store.positions();
    let mut state = store.state();
    for at in 0..u64::from(request.batches) {
        let number = request.first_batch.wrapping_add(at);
        // While a batch waits, whatever for, games are let in: so the two sides can never wait for each other.
        let mut waiting = None;
        let batch = loop {
            let enough = request.min_positions.max(1);
            if waiting.is_some() || *positions.borrow() < enough {
                waiting.get_or_insert_with(|| store.gate().batch_waits());
                tokio::select! {
                    changed = positions.changed() => changed.map_err(|_| stopping())?,
                    () = tokio::time::sleep(LOOK) => {}
                    _ = state.wait_for(|state| matches!(state, State::Failed(_))) => {
                        return Err(Status::unavailable("the store has failed"));
                    }
                }
                if *positions.borrow_and_update() < enough {
                    continue;
                }
            }
            let (drawing, seed, size) = (Arc::clone(store), request.seed, request.batch_size as usize);
            let wanted = Arc::clone(wanted);
            let draw = move || drawing.batch_with_targets(seed, number, size, &wanted);
            let drawn = tokio::task::spawn_blocking(draw)
                .await
                .map_err(|error| Status::internal(error.to_string()))?;
            match drawn {
                Ok(batch) => break batch,
                // The last position was lost in the meantime, or the bound is reached, or nothing can be counted: wait.
                Err(SampleError::Empty | SampleError::Held | SampleError::Full) => {
                    waiting.get_or_insert_with(|| store.gate().batch_waits());
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
