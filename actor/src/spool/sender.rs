//! Sends finished games from the spool to the replay store, each until it is acknowledged by its id.
//!
//! The store knows games by id and stores each once, so games that were not acknowledged when a stream breaks are sent again. A
//! game leaves the spool only when it is acknowledged, or for `refused/` when the store will never take it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use prost::Message as _;
use proto::v1::{AppendAck, Game, replay_store_client::ReplayStoreClient};
use service::{
    backoff::Backoff,
    connect::{Link, MAX_MESSAGE_BYTES},
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};

use crate::{
    GameId,
    log_throttle::LogThrottle,
    metrics::Metrics,
    spool::{Position, Spool, SpoolError},
};

/// Games on their way that are not acknowledged yet.
const WINDOW: usize = 64;

/// How long the sender waits for what.
#[derive(Clone, Debug)]
pub struct Patience {
    /// For the acknowledgement of a game; then the stream is taken for dead and opened anew.
    pub acknowledgement: Duration,
    /// Before the first new attempt.
    pub first_retry: Duration,
    /// Between attempts at most.
    pub longest_retry: Duration,
    /// To empty the spool when the actor stops. What remains is sent at the next start.
    pub drain: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            acknowledgement: Duration::from_secs(30),
            first_retry: Duration::from_millis(100),
            longest_retry: Duration::from_secs(10),
            drain: Duration::from_secs(5),
        }
    }
}

/// Error: games cannot be sent to this store, and another attempt would fail as well.
#[derive(Debug, thiserror::Error)]
#[error("the replay store {store} will not talk to this actor ({code:?}: {message}); is the address right?")]
pub struct SenderError {
    /// Address of the store.
    pub store: String,
    /// The gRPC status.
    pub code: Code,
    /// The store's words.
    pub message: String,
}

/// Sends the games of the spool to the store.
pub struct Sender {
    /// How to reach the store.
    pub channel: Link,
    /// Address of the store, for messages.
    pub store: String,
    /// What is sent.
    pub spool: Arc<Spool>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// How long to wait.
    pub patience: Patience,
    /// Nothing is added to the spool any more: send what is there, for a while, and end.
    pub drain: CancellationToken,
    trouble: LogThrottle,
}

enum End {
    /// Draining, and everything is acknowledged.
    Empty,
    /// Open another stream.
    Broken(Status),
}

impl Sender {
    /// Makes a sender of the games in `spool` to the store at this address.
    pub fn new(
        channel: Link,
        store: String,
        spool: Arc<Spool>,
        metrics: Arc<Metrics>,
        patience: Patience,
        drain: CancellationToken,
    ) -> Self {
        Self {
            channel,
            store,
            spool,
            metrics,
            patience,
            drain,
            trouble: LogThrottle::new(Duration::from_secs(10)),
        }
    }

    /// Sends until asked to drain, and then until nothing is left for the store, it goes away or the patience ends.
    ///
    /// # Errors
    /// [`SenderError`] where the address is no replay store's.
    pub async fn run(self) -> Result<(), SenderError> {
        let drain_is_over = async {
            self.drain.cancelled().await;
            tokio::time::sleep(self.patience.drain).await;
        };
        tokio::select! {
            sent = self.keep_sending() => sent,
            () = drain_is_over => Ok(()),
        }
    }

    async fn keep_sending(&self) -> Result<(), SenderError> {
        let Patience {
            first_retry,
            longest_retry,
            ..
        } = self.patience;
        let mut backoff = Backoff::new(first_retry, longest_retry, rand::random());
        while self.wait_for_a_game().await {
            let status = match self.stream(&mut backoff).await {
                End::Empty => return Ok(()),
                End::Broken(status) => status,
            };
            if is_final(status.code()) {
                return Err(SenderError {
                    store: self.store.clone(),
                    code: status.code(),
                    message: status.message().into(),
                });
            }
            if self.trouble.allows() {
                tracing::warn!(
                    code = ?status.code(),
                    reason = status.message(),
                    store = self.store,
                    waiting = self.spool.size().games,
                    "the replay store takes no games, trying again"
                );
            }
            if !backoff.wait(&self.drain).await {
                // One last attempt, so that a store that has just come back gets what there is.
                if let End::Broken(_) = self.stream(&mut backoff).await {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// An idle store is not bothered. False when the spool is empty and will stay so.
    async fn wait_for_a_game(&self) -> bool {
        while self.spool.next_after(None).is_none() {
            tokio::select! {
                biased;
                () = self.spool.added() => {}
                () = self.drain.cancelled() => return self.spool.next_after(None).is_some(),
            }
        }
        true
    }

    async fn stream(&self, backoff: &mut Backoff) -> End {
        let mut client =
            ReplayStoreClient::new(self.channel.clone()).max_encoding_message_size(MAX_MESSAGE_BYTES);
        let (games, outbound) = mpsc::channel(WINDOW);
        let opening = client.append(ReceiverStream::new(outbound));
        match timeout(self.patience.acknowledgement, opening).await {
            Ok(Ok(acks)) => self.exchange(games, acks.into_inner(), backoff).await,
            Ok(Err(status)) => End::Broken(status),
            Err(_) => End::Broken(Status::deadline_exceeded("the stream was not opened in time")),
        }
    }

    async fn exchange(
        &self,
        games: mpsc::Sender<Game>,
        mut acks: Streaming<AppendAck>,
        backoff: &mut Backoff,
    ) -> End {
        let mut sent_to: Option<Position> = None;
        // When each game must be acknowledged. All have the same patience, so the oldest is due first.
        let mut unacknowledged: HashMap<GameId, Instant> = HashMap::new();
        loop {
            while unacknowledged.len() < WINDOW {
                let Some((position, id)) = self.spool.next_after(sent_to) else {
                    break;
                };
                sent_to = Some(position);
                if unacknowledged.contains_key(&id) {
                    continue;
                }
                let Some(game) = self.read(position).await else {
                    continue;
                };
                if game.encoded_len() > MAX_MESSAGE_BYTES {
                    // No store would ever take it, and it would break every stream.
                    self.set_aside(id, format!("it is larger than {MAX_MESSAGE_BYTES} bytes"))
                        .await;
                    continue;
                }
                unacknowledged.insert(id, Instant::now() + self.patience.acknowledgement);
                // There is room: the window is no larger than the channel.
                if games.send(game).await.is_err() {
                    break;
                }
            }
            if unacknowledged.is_empty()
                && self.drain.is_cancelled()
                && self.spool.next_after(sent_to).is_none()
            {
                return End::Empty;
            }
            let due = unacknowledged.values().min().copied();
            tokio::select! {
                biased;
                ack = acks.message() => match ack {
                    Ok(Some(ack)) => match self.take(&ack).await {
                        Taken::Settled(id) => {
                            unacknowledged.remove(&id);
                            backoff.reset();
                        }
                        Taken::Later(status) => return End::Broken(status),
                        Taken::Nonsense => {}
                    },
                    Ok(None) => return End::Broken(Status::unavailable("the store ended the stream")),
                    Err(status) => return End::Broken(status),
                },
                () = self.spool.added(), if unacknowledged.len() < WINDOW => {}
                () = self.drain.cancelled(), if unacknowledged.is_empty() => {}
                () = wait_until(due) => {
                    return End::Broken(Status::deadline_exceeded("a game was not acknowledged in time"));
                }
            }
        }
    }

    async fn take(&self, ack: &AppendAck) -> Taken {
        let Some(id) = GameId::from_bytes(&ack.id) else {
            tracing::warn!(
                bytes = ack.id.len(),
                "the store acknowledges something that is no game id"
            );
            return Taken::Nonsense;
        };
        if ack.refused.is_empty() {
            return self.acknowledged(id, ack.duplicate).await;
        }
        if ack.retry {
            return Taken::Later(Status::unavailable(ack.refused.clone()));
        }
        if self.set_aside(id, ack.refused.clone()).await {
            Taken::Settled(id)
        } else {
            Taken::Later(Status::unavailable(ack.refused.clone()))
        }
    }

    /// Keeps a game apart that the store will never take; whether that worked.
    async fn set_aside(&self, id: GameId, reason: String) -> bool {
        let (spool, text) = (Arc::clone(&self.spool), reason.clone());
        match on_disk(move || spool.refuse(id, &text)).await {
            Ok(path) => {
                self.metrics.games_refused.add(1);
                tracing::error!(game = %id, reason, kept = %path.display(), "a game is refused");
                true
            }
            Err(error) => {
                tracing::error!(game = %id, reason, %error, "a game is refused, and cannot be set aside");
                false
            }
        }
    }

    async fn acknowledged(&self, id: GameId, is_duplicate: bool) -> Taken {
        if !settle(&self.spool, &self.metrics, id, is_duplicate).await {
            // Acknowledged twice.
            return Taken::Nonsense;
        }
        if self.trouble.reset() {
            tracing::info!(store = self.store, "the replay store takes games");
        }
        Taken::Settled(id)
    }

    /// Reads a game; one that the disk has lost is reported and passed over.
    async fn read(&self, position: Position) -> Option<Game> {
        let spool = Arc::clone(&self.spool);
        on_disk(move || spool.read(position))
            .await
            .inspect_err(|error| tracing::error!(%error, "a finished game is lost"))
            .ok()
    }
}

/// A store has a game: it leaves the spool. False where it had left it before.
async fn settle(spool: &Arc<Spool>, metrics: &Metrics, id: GameId, is_duplicate: bool) -> bool {
    let spool = Arc::clone(spool);
    match on_disk(move || spool.acknowledge(id)).await {
        Ok(false) => return false,
        Ok(true) => {}
        Err(error) => tracing::warn!(%error, "an acknowledged game cannot be removed"),
    }
    metrics.games_acknowledged.add(1);
    if is_duplicate {
        metrics.games_duplicate.add(1);
    }
    true
}

enum Taken {
    /// The game is out of the spool.
    Settled(GameId),
    /// The store cannot take it now.
    Later(Status),
    /// Nothing follows from it.
    Nonsense,
}

/// Runs file operations where they block nobody.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SpoolError> + Send + 'static,
) -> Result<T, SpoolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(SpoolError::Io {
            action: "cannot work on",
            path: "the spool".into(),
            source: error.into(),
        }),
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Whether the other side is no replay store, or will not talk to us.
fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::Unimplemented | Code::Unauthenticated | Code::PermissionDenied
    )
}
