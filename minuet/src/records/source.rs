//! Reaching a run's store: the one that serves it, or, where none does, one opened for the moment in this process.

use std::{net::Ipv4Addr, path::PathBuf};

use anyhow::Context as _;
use proto::v1::{
    Game, GameFilter, GameSummary, GetGameRequest, ListGamesRequest, replay_store_client::ReplayStoreClient,
};
use replay_store::settings::{MAX_LISTED, Settings};
use service::{
    config::{self, RunConfig, SecurityConfig},
    connect::{self, Link, MAX_MESSAGE_BYTES},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// Where the games are.
#[derive(Clone, Debug, clap::Args)]
pub struct Where {
    /// The run's folder; its store is asked if it runs, and opened otherwise.
    #[arg(long, value_name = "DIR", default_value = "runs/paco-sako")]
    run: PathBuf,
    /// A store that runs elsewhere, as host:port.
    #[arg(long, value_name = "ADDRESS")]
    store: Option<String>,
}

/// A client of a store.
pub type Client = ReplayStoreClient<Link>;

/// A store that answers.
pub struct Source {
    /// Its client.
    pub client: Client,
    /// The run, where there is a folder of it.
    pub config: Option<RunConfig>,
    opened: Option<(CancellationToken, JoinHandle<anyhow::Result<()>>)>,
}

impl Where {
    /// The run's configuration, where its folder has one.
    pub fn config(&self) -> anyhow::Result<Option<RunConfig>> {
        let file = self.run.join("run.toml");
        if file.exists() {
            Ok(Some(config::load(&file)?))
        } else {
            Ok(None)
        }
    }

    /// Reaches the store: as `[security]` of the run says, or, where there is no folder of it, of the run that
    /// `MINUET_CONFIG` names.
    pub async fn open(&self) -> anyhow::Result<Source> {
        let config = self.config()?;
        if let Some(address) = &self.store {
            let security = match &config {
                Some(config) => config.security.clone(),
                None => config::security_from_environment()?,
            };
            return Source::at(address, &security, config, None);
        }
        let Some(config) = config else {
            anyhow::bail!(
                "{} is no run's folder (it has no run.toml); name one with --run, or a store with --store",
                self.run.display()
            );
        };
        if !config.replay.folder.exists() {
            anyhow::bail!("{} holds no games yet", self.run.display());
        }
        if let Some(address) = replay_store::serve::address(&config.replay.folder) {
            let security = config.security.clone();
            return Source::at(&address.to_string(), &security, Some(config), None);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let settings = Settings::from_config(&config);
        let serving = tokio::spawn(replay_store::serve(listener, settings, stop.clone()));
        // This process alone knows where it listens.
        let security = SecurityConfig::default();
        let mut source = Source::at(
            &address.to_string(),
            &security,
            Some(config),
            Some((stop, serving)),
        )?;
        source.wait().await?;
        Ok(source)
    }
}

impl Source {
    fn at(
        address: &str,
        security: &SecurityConfig,
        config: Option<RunConfig>,
        opened: Option<(CancellationToken, JoinHandle<anyhow::Result<()>>)>,
    ) -> anyhow::Result<Self> {
        let channel = connect::link(address, security).context("--store")?;
        Ok(Self {
            client: ReplayStoreClient::new(channel)
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
            config,
            opened,
        })
    }

    /// Until the store that was opened answers, or says why it does not.
    async fn wait(&mut self) -> anyhow::Result<()> {
        loop {
            if self.client.stats(proto::v1::StatsRequest {}).await.is_ok() {
                return Ok(());
            }
            if let Some((_, serving)) = self.opened.take_if(|(_, serving)| serving.is_finished()) {
                serving.await??;
                anyhow::bail!("the store ended by itself");
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// One game.
    pub async fn game(&mut self, id: &[u8]) -> anyhow::Result<Game> {
        let request = GetGameRequest {
            id: id.to_vec().into(),
        };
        let game = self.client.get_game(request).await;
        Ok(game.map_err(said).with_context(|| super::hex(id))?.into_inner())
    }

    /// The newest games, newest first.
    pub async fn newest(
        &mut self,
        count: u64,
        filter: Option<GameFilter>,
    ) -> anyhow::Result<Vec<GameSummary>> {
        let mut games: Vec<GameSummary> = Vec::new();
        while (games.len() as u64) < count {
            let request = ListGamesRequest {
                after_sequence: games.last().map_or(0, |game| game.sequence),
                limit: (count - games.len() as u64).min(u64::from(MAX_LISTED)) as u32,
                newest_first: true,
                filter: filter.clone(),
            };
            let page = self
                .client
                .list_games(request)
                .await
                .map_err(said)?
                .into_inner()
                .games;
            if page.is_empty() {
                break;
            }
            games.extend(page);
        }
        Ok(games)
    }

    /// Closes a store that was opened for the moment.
    pub async fn close(self) -> anyhow::Result<()> {
        drop(self.client);
        if let Some((stop, serving)) = self.opened {
            stop.cancel();
            serving.await??;
        }
        Ok(())
    }
}

/// A status as a person reads it.
pub fn said(status: tonic::Status) -> anyhow::Error {
    match status.code() {
        tonic::Code::Unavailable => anyhow::anyhow!("the store does not answer: {}", status.message()),
        code => anyhow::anyhow!("{} ({code:?})", status.message()),
    }
}
