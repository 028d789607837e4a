//! Connects to the replay store of a run. If no process serves the store, this process opens the folder until the command ends:
//! for reading, unless the command stores or deletes games. Damage is repaired only with `--repair`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use config::{self, RunConfig, SecurityConfig};
use proto::{
    ids::hex,
    v1::{ExportRequest, Game, GameFilter, GameSummary, GetGameRequest, StatsRequest, StoredGame},
};
use replay_store::{
    client::{self, Client, Order, PrivateStore},
    error::{Damage as StoreDamage, Loss, OpenError},
    settings::{MAX_LISTED, Settings},
    store::{IndexUse, Opening, Store},
};
use tonic::Code;

/// Most lost games that are named.
const MOST_NAMED: usize = 10;

/// Options that locate a store.
#[derive(Clone, Debug, clap::Args)]
pub struct StoreLocation {
    /// Folder of the run. Its store is opened by this command if it is not running.
    #[arg(long, value_name = "DIR", default_value = "runs/paco-sako")]
    run: PathBuf,
    /// Address of a running store, host:port.
    #[arg(long, value_name = "ADDRESS")]
    store: Option<String>,
    /// Repair the store of a stopped run first: record games that cannot be read as lost. Without this option damage is reported
    /// and nothing is changed.
    #[arg(long, conflicts_with = "store")]
    repair: bool,
}

/// Use of a store by a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads games.
    Read,
    /// Deletes games.
    Change,
    /// Stores games. A run without a store gets one.
    Add,
}

/// A connected store.
pub struct Source {
    /// Client of the store.
    pub client: Client,
    /// Configuration of the run; `None` if its folder has none.
    pub config: Option<RunConfig>,
    /// The store if this process serves it until the command ends, and the damage that opening it found.
    opened: Option<(PrivateStore, StoreDamage)>,
    /// Games that the command found to be unreadable.
    unreadable: u64,
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
    /// Returns the location of the store of the run in this folder.
    pub fn of_run(run: &Path) -> Self {
        Self {
            run: run.into(),
            store: None,
            repair: false,
        }
    }

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
    pub async fn open(&self, access: Access) -> anyhow::Result<Source> {
        let config = self.config()?;
        if let Some(store) = &self.store {
            // MINUET_CONFIG has priority, because the run in the default folder may be unrelated to that store.
            let own = || config.as_ref().map(|config| config.security.clone());
            let security = config::security_from_environment()?
                .or_else(own)
                .unwrap_or_default();
            return Source::at(store, config, &security);
        }
        let Some(config) = config else {
            anyhow::bail!(
                "{} is not the folder of a run (it has no run.toml); name a run with --run, or a store with --store",
                self.run.display()
            );
        };
        let folder = &config.replay.folder;
        if access != Access::Add && !folder.join("store.json").exists() {
            anyhow::bail!("{} holds no games yet", self.run.display());
        }
        match replay_store::serve::address(folder) {
            Some(address) if self.repair => anyhow::bail!(
                "--repair needs a stopped run, and this one is served at {address}; the store repairs itself at its next start"
            ),
            Some(address) => {
                let security = config.security.clone();
                Source::at(&address.to_string(), Some(config), &security)
            }
            None => {
                let (settings, repair) = (Settings::from_config(&config), self.repair);
                let opening = move || open(settings, access, repair);
                let store = tokio::task::spawn_blocking(opening).await??;
                let damage = store.damage().clone();
                if !damage.is_none() {
                    print_damage(&damage, "");
                }
                let store = PrivateStore::serve(store).await?;
                Ok(Source {
                    client: store.client(),
                    config: Some(config),
                    opened: Some((store, damage)),
                    unreadable: 0,
                })
            }
        }
    }
}

/// Opens the store of a stopped run.
fn open(settings: Settings, access: Access, repair: bool) -> anyhow::Result<Store> {
    if repair {
        let damage = repaired(&settings)?;
        match damage.is_none() {
            true => eprintln!("minuet: the store is not damaged"),
            false => print_damage(&damage, "; this is recorded now"),
        }
    }
    let opened = match access {
        Access::Read => Store::open_to_read(settings),
        Access::Change | Access::Add => {
            let opening = Opening {
                repairs: false,
                ..Opening::of(&settings.folder)
            };
            Store::open_with(settings, opening)
        }
    };
    match opened {
        Err(OpenError::Damaged(damage)) => {
            print_damage(&damage, "; nothing is changed");
            Err(Damage::of_store(&damage).into())
        }
        opened => opened.context("cannot open the replay store"),
    }
}

/// Repairs a store. Every game is read, since the index may name games that are damaged.
fn repaired(settings: &Settings) -> anyhow::Result<StoreDamage> {
    let opening = Opening {
        index: IndexUse::Anew,
        ..Opening::of(&settings.folder)
    };
    let store = Store::open_with(settings.clone(), opening).context("cannot open the replay store")?;
    let damage = store.damage().clone();
    store.close()?;
    Ok(damage)
}

impl Source {
    /// Source of a store that another process serves.
    fn at(address: &str, config: Option<RunConfig>, security: &SecurityConfig) -> anyhow::Result<Self> {
        Ok(Self {
            client: client::connect(address, security).context("--store")?,
            config,
            opened: None,
            unreadable: 0,
        })
    }

    /// Fetches one game. Returns `None` if the store has it and cannot read it, which is printed and counted.
    pub async fn game(&mut self, id: &[u8]) -> anyhow::Result<Option<Game>> {
        let request = GetGameRequest {
            id: id.to_vec().into(),
        };
        match self.client.get_game(request).await {
            Ok(game) => Ok(Some(game.into_inner())),
            Err(status) if status.code() == Code::DataLoss => {
                eprintln!("minuet: {}: {}", hex(id), service::plain(status.message()));
                self.unreadable += 1;
                Ok(None)
            }
            Err(_) if self.is_lost(id) => {
                eprintln!("minuet: {}: the game cannot be read", hex(id));
                Ok(None)
            }
            Err(status) => Err(status_error(status)).with_context(|| hex(id)),
        }
    }

    /// True if opening the store found this game to be lost.
    fn is_lost(&self, id: &[u8]) -> bool {
        let losses = self.opened.iter().flat_map(|(_, damage)| &damage.losses);
        losses.filter_map(|loss| loss.id).any(|lost| lost == *id)
    }

    /// Counts games that the command found to be unreadable.
    pub fn add_unreadable(&mut self, games: u64) {
        self.unreadable += games;
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
            let limit = left.min(u64::from(MAX_LISTED)) as u32;
            let request = order.request(filter.clone(), limit, listing.next_cursor);
            let reply = self.client.list_games(request).await.map_err(status_error)?;
            let reply = reply.into_inner();
            listing.games.extend(reply.games);
            listing.unreadable += u64::from(reply.unreadable);
            listing.next_cursor = reply.next_cursor.to_vec();
            if listing.next_cursor.is_empty() || listing.games.len() as u64 >= count {
                return Ok(listing);
            }
        }
    }

    /// Returns the number of games that a running store knows to be unreadable.
    pub async fn unreadable_games(&mut self) -> anyhow::Result<u64> {
        let stats = self.client.stats(StatsRequest::default()).await;
        Ok(stats.map_err(status_error)?.into_inner().unreadable_games)
    }

    /// Returns every stored game that the filter admits.
    pub async fn export(&mut self, filter: GameFilter) -> anyhow::Result<ExportedGames> {
        let request = ExportRequest {
            filter: Some(filter),
            ..ExportRequest::default()
        };
        let exported = self.client.export(request).await.map_err(status_error)?;
        Ok(ExportedGames {
            stream: exported.into_inner(),
            unreadable: 0,
        })
    }

    /// Closes the store if this process opened it.
    ///
    /// # Errors
    /// [`Damage`] if games cannot be read, or the store cannot be closed.
    pub async fn close(self) -> anyhow::Result<()> {
        drop(self.client);
        let advice = match self.opened {
            None => "the store records them as lost when it is started again",
            Some((store, damage)) => {
                store.close().await?;
                if !damage.is_none() {
                    return Err(Damage::of_store(&damage).into());
                }
                "read errors of the disk may be the reason"
            }
        };
        let found = match self.unreadable {
            0 => return Ok(()),
            1 => "1 acknowledged game cannot be read".into(),
            games => format!("{games} acknowledged games cannot be read"),
        };
        Err(Damage { found, advice }.into())
    }
}

/// The games of an export as they arrive.
pub struct ExportedGames {
    stream: tonic::Streaming<StoredGame>,
    /// Number of games that the store could not read; known at the end.
    pub unreadable: u64,
}

impl ExportedGames {
    /// Returns the next game and its sequence number; `None` at the end.
    pub async fn next(&mut self) -> anyhow::Result<Option<(u64, Game)>> {
        while let Some(stored) = self.stream.message().await.map_err(status_error)? {
            self.unreadable += stored.unreadable;
            if let Some(game) = stored.game {
                return Ok(Some((stored.sequence, game)));
            }
        }
        Ok(None)
    }
}

/// Converts a gRPC status to an error with a readable message.
pub fn status_error(status: tonic::Status) -> anyhow::Error {
    match status.code() {
        Code::Unavailable => anyhow::anyhow!("the store does not answer: {}", status.message()),
        code => anyhow::anyhow!("{} ({code:?})", status.message()),
    }
}

/// Error: games of the store cannot be read. The command did the rest of its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}; {advice}")]
pub struct Damage {
    found: String,
    advice: &'static str,
}

impl Damage {
    /// Damage that is found when a store is opened.
    fn of_store(damage: &StoreDamage) -> Self {
        Self {
            found: damage.to_string(),
            advice: "--repair records what is lost and lets the store continue without it",
        }
    }
}

/// Prints damage to standard error: counts, and the first lost games. `done` says what became of it.
fn print_damage(damage: &StoreDamage, done: &str) {
    eprintln!("minuet: the store is damaged: {damage}{done}");
    for Loss { sequence, id } in damage.losses.iter().take(MOST_NAMED) {
        let id = id.map_or_else(|| "unknown".to_owned(), |id| hex(&id));
        eprintln!("    game {sequence}, id {id}");
    }
    if damage.losses.len() > MOST_NAMED {
        eprintln!("    and {} more", damage.losses.len() - MOST_NAMED);
    }
}
