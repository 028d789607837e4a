//! The network of the analysis role: opened at the start, replaced by newer versions. [`Evaluator`].

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use arena::{
    Player, Spec, SpecError,
    players::{
        Networks,
        spec::{Kind, SearchSpec},
    },
    rating::error::is_temporary,
};
use config::{ConfigError, RunConfig};
use games::registry;
use network::{ModelName, Network as _, RemoteNetwork};
use service::backoff::Backoff;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::{analysis::Analysis, open, options};

/// Interval at which a server is asked whether its model has a newer version.
const FOLLOW: Duration = Duration::from_secs(10);

/// Network of the role, as the configuration names it.
pub struct Evaluator {
    config: RunConfig,
    spec: Spec,
    threads: usize,
}

impl Evaluator {
    /// Reads `analysis.model`.
    ///
    /// # Errors
    /// [`ConfigError`] if it is not a player.
    pub fn of(config: RunConfig, threads: usize) -> Result<Arc<Self>, ConfigError> {
        let address = &config.inference.address;
        let spec = match config.analysis.model.as_str() {
            // `[security]` decides whether TLS is used.
            "" => Spec {
                name: address.clone(),
                written: address.clone(),
                kind: Kind::Model(
                    ModelName::Server {
                        address: address.clone(),
                        model: None,
                    },
                    SearchSpec::default(),
                ),
            },
            model => model.parse().map_err(|error: SpecError| {
                ConfigError::of_value("analysis.model", format!("is not a player: {}", error.reason))
            })?,
        };
        Ok(Arc::new(Self {
            config,
            spec,
            threads,
        }))
    }

    /// Opens the network. Waits while its server or store cannot be reached; `None` at shutdown.
    ///
    /// # Errors
    /// The network cannot be used, or the player does not search.
    pub async fn first_player(
        self: &Arc<Self>,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<Option<Arc<Player>>> {
        let mut backoff = Backoff::for_connections();
        let is_elsewhere = matches!(
            self.spec.kind,
            Kind::Model(ModelName::Server { .. } | ModelName::Store { .. }, _)
        );
        loop {
            match self.player().await {
                Ok(player) => return Ok(Some(player)),
                Err(error) if is_elsewhere && is_temporary(&error) => {
                    tracing::warn!("no network yet: {error:#}");
                    if !backoff.wait(shutdown).await {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives new queries the newest version of a server's model. A server that is away is reported by the queries that it fails.
    pub async fn follow(self: Arc<Self>, analysis: Arc<Analysis>) {
        let Kind::Model(ModelName::Server { address, model }, _) = &self.spec.kind else {
            return;
        };
        loop {
            tokio::time::sleep(FOLLOW).await;
            let (address, model) = (address.clone(), model.clone().unwrap_or_default());
            let security = self.config.security.clone();
            let asked = spawn_blocking(move || {
                let network = RemoteNetwork::connect_with(&address, &model, &security).ok()?;
                Some(network.description().version.clone())
            });
            let Ok(Some(newest)) = asked.await else {
                continue;
            };
            if newest != analysis.model().version
                && let Ok(player) = self.player().await
            {
                tracing::info!(version = newest, "a newer version evaluates");
                *analysis.player.write() = player;
            }
        }
    }

    async fn player(self: &Arc<Self>) -> anyhow::Result<Arc<Player>> {
        let this = Arc::clone(self);
        let opening = spawn_blocking(move || {
            let game = registry::find(&this.config.game.title())?;
            let networks = Networks::new(options(this.config.inference.provider, this.threads));
            open(game, &this.spec, networks.of_run(this.config.security.clone()))
        });
        opening.await.context("opening the network was interrupted")?
    }
}
