//! Reaching a run's stores: those that are served, and, where one is not, that one opened for the moment in this process.

use std::{
    collections::VecDeque,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use config::shards::Shards;
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

use launcher::up::stores;

/// Where the games are.
#[derive(Clone, Debug, clap::Args)]
pub struct Where {
    /// The run's folder; its stores are asked if they run, and opened otherwise.
    #[arg(long, value_name = "DIR", default_value = "runs/paco-sako")]
    run: PathBuf,
    /// A store that runs elsewhere, as host:port; several with commas, as replay.address lists them.
    #[arg(long, value_name = "ADDRESS")]
    store: Option<String>,
}

/// A client of a store.
pub type Client = ReplayStoreClient<Link>;

/// Stores that answer.
pub struct Source {
    /// Which of them a game belongs to.
    pub shards: Shards,
    /// Their clients, in the order of the shards.
    pub clients: Vec<Client>,
    /// The run, where there is a folder of it.
    pub config: Option<RunConfig>,
    opened: Vec<Opened>,
}

/// A store that this process serves for the moment.
struct Opened {
    address: String,
    stop: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
}

/// A game in a list.
pub struct Listed {
    /// The store that has it, where there are several.
    pub store: Option<String>,
    /// The game.
    pub game: GameSummary,
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

    /// Reaches the stores: those of the run's folder as its `[security]` says, a store that is named by its address as that of
    /// the run which `MINUET_CONFIG` names, and where that is not set as the folder's.
    pub async fn open(&self) -> anyhow::Result<Source> {
        let config = self.config()?;
        if let Some(list) = &self.store {
            // A run may lie where this command looks for one, and have nothing to do with that store.
            let own = || config.as_ref().map(|config| config.security.clone());
            let security = config::security_from_environment()?
                .or_else(own)
                .unwrap_or_default();
            let shards = Shards::parse(list).context("--store")?;
            return Source::at(shards, config, Vec::new(), |_| security.clone());
        }
        let Some(config) = config else {
            anyhow::bail!(
                "{} is no run's folder (it has no run.toml); name one with --run, or a store with --store",
                self.run.display()
            );
        };
        let first = config.replay.folder.clone();
        if !first.exists() {
            anyhow::bail!("{} holds no games yet", self.run.display());
        }
        let count = stores::count(&first);
        let mut opened = Vec::new();
        let mut list = Vec::new();
        for number in 1..=count {
            let folder = stores::folder(&first, number);
            let address = match replay_store::serve::address(&folder) {
                Some(address) => address.to_string(),
                None => {
                    let store = Opened::new(&config, &folder).await?;
                    opened.push(store);
                    opened
                        .last()
                        .map(|store| store.address.clone())
                        .unwrap_or_default()
                }
            };
            list.push(format!("{}={address}", stores::name(number)));
        }
        let own: Vec<String> = opened.iter().map(|store| store.address.clone()).collect();
        let security = config.security.clone();
        let shards = Shards::parse(&list.join(","))?;
        let mut source = Source::at(shards, Some(config), opened, |address| {
            if own.iter().any(|own| own == address) {
                // This process alone knows where it listens.
                SecurityConfig::default()
            } else {
                security.clone()
            }
        })?;
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
        shards: Shards,
        config: Option<RunConfig>,
        opened: Vec<Opened>,
        security: impl Fn(&str) -> SecurityConfig,
    ) -> anyhow::Result<Self> {
        let client = |address: &str| {
            let channel = connect::link(address, &security(address)).context("--store")?;
            let client = ReplayStoreClient::new(channel);
            anyhow::Ok(
                client
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
        };
        Ok(Self {
            clients: shards
                .all()
                .iter()
                .map(|shard| client(&shard.address))
                .collect::<Result<_, _>>()?,
            shards,
            config,
            opened,
        })
    }

    /// Until the stores that were opened answer, or one says why it does not.
    async fn wait(&mut self) -> anyhow::Result<()> {
        for at in 0..self.opened.len() {
            let address = self.opened[at].address.clone();
            let number = self
                .shards
                .all()
                .iter()
                .position(|shard| shard.address == address);
            let Some(client) = number.and_then(|number| self.clients.get_mut(number)) else {
                continue;
            };
            while client.stats(StatsRequest::default()).await.is_err() {
                if self.opened[at].serving.is_finished() {
                    self.opened.swap_remove(at).serving.await??;
                    anyhow::bail!("the store ended by itself");
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }
        Ok(())
    }

    /// One game, whichever store has it.
    pub async fn game(&mut self, id: &[u8]) -> anyhow::Result<Game> {
        // Its own first: another has it only if it was there before the stores were as many as now.
        let own = self.shards.of(id);
        let others = (0..self.clients.len()).filter(|&number| number != own);
        let mut not_found = None;
        for number in std::iter::once(own).chain(others) {
            let request = GetGameRequest {
                id: id.to_vec().into(),
            };
            match self.clients[number].get_game(request).await {
                Ok(game) => return Ok(game.into_inner()),
                Err(status) if status.code() == Code::NotFound => {
                    not_found.get_or_insert(status);
                }
                Err(status) => return Err(said(status)).with_context(|| super::hex(id)),
            }
        }
        let status = not_found.unwrap_or_else(|| tonic::Status::not_found("there is no store"));
        Err(said(status)).with_context(|| super::hex(id))
    }

    /// The newest games, newest first: by when they ended, as far as each store's own order has it so.
    pub async fn newest(&mut self, count: u64, filter: Option<GameFilter>) -> anyhow::Result<Vec<Listed>> {
        let mut pages = vec![Page::default(); self.clients.len()];
        let mut games: Vec<Listed> = Vec::new();
        while (games.len() as u64) < count {
            let left = (count - games.len() as u64).min(u64::from(MAX_LISTED)) as u32;
            for (page, client) in pages.iter_mut().zip(&mut self.clients) {
                page.fill(client, left, filter.clone()).await?;
            }
            let newest = pages
                .iter()
                .enumerate()
                .filter_map(|(number, page)| Some((page.games.front()?.finished_at_ms, number)))
                .max_by_key(|&(finished, number)| (finished, std::cmp::Reverse(number)));
            let Some((_, number)) = newest else {
                break;
            };
            let store = (self.clients.len() > 1).then(|| self.shards.all()[number].name.clone());
            games.extend(pages[number].games.pop_front().map(|game| Listed { store, game }));
        }
        Ok(games)
    }

    /// Every stored game that fits, one store after the other.
    pub fn export(&self, filter: GameFilter) -> Export {
        Export {
            clients: self.clients.clone().into(),
            filter,
            stream: None,
        }
    }

    /// Closes what was opened for the moment.
    pub async fn close(self) -> anyhow::Result<()> {
        drop(self.clients);
        for Opened { stop, serving, .. } in self.opened {
            stop.cancel();
            serving.await??;
        }
        Ok(())
    }
}

/// What is known of a store's list, newest first.
#[derive(Clone, Default)]
struct Page {
    games: VecDeque<GameSummary>,
    /// The sequence number of the last game that was fetched.
    last: u64,
    has_ended: bool,
}

impl Page {
    async fn fill(
        &mut self,
        client: &mut Client,
        limit: u32,
        filter: Option<GameFilter>,
    ) -> anyhow::Result<()> {
        if !self.games.is_empty() || self.has_ended {
            return Ok(());
        }
        let request = ListGamesRequest {
            after_sequence: self.last,
            limit,
            newest_first: true,
            filter,
        };
        let page = client.list_games(request).await.map_err(said)?.into_inner().games;
        self.last = page.last().map_or(self.last, |game| game.sequence);
        self.has_ended = page.is_empty();
        self.games = page.into();
        Ok(())
    }
}

/// Stored games, as they come.
pub struct Export {
    clients: VecDeque<Client>,
    filter: GameFilter,
    stream: Option<tonic::Streaming<StoredGame>>,
}

impl Export {
    /// The next one; `None` after the last.
    pub async fn next(&mut self) -> anyhow::Result<Option<StoredGame>> {
        loop {
            if let Some(stream) = &mut self.stream
                && let Some(game) = stream.message().await.map_err(said)?
            {
                return Ok(Some(game));
            }
            let Some(mut client) = self.clients.pop_front() else {
                self.stream = None;
                return Ok(None);
            };
            let request = ExportRequest {
                filter: Some(self.filter.clone()),
                ..ExportRequest::default()
            };
            self.stream = Some(client.export(request).await.map_err(said)?.into_inner());
        }
    }
}

/// A status as a person reads it.
pub fn said(status: tonic::Status) -> anyhow::Error {
    match status.code() {
        Code::Unavailable => anyhow::anyhow!("the store does not answer: {}", status.message()),
        code => anyhow::anyhow!("{} ({code:?})", status.message()),
    }
}
