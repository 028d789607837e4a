//! Reaches a run's replay store: the one that is served, or, if none is, the folder opened by this process until the command ends.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use config::{self, RunConfig, SecurityConfig};
use proto::v1::{
    ExportRequest, Game, GameFilter, GameSummary, GetGameRequest, ListGamesRequest, StatsRequest, StoredGame,
    replay_store_client::ReplayStoreClient,
};
use replay_store::settings::{MAX_LISTED, Settings};
use service::connect::{self, Link, MAX_MESSAGE_BYTES};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::list::Order;

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
    /// Client of the store.
    pub client: Client,
    /// The run, where there is a folder of it.
    pub config: Option<RunConfig>,
    opened: Option<Opened>,
}

/// A store that this process serves for the moment.
struct Opened {
    address: String,
    stop: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
}

/// A list of games.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The games, in the order asked for.
    pub games: Vec<GameSummary>,
    /// Where the list goes on; empty at its end.
    pub next_cursor: Vec<u8>,
    /// Number of games that were left out because they cannot be read.
    pub unreadable: u64,
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

    /// Reaches the store: that of the run's folder with the folder's `[security]`, a store named by its address with the
    /// `[security]` of the run that `MINUET_CONFIG` names, or the folder's if that is not set.
    pub async fn open(&self) -> anyhow::Result<Source> {
        let config = self.config()?;
        if let Some(store) = &self.store {
            // A run may lie where this command looks for one, and have nothing to do with that store.
            let own = || config.as_ref().map(|config| config.security.clone());
            let security = config::security_from_environment()?
                .or_else(own)
                .unwrap_or_default();
            let address = config::store_address(store).context("--store")?;
            return Source::at(address, config, None, &security);
        }
        let Some(config) = config else {
            anyhow::bail!(
                "{} is no run's folder (it has no run.toml); name one with --run, or a store with --store",
                self.run.display()
            );
        };
        let folder = &config.replay.folder;
        if !folder.exists() {
            anyhow::bail!("{} holds no games yet", self.run.display());
        }
        let mut source = match replay_store::serve::address(folder) {
            Some(address) => {
                let security = config.security.clone();
                Source::at(&address.to_string(), Some(config), None, &security)?
            }
            None => {
                let opened = Opened::new(&config, folder).await?;
                // No other process knows this address.
                Source::at(
                    &opened.address.clone(),
                    Some(config),
                    Some(opened),
                    &SecurityConfig::default(),
                )?
            }
        };
        source.wait().await?;
        Ok(source)
    }
}

impl Opened {
    async fn new(config: &RunConfig, folder: &Path) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?.to_string();
        let stop = CancellationToken::new();
        let settings = Settings {
            folder: folder.into(),
            ..Settings::from_config(config)
        };
        let serving = tokio::spawn(replay_store::serve(listener, settings, stop.clone()));
        Ok(Self {
            address,
            stop,
            serving,
        })
    }
}

impl Source {
    fn at(
        address: &str,
        config: Option<RunConfig>,
        opened: Option<Opened>,
        security: &SecurityConfig,
    ) -> anyhow::Result<Self> {
        let link = connect::link(address, security).context("--store")?;
        Ok(Self {
            client: ReplayStoreClient::new(link)
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
            config,
            opened,
        })
    }

    /// Waits until the store that this process opened answers.
    ///
    /// # Errors
    /// The store's own error if it ends instead.
    async fn wait(&mut self) -> anyhow::Result<()> {
        while let Some(opened) = &self.opened {
            if self.client.stats(StatsRequest::default()).await.is_ok() {
                return Ok(());
            }
            if opened.serving.is_finished()
                && let Some(opened) = self.opened.take()
            {
                opened.serving.await??;
                anyhow::bail!("the store ended by itself");
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Fetches one game.
    pub async fn game(&mut self, id: &[u8]) -> anyhow::Result<Game> {
        let request = GetGameRequest {
            id: id.to_vec().into(),
        };
        match self.client.get_game(request).await {
            Ok(game) => Ok(game.into_inner()),
            Err(status) => Err(said(status)).with_context(|| super::hex(id)),
        }
    }

    /// Returns at most `count` games in an order, from after `cursor` on (empty: from the beginning).
    pub async fn list(
        &mut self,
        order: Order,
        filter: GameFilter,
        count: u64,
        cursor: Vec<u8>,
    ) -> anyhow::Result<Listing> {
        let mut listing = Listing {
            next_cursor: cursor,
            ..Listing::default()
        };
        loop {
            let left = count.saturating_sub(listing.games.len() as u64);
            let request = ListGamesRequest {
                limit: left.min(u64::from(MAX_LISTED)) as u32,
                newest_first: order.descending,
                filter: Some(filter.clone()),
                sort: order.sort.into(),
                cursor: listing.next_cursor.into(),
                ..ListGamesRequest::default()
            };
            let reply = self.client.list_games(request).await.map_err(said)?.into_inner();
            listing.games.extend(reply.games);
            listing.unreadable += u64::from(reply.unreadable);
            listing.next_cursor = reply.next_cursor.to_vec();
            if listing.next_cursor.is_empty() || listing.games.len() as u64 >= count {
                return Ok(listing);
            }
        }
    }

    /// Returns the number of acknowledged games that the store lost to damage.
    pub async fn damaged_games(&mut self) -> anyhow::Result<u64> {
        let stats = self.client.stats(StatsRequest::default()).await.map_err(said)?;
        Ok(stats.into_inner().damaged_games)
    }

    /// Streams every stored game that the filter admits.
    pub async fn export(&mut self, filter: GameFilter) -> anyhow::Result<tonic::Streaming<StoredGame>> {
        let request = ExportRequest {
            filter: Some(filter),
            ..ExportRequest::default()
        };
        Ok(self.client.export(request).await.map_err(said)?.into_inner())
    }

    /// Closes the store if this process opened it.
    pub async fn close(self) -> anyhow::Result<()> {
        drop(self.client);
        if let Some(Opened { stop, serving, .. }) = self.opened {
            stop.cancel();
            serving.await??;
        }
        Ok(())
    }
}

/// A status as a person reads it.
pub fn said(status: tonic::Status) -> anyhow::Error {
    match status.code() {
        Code::Unavailable => anyhow::anyhow!("the store does not answer: {}", status.message()),
        code => anyhow::anyhow!("{} ({code:?})", status.message()),
    }
}
