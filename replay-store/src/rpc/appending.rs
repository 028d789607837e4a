//! One `Append` stream. A slot for the acknowledgement is reserved before a game is read. Acknowledging therefore never waits, and no
//! more games are read from a sender that does not read its acknowledgements.

use std::{sync::Arc, time::Duration};

use proto::{
    ids::hex,
    v1::{AppendAck, Game},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::shutting_down;
use crate::{
    error::StoreFailed,
    record::{self, validate::Checked},
    settings::MAX_UNACKNOWLEDGED,
    store::Store,
    store::append::Verdict,
    store::shared::StoreState,
};

/// Maximum number of actions of a game that is checked and packed on the async thread (in less than a millisecond). Longer games are
/// checked and packed on a blocking thread.
const MAX_INLINE_ACTIONS: usize = 1024;

/// Maximum time for which a game waits before it is refused temporarily. Far below the time that senders wait for an acknowledgement.
const MAX_HOLD: Duration = Duration::from_secs(5);

type Acks = mpsc::Sender<Result<AppendAck, Status>>;
type AckPermit = mpsc::OwnedPermit<Result<AppendAck, Status>>;

/// Serves the stream in a new task.
pub(super) fn start(
    store: Arc<Store>,
    shutdown: CancellationToken,
    games: Streaming<Game>,
) -> ReceiverStream<Result<AppendAck, Status>> {
    let (acks, stream) = mpsc::channel(MAX_UNACKNOWLEDGED);
    tokio::spawn(async move {
        let Some(end) = run(&store, &shutdown, games, &acks).await else {
            // The sender has finished or disconnected. Queued games are still stored and acknowledged.
            return;
        };
        // All slots are free again when every queued game is acknowledged.
        if let Ok(mut slots) = acks.reserve_many(MAX_UNACKNOWLEDGED).await
            && let Some(slot) = slots.next()
        {
            slot.send(Err(end));
        }
    });
    ReceiverStream::new(stream)
}

/// Reads games until the sender has finished. Returns a status if the stream must end early.
async fn run(
    store: &Arc<Store>,
    shutdown: &CancellationToken,
    mut games: Streaming<Game>,
    acks: &Acks,
) -> Option<Status> {
    let mut state = store.state();
    loop {
        let next = async {
            let slot = acks.clone().reserve_owned().await.ok()?;
            let game = games.message().await.ok()??;
            Some((slot, game))
        };
        let (slot, game) = tokio::select! {
            next = next => next?,
            () = shutdown.cancelled() => return Some(shutting_down()),
            failure = failure(&mut state) => return Some(failure),
        };
        if !are_uses_sufficient(store).await {
            store.metrics().held.increment(1);
            let refused = Verdict::refused_for_now(
                "the learner is behind: positions have been used less often than replay.min_uses requires",
            );
            slot.send(Ok(refused.ack(game.id)));
            continue;
        }
        if let Err(failure) = queue(store, game, slot).await {
            return Some(Status::unavailable(failure.to_string()));
        }
    }
}

/// Waits until `min_uses` permits another game. Returns false if it does not within [`MAX_HOLD`].
async fn are_uses_sufficient(store: &Store) -> bool {
    if store.may_insert() {
        return true;
    }
    let _waiting = store.uses_bound().add_waiting_game();
    let mut permitted = store.uses_bound().subscribe();
    let freed = async {
        while !store.may_insert() {
            if permitted.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(MAX_HOLD, freed).await.is_ok()
}

/// Checks and packs a game, and queues it for the writer.
async fn queue(store: &Arc<Store>, game: Game, slot: AckPermit) -> Result<(), StoreFailed> {
    let id = game.id.clone();
    let prepared = if game.actions.len() <= MAX_INLINE_ACTIONS {
        prepare(store, game)
    } else {
        let store = Arc::clone(store);
        tokio::task::spawn_blocking(move || prepare(&store, game))
            .await
            .unwrap_or_else(|error| Err(Verdict::refused_for_now(format!("cannot be checked: {error}"))))
    };
    match prepared {
        Ok((checked, record)) => {
            let reply = Box::new(move |verdict: Verdict| {
                slot.send(Ok(verdict.ack(id)));
            });
            store.append(checked, record, reply).await
        }
        Err(refused) => {
            slot.send(Ok(refused.ack(id)));
            Ok(())
        }
    }
}

/// Checks and packs a game.
///
/// # Errors
/// Refusal of the game.
fn prepare(store: &Store, game: Game) -> Result<(Checked, Vec<u8>), Verdict> {
    let checked = store.check(&game).map_err(|refusal| {
        store.metrics().refused(refusal.field);
        tracing::debug!(game = hex(&game.id), %refusal, actor = game.actor, "game refused");
        Verdict::refused(refusal)
    })?;
    let record = record::encode(game);
    let record = record.map_err(|error| Verdict::refused_for_now(format!("cannot be packed: {error}")))?;
    Ok((checked, record))
}

/// Resolves when the store has failed.
async fn failure(state: &mut tokio::sync::watch::Receiver<StoreState>) -> Status {
    match state
        .wait_for(|state| *state != StoreState::Running)
        .await
        .as_deref()
    {
        Ok(StoreState::Failed(failure)) => Status::unavailable(failure.to_string()),
        _ => shutting_down(),
    }
}
