//! Games of an earlier process that knew other replay stores: which of them are stored already?
//!
//! Such a game may have been stored by a store that it does not belong to any more, with nobody left to hear so. All
//! stores of the list are asked for the games that they know, and only what none of them does is sent, so that nothing is
//! stored twice. Until every store has answered, these games wait; new ones do not. What a store that is not listed any
//! more has stored, nobody can tell: its unacknowledged games are stored once more.

use std::{collections::HashSet, sync::Arc, time::Duration};

use proto::v1::{KnownGamesRequest, replay_store_client::ReplayStoreClient};
use service::{backoff::Backoff, connect::Link};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::{
    GameId,
    log_throttle::LogThrottle,
    metrics::Metrics,
    spool::{
        Spool,
        sender::{Patience, SenderError, is_final, on_disk, settle},
    },
};

/// Games that are asked about at once.
const ASKED: usize = 4096;

/// Sorts out whose the undecided games of a spool are.
pub struct Sorting {
    /// All stores: their names, and how they are reached.
    pub stores: Vec<(String, Link)>,
    /// Where the games wait.
    pub spool: Arc<Spool>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// How long an answer may take, and the pauses between attempts.
    pub patience: Patience,
    /// The actor stops: what is undecided waits for the next start.
    pub drain: CancellationToken,
}

impl Sorting {
    /// Asks until all games are decided, or the actor stops.
    ///
    /// # Errors
    /// [`SenderError`] where an address is no replay store's.
    pub async fn run(self) -> Result<(), SenderError> {
        let mut sorted = false;
        loop {
            let ids = self.spool.undecided(ASKED);
            if ids.is_empty() {
                break;
            }
            if !sorted {
                tracing::info!(
                    "the list of replay stores has changed; asking which of the waiting games they have"
                );
            }
            sorted = true;
            let mut known: HashSet<GameId> = HashSet::new();
            for (name, link) in &self.stores {
                match self.ask(name, link, &ids).await? {
                    Some(these) => known.extend(these),
                    None => return Ok(()),
                }
            }
            let (stored, unknown): (Vec<GameId>, Vec<GameId>) =
                ids.into_iter().partition(|id| known.contains(id));
            for id in stored {
                settle(&self.spool, &self.metrics, id, true).await;
            }
            self.spool.decide(&unknown);
        }
        if sorted {
            let spool = Arc::clone(&self.spool);
            match on_disk(move || spool.all_decided()).await {
                Ok(()) => tracing::info!("the waiting games are sorted out"),
                Err(error) => tracing::warn!(%error, "the stores are asked again with the next start"),
            }
        }
        Ok(())
    }

    /// Which of these games a store knows; `None` where the actor stops before it says so.
    async fn ask(&self, name: &str, link: &Link, ids: &[GameId]) -> Result<Option<Vec<GameId>>, SenderError> {
        let Patience {
            acknowledgement,
            first_retry,
            longest_retry,
            ..
        } = self.patience;
        let mut backoff = Backoff::new(first_retry, longest_retry, rand::random());
        let trouble = LogThrottle::new(Duration::from_secs(10));
        let mut client = ReplayStoreClient::new(link.clone());
        loop {
            let request = KnownGamesRequest {
                ids: ids.iter().map(|id| id.0.to_vec().into()).collect(),
            };
            let asked = tokio::select! {
                () = self.drain.cancelled() => return Ok(None),
                asked = timeout(acknowledgement, client.known_games(request)) => asked,
            };
            let status = match asked {
                Ok(Ok(reply)) => {
                    let ids = reply.into_inner().ids;
                    return Ok(Some(ids.iter().filter_map(|id| GameId::from_bytes(id)).collect()));
                }
                Ok(Err(status)) => status,
                Err(_) => Status::deadline_exceeded("it does not answer"),
            };
            if is_final(status.code()) {
                return Err(SenderError {
                    store: name.into(),
                    code: status.code(),
                    message: status.message().into(),
                });
            }
            if trouble.allows() {
                tracing::warn!(
                    store = name,
                    code = ?status.code(),
                    reason = status.message(),
                    "a replay store does not say which games it has; games of an earlier start wait for that"
                );
            }
            if !backoff.wait(&self.drain).await {
                return Ok(None);
            }
        }
    }
}
