//! Solved games of the replay store, read in the background for re-analysis.
//!
//! The worker threads take games from a short list and never wait for it. When the list is empty, [`Reader`] fills it with a page of
//! games from a random place of the store's window. Games that another game replaces are not read.

use std::{sync::Arc, time::Duration};

use games::Action;
use parking_lot::Mutex;
use proto::v1::{ExportRequest, Game, StatsRequest, replay_store_client::ReplayStoreClient};
use service::{
    backoff::Backoff,
    connect::{Link, MAX_MESSAGE_BYTES},
    log_throttle::LogThrottle,
};
use tokio::{sync::Notify, time::timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use crate::{
    GameId,
    spool::sender::{self, SenderLimits},
};

/// Number of games that are read at a time, and the most that are kept.
const PAGE: u64 = 64;

/// A solved game of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Id of the game.
    pub id: GameId,
    /// Start position as text.
    pub start: String,
    /// Actions that solve it.
    pub actions: Vec<Action>,
}

impl Stored {
    /// Returns the part of a record that re-analysis needs. `None` if the game has no solution.
    fn of(game: Game) -> Option<Self> {
        Some(Self {
            id: GameId::from_bytes(&game.id).filter(|_| game.score > 0.0)?,
            start: game.start,
            actions: game.actions,
        })
    }
}

/// The games that were read and not taken yet.
#[derive(Debug, Default)]
pub struct StoredGames {
    games: Mutex<Vec<Stored>>,
    /// Notified when the list is empty.
    empty: Notify,
}

impl StoredGames {
    /// Takes a game. `None` if none is left; more are read then.
    pub fn take(&self) -> Option<Stored> {
        let mut games = self.games.lock();
        let taken = games.pop();
        if games.is_empty() {
            self.empty.notify_one();
        }
        taken
    }
}

/// Error: the store gives this actor no games, and another attempt would fail as well.
#[derive(Debug, thiserror::Error)]
#[error(
    "the replay store {store} gives this actor no stored games ({code:?}: {message}); problems.reanalysis needs a token with the right `sample`"
)]
pub struct ReaderError {
    /// Address of the store.
    pub store: String,
    /// The gRPC status.
    pub code: Code,
    /// Message of the gRPC status.
    pub message: String,
}

/// Fills the list of games.
pub struct Reader {
    /// Link to the store.
    pub channel: Link,
    /// Address of the store, for messages.
    pub store: String,
    /// The list.
    pub games: Arc<StoredGames>,
    /// Time limits: those for sending games.
    pub limits: SenderLimits,
    /// Ends the reading.
    pub shutdown: CancellationToken,
}

impl Reader {
    /// Fills the list whenever it is empty, until the shutdown. While the store cannot be reached or has no solved game, the list stays
    /// empty.
    ///
    /// # Errors
    /// [`ReaderError`] if the store rejects this actor.
    pub async fn run(self) -> Result<(), ReaderError> {
        let trouble = LogThrottle::new(Duration::from_secs(30));
        let SenderLimits {
            acknowledgement,
            first_retry,
            longest_retry,
            ..
        } = self.limits;
        let mut backoff = Backoff::new(first_retry, longest_retry, rand::random());
        loop {
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return Ok(()),
                () = self.games.empty.notified() => {}
            }
            while self.games.games.lock().is_empty() {
                let page = tokio::select! {
                    biased;
                    () = self.shutdown.cancelled() => return Ok(()),
                    page = timeout(acknowledgement, self.page()) => page,
                };
                match page.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time"))) {
                    Ok(page) if !page.is_empty() => {
                        *self.games.games.lock() = page;
                        backoff.reset();
                        continue;
                    }
                    Ok(_) => {}
                    Err(status) if sender::is_final(status.code()) => {
                        return Err(ReaderError {
                            store: self.store,
                            code: status.code(),
                            message: status.message().into(),
                        });
                    }
                    Err(status) if trouble.allows() => tracing::warn!(
                        code = ?status.code(),
                        reason = status.message(),
                        store = self.store,
                        "no stored games can be read for re-analysis; trying again"
                    ),
                    Err(_) => {}
                }
                if !backoff.wait(&self.shutdown).await {
                    return Ok(());
                }
            }
        }
    }

    /// Reads the solved games of a page that begins at a random game of the window.
    async fn page(&self) -> Result<Vec<Stored>, Status> {
        let mut client =
            ReplayStoreClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let stats = client.stats(StatsRequest::default()).await?.into_inner();
        if stats.games == 0 {
            return Ok(Vec::new());
        }
        let from =
            rand::random_range(stats.oldest_sequence..=stats.newest_sequence.max(stats.oldest_sequence));
        let request = ExportRequest {
            from_sequence: from,
            to_sequence: from.saturating_add(PAGE - 1),
            drawn_from: true,
            ..ExportRequest::default()
        };
        let mut games = client.export(request).await?.into_inner();
        let mut page = Vec::new();
        while let Some(stored) = games.message().await? {
            page.extend(stored.game.and_then(Stored::of));
        }
        page.truncate(PAGE as usize);
        Ok(page)
    }
}
