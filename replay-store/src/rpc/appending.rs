//! One `Append` stream. A slot for the acknowledgement is taken before a game is read, so telling the
//! sender never waits, and a sender that reads no acknowledgements is read from no further.

use std::{sync::Arc, time::Duration};

use proto::v1::{AppendAck, Game};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::stopping;
use crate::{
    error::StoreFailed, record, record::validate, settings::MAX_UNACKNOWLEDGED, store::Store,
    store::append::Verdict, store::shared::State,
};

/// Games above this many positions are packed on a blocking thread (a smaller one takes under a millisecond).
const PACKED_AT_ONCE: usize = 1024;

/// How long a game is held back before it is refused for now: well below what a sender waits for an acknowledgement.
const HOLD: Duration = Duration::from_secs(5);

type Acks = mpsc::Sender<Result<AppendAck, Status>>;
type Slot = mpsc::OwnedPermit<Result<AppendAck, Status>>;

/// Serves the stream in a task of its own.
pub(super) fn start(
    store: Arc<Store>,
    shutdown: CancellationToken,
    games: Streaming<Game>,
) -> ReceiverStream<Result<AppendAck, Status>> {
    let (acks, stream) = mpsc::channel(MAX_UNACKNOWLEDGED);
    tokio::spawn(async move {
        let Some(end) = run(&store, &shutdown, games, &acks).await else {
            // The sender has finished or gone; what waits is stored and acknowledged still.
            return;
        };
        // After all that waits is settled: every slot is free again.
        if let Ok(mut slots) = acks.reserve_many(MAX_UNACKNOWLEDGED).await
            && let Some(slot) = slots.next()
        {
            slot.send(Err(end));
        }
    });
    ReceiverStream::new(stream)
}

/// Takes games until the sender is done (`None`) or the stream must end with a status.
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
            () = shutdown.cancelled() => return Some(stopping()),
            failure = failure(&mut state) => return Some(failure),
        };
        let slot = match admit(store, slot, &game.id).await {
            Ok(slot) => slot,
            Err(Held) => continue,
        };
        if let Err(failure) = take(store, game, slot).await {
            return Some(Status::unavailable(failure.to_string()));
        }
    }
}

/// The game was refused for now, because batches are too far behind.
struct Held;

/// Holds a game back while batches are too far behind; one that has waited for long is refused, to be sent again.
async fn admit(store: &Arc<Store>, slot: Slot, id: &[u8]) -> Result<Slot, Held> {
    if store.may_insert() {
        return Ok(slot);
    }
    let _waiting = store.gate().game_waits();
    let mut opened = store.gate().opened();
    let freed = async {
        while !store.may_insert() {
            if opened.changed().await.is_err() {
                return;
            }
        }
    };
    if tokio::time::timeout(HOLD, freed).await.is_ok() {
        return Ok(slot);
    }
    store.metrics().refused("held");
    let refused = Verdict::Refused {
        reason: "the learner is behind: positions have not been used as often as replay.min_uses asks for"
            .into(),
        retry: true,
    };
    slot.send(Ok(refused.ack(id.to_vec().into())));
    Err(Held)
}

/// Checks and packs a game, and queues it for the writer.
async fn take(store: &Arc<Store>, game: Game, slot: Slot) -> Result<(), StoreFailed> {
    let settings = store.settings();
    let checked = match validate::check(&game, &settings.game, settings.options) {
        Ok(checked) => checked,
        Err(refusal) => {
            store.metrics().refused(refusal.field);
            tracing::debug!(%refusal, actor = game.actor, "a game is refused");
            slot.send(Ok(Verdict::refused(refusal).ack(game.id)));
            return Ok(());
        }
    };
    let id = game.id.clone();
    let packed = if game.actions.len() <= PACKED_AT_ONCE {
        record::encode(game)
    } else {
        tokio::task::spawn_blocking(move || record::encode(game))
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
    };
    match packed {
        Ok(record) => {
            let reply = Box::new(move |verdict: Verdict| {
                slot.send(Ok(verdict.ack(id)));
            });
            store.append(checked, record, reply).await
        }
        Err(error) => {
            let refused = Verdict::Refused {
                reason: format!("cannot be packed: {error}"),
                retry: true,
            };
            slot.send(Ok(refused.ack(id)));
            Ok(())
        }
    }
}

/// Resolves when the store has failed.
async fn failure(state: &mut tokio::sync::watch::Receiver<State>) -> Status {
    match state.wait_for(|state| *state != State::Running).await.as_deref() {
        Ok(State::Failed(failure)) => Status::unavailable(failure.to_string()),
        _ => stopping(),
    }
}
