//! [`Retention`]: decides which old checkpoints are kept.

use std::time::Duration;

use checkpoints::{Keep, Version};
use config::CheckpointConfig;
use proto::v1::{ListGamesRequest, replay_store_client::ReplayStoreClient};
use service::connect::{Link, MAX_MESSAGE_BYTES};

/// Number of the oldest stored games whose checkpoints are read. Games arrive about in the order of their checkpoints.
const OLDEST_GAMES: u32 = 256;
/// Maximum time to wait for the store. Pruning continues without its answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Keeps the newest checkpoints, and further ones that stored games were played with.
#[derive(Clone, Debug)]
pub struct Retention {
    newest: usize,
    for_games: usize,
    store: ReplayStoreClient<Link>,
}

impl Retention {
    /// Creates the retention that `config` describes, for the games of the store at `link`.
    pub fn new(config: &CheckpointConfig, link: Link) -> Self {
        Self {
            newest: config.keep,
            for_games: config.keep_for_games,
            store: ReplayStoreClient::new(link).max_decoding_message_size(MAX_MESSAGE_BYTES),
        }
    }

    /// Returns the checkpoints to keep now. If the store does not answer, the further checkpoints are kept whatever their step.
    pub async fn keep(&self) -> Keep {
        let is_needed = self.newest > 0 && self.for_games > 0;
        let from_step = if is_needed { self.oldest_step().await } else { None };
        Keep {
            newest: self.newest,
            more: self.for_games,
            from_step: from_step.unwrap_or_default(),
        }
    }

    /// Returns the step of the oldest checkpoint that one of the oldest stored games was played with.
    async fn oldest_step(&self) -> Option<u64> {
        let mut request = tonic::Request::new(ListGamesRequest {
            limit: OLDEST_GAMES,
            ..ListGamesRequest::default()
        });
        request.set_timeout(TIMEOUT);
        let listed = self.store.clone().list_games(request).await;
        let games = listed
            .inspect_err(|status| tracing::debug!(%status, "the replay store does not list its games"))
            .ok()?
            .into_inner()
            .games;
        let versions = games.iter().flat_map(|game| &game.model_versions);
        versions
            .filter_map(|version| Some(version.parse::<Version>().ok()?.step()))
            .min()
    }
}
