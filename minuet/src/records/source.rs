//! Connects to the replay store of a run. If no process serves the store, this process opens the folder until the command ends.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use config::{self, RunConfig, SecurityConfig};
use proto::v1::{
    ExportRequest, Game, GameFilter, GameSort, GameSummary, GetGameRequest, ListGamesRequest, StatsRequest,
    StoredGame, replay_store_client::ReplayStoreClient,
};
use replay_store::settings::{MAX_LISTED, Settings};
use service::connect::{self, Link, MAX_MESSAGE_BYTES};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::Code;

/// Options that locate a store.
#[derive(Clone, Debug, clap::Args)]
pub struct StoreLocation {
    /// Folder of the run. Its store is opened by this command if it is not running.
    #[arg(long, value_name = "DIR", default_value = "runs/paco-sako")]
    run: PathBuf,
    /// Address of a running store, host:port.
    #[arg(long, value_name = "ADDRESS")]
    store: Option<String>,
}

/// Order and direction of a list, in the terms of the store's protocol.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// The order.
    pub sort: GameSort,
    /// True for the newest, longest or most surprising game first.
    pub descending: bool,
}

/// The newest games first.
pub const NEWEST: Order = Order {
    sort: GameSort::Time,
    descending: true,
};

/// Client of a store.
pub type Client = ReplayStoreClient<Link>;

/// A connected store.
pub struct Source {
    /// Client of the store.
    pub client: Client,
    /// Configuration of the run; `None` if its folder has none.
    pub config: Option<RunConfig>,
    opened: Option<Opened>,
}

/// A store that this process serves until the command ends.
struct Opened {
    address: String,
    shutdown: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
}

/// A list of games.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The games, in the requested order.
    pub games: Vec<GameSummary>,
    /// Cursor of the next page; empty at the end of the list.
    pub next_cursor: Vec<u8>,
    /// Number of games that were left out because they cannot be read.
    pub unreadable: u64,
}

impl StoreLocation {
    /// Returns the configuration of the run; `None` if its folder has none.
    pub fn config(&self) -> anyhow::Result<Option<RunConfig>> {
        let file = self.run.join("run.toml");
        if file.exists() {
            Ok(Some(config::load(&file)?))
        } else {
            Ok(None)
        }
    }

    /// Connects to the store. For `--store`, the `[security]` settings are those of the file that `MINUET_CONFIG` names, or those of the
    /// run if it is not set; otherwise they are those of the run.
    pub async fn open(&self) -> anyhow::Result<Source> {
        let config = self.config()?;
        if let Some(store) = &self.store {
            // MINUET_CONFIG has priority, because the run in the default folder may be unrelated to that store.
            let own = || config.as_ref().map(|config| config.security.clone());
            let security = config::security_from_environment()?
                .or_else(own)
                .unwrap_or_default();
            let address = config::store_address(store).context("--store")?;
            return Source::at(address, config, None, &security);
        }
        let Some(config) = config else {
            anyhow::bail!(
                "{} is not the folder of a run (it has no run.toml); name a run with --run, or a store with --store",
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
        let shutdown = CancellationToken::new();
        let settings = Settings {
            folder: folder.into(),
            ..Settings::from_config(config)
        };
        let serving = tokio::spawn(replay_store::serve(listener, settings, shutdown.clone()));
        Ok(Self {
            address,
            shutdown,
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
                anyhow::bail!("the store ended unexpectedly");
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
            Err(status) => Err(status_error(status)).with_context(|| super::format::hex(id)),
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
            let reply = self
                .client
                .list_games(request)
                .await
                .map_err(status_error)?
                .into_inner();
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
        let stats = self
            .client
            .stats(StatsRequest::default())
            .await
            .map_err(status_error)?;
        Ok(stats.into_inner().damaged_games)
    }

    /// Streams every stored game that the filter admits.
    pub async fn export(&mut self, filter: GameFilter) -> anyhow::Result<tonic::Streaming<StoredGame>> {
        let request = ExportRequest {
            filter: Some(filter),
            ..ExportRequest::default()
        };
        Ok(self
            .client
            .export(request)
            .await
            .map_err(status_error)?
            .into_inner())
    }

    /// Closes the store if this process opened it.
    pub async fn close(self) -> anyhow::Result<()> {
        drop(self.client);
        if let Some(Opened {
            shutdown, serving, ..
        }) = self.opened
        {
            shutdown.cancel();
            serving.await??;
        }
        Ok(())
    }
}

/// Converts a gRPC status to an error with a readable message.
pub fn status_error(status: tonic::Status) -> anyhow::Error {
    match status.code() {
        Code::Unavailable => anyhow::anyhow!("the store does not answer: {}", status.message()),
        code => anyhow::anyhow!("{} ({code:?})", status.message()),
    }
}
