//! Sends finished games from the spool to the replay store, each until it is acknowledged by its id.
//!
//! The store knows games by id and stores each once, so games that were not acknowledged when a stream breaks are sent again. A
//! game leaves the spool only when it is acknowledged, or for `refused/` when the store will never take it.
//!
//! At the log level debug there is a line for each game that is sent, with the SHA-256 of its message, and a line for each
//! acknowledgement. Tests compare these lines with the games that the store has.

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::bail;
use prost::Message as _;
use proto::v1::{AppendAck, Game, replay_store_client::ReplayStoreClient};
use service::{
    backoff::Backoff,
    connect::{Link, MAX_MESSAGE_BYTES},
    log_throttle::LogThrottle,
};
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};

use crate::{
    GameId,
    metrics::Metrics,
    spool::{Spool, SpoolPosition},
};

/// Maximum number of sent games without acknowledgement.
const WINDOW: usize = 64;

/// Time limits of the sender.
#[derive(Clone, Debug)]
pub struct SenderLimits {
    /// Limit for the acknowledgement of a game; afterwards a new stream is opened.
    pub acknowledgement: Duration,
    /// Delay before the first new attempt.
    pub first_retry: Duration,
    /// Longest delay between attempts.
    pub longest_retry: Duration,
    /// Limit for sending the remaining games when the actor stops. Games left then are sent after the next start.
    pub drain: Duration,
}

impl Default for SenderLimits {
    fn default() -> Self {
        Self {
            acknowledgement: Duration::from_secs(30),
            first_retry: Duration::from_millis(100),
            longest_retry: Duration::from_secs(10),
            drain: Duration::from_secs(5),
        }
    }
}

/// Sends the games of the spool to the store.
pub struct Sender {
    /// Link to the store.
    pub channel: Link,
    /// Address of the store, for messages.
    pub store: String,
    /// The spool whose games are sent.
    pub spool: Arc<Spool>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Time limits.
    pub limits: SenderLimits,
    /// Cancelled when no more games will be added: the sender then sends the remaining games within a time limit and ends.
    pub drain: CancellationToken,
    /// Log throttle for a store that accepts no games.
    pub trouble: LogThrottle,
}

impl Sender {
    /// Sends games until asked to drain, and then until all are acknowledged, the store fails or the time limit ends.
    ///
    /// # Errors
    /// The address is not that of a replay store, or the store rejects this actor; another attempt would fail as well.
    pub async fn run(self) -> anyhow::Result<()> {
        let drain_is_over = async {
            self.drain.cancelled().await;
            tokio::time::sleep(self.limits.drain).await;
        };
        tokio::select! {
            sent = self.keep_sending() => sent?,
            () = drain_is_over => {}
        }
        let left = self.spool.size().games;
        if left > 0 {
            tracing::info!(
                games = left,
                "finished games wait in the spool for the next start"
            );
        }
        Ok(())
    }

    async fn keep_sending(&self) -> anyhow::Result<()> {
        let SenderLimits {
            first_retry,
            longest_retry,
            ..
        } = self.limits;
        let mut backoff = Backoff::new(first_retry, longest_retry, rand::random());
        while self.wait_for_a_game().await {
            let Err(status) = self.stream(&mut backoff).await else {
                return Ok(());
            };
            if is_final(status.code()) {
                let (store, code, message) = (&self.store, status.code(), status.message());
                bail!(
                    "the replay store {store} rejects this actor ({code:?}: {message}); is the address right?"
                );
            }
            if self.trouble.allows() {
                tracing::warn!(
                    code = ?status.code(),
                    reason = status.message(),
                    store = self.store,
                    waiting = self.spool.size().games,
                    "the replay store accepts no games; trying again"
                );
            }
            if !backoff.wait(&self.drain).await {
                // One last attempt, in case the store has just become available.
                if self.stream(&mut backoff).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Waits for a game, so that no stream is opened without need. False if the spool is empty and will stay so.
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

    /// Sends games until all are acknowledged and no more will be added.
    ///
    /// # Errors
    /// The stream failed; another one is needed.
    async fn stream(&self, backoff: &mut Backoff) -> Result<(), Status> {
        let mut client =
            ReplayStoreClient::new(self.channel.clone()).max_encoding_message_size(MAX_MESSAGE_BYTES);
        let (games, outbound) = mpsc::channel(WINDOW);
        let opening = client.append(ReceiverStream::new(outbound));
        let opened = timeout(self.limits.acknowledgement, opening)
            .await
            .map_err(|_| Status::deadline_exceeded("the stream was not opened in time"))?;
        self.exchange(games, opened?.into_inner(), backoff).await
    }

    async fn exchange(
        &self,
        games: mpsc::Sender<Game>,
        mut acks: Streaming<AppendAck>,
        backoff: &mut Backoff,
    ) -> Result<(), Status> {
        let mut sent_to: Option<SpoolPosition> = None;
        // Deadline of each game's acknowledgement. All games have the same time limit, so the oldest is due first.
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
                    // No store could ever accept the game, and it would break every stream.
                    self.set_aside(id, format!("it is larger than {MAX_MESSAGE_BYTES} bytes"))
                        .await;
                    continue;
                }
                tracing::debug!(game = %id, sha256 = %sha256(&game), "a game is sent");
                unacknowledged.insert(id, Instant::now() + self.limits.acknowledgement);
                // The channel has room, because it is at least as large as the window.
                if games.send(game).await.is_err() {
                    break;
                }
            }
            if unacknowledged.is_empty()
                && self.drain.is_cancelled()
                && self.spool.next_after(sent_to).is_none()
            {
                return Ok(());
            }
            let due = unacknowledged.values().min().copied();
            tokio::select! {
                biased;
                ack = acks.message() => {
                    let ack = ack?.ok_or_else(|| Status::unavailable("the store ended the stream"))?;
                    if let Some(id) = self.take(&ack).await? {
                        unacknowledged.remove(&id);
                        backoff.reset();
                    }
                }
                () = self.spool.added(), if unacknowledged.len() < WINDOW => {}
                () = self.drain.cancelled(), if unacknowledged.is_empty() => {}
                () = wait_until(due) => {
                    return Err(Status::deadline_exceeded("a game was not acknowledged in time"));
                }
            }
        }
    }

    /// Handles an acknowledgement. Returns the id of the game that has left the spool; `None` if the acknowledgement is invalid.
    ///
    /// # Errors
    /// The store cannot accept the game now.
    async fn take(&self, ack: &AppendAck) -> Result<Option<GameId>, Status> {
        let Some(id) = GameId::from_bytes(&ack.id) else {
            tracing::warn!(
                bytes = ack.id.len(),
                "the store sent an acknowledgement without a valid game id"
            );
            return Ok(None);
        };
        if ack.refused.is_empty() {
            tracing::debug!(game = %id, duplicate = ack.duplicate, "a game is acknowledged");
            return Ok(self.acknowledged(id, ack.duplicate).await.then_some(id));
        }
        match !ack.retry && self.set_aside(id, ack.refused.clone()).await {
            true => Ok(Some(id)),
            false => Err(Status::unavailable(ack.refused.clone())),
        }
    }

    /// Moves a game that the store will never accept to `refused/`. False if that failed.
    async fn set_aside(&self, id: GameId, reason: String) -> bool {
        let (spool, text) = (Arc::clone(&self.spool), reason.clone());
        match on_disk(move || spool.refuse(id, &text)).await {
            Ok(path) => {
                self.metrics.games_refused.add(1);
                tracing::error!(game = %id, reason, kept = %path.display(), "a game is refused");
                true
            }
            Err(error) => {
                tracing::error!(game = %id, reason, error = %service::chain(&*error), "a game is refused, and cannot be set aside");
                false
            }
        }
    }

    /// Removes an acknowledged game from the spool. False if it was acknowledged before.
    async fn acknowledged(&self, id: GameId, is_duplicate: bool) -> bool {
        let spool = Arc::clone(&self.spool);
        match on_disk(move || spool.acknowledge(id)).await {
            Ok(false) => return false,
            Ok(true) => {}
            Err(error) => {
                tracing::warn!(error = %service::chain(&*error), "an acknowledged game cannot be removed")
            }
        }
        self.metrics.games_acknowledged.add(1);
        self.metrics.games_duplicate.add(u64::from(is_duplicate));
        if self.trouble.reset() {
            tracing::info!(store = self.store, "the replay store accepts games");
        }
        true
    }

    /// Reads a game; logs and skips one that cannot be read.
    async fn read(&self, position: SpoolPosition) -> Option<Game> {
        let spool = Arc::clone(&self.spool);
        on_disk(move || spool.read(position))
            .await
            .inspect_err(
                |error| tracing::error!(error = %service::chain(&**error), "a finished game is lost"),
            )
            .ok()
    }
}

/// Returns the SHA-256 of an encoded game in hexadecimal digits.
fn sha256(game: &Game) -> String {
    format!("{:x}", Sha256::digest(game.encode_to_vec()))
}

/// Runs file operations on a thread for blocking work.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// True if the peer is not a replay store, or rejects this actor permanently.
pub(crate) fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::Unimplemented | Code::Unauthenticated | Code::PermissionDenied
    )
}
