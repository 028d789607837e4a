//! Players, opened and ready to choose.
//!
//! | module | what it is for |
//! |---|---|
//! | [`spec`] | the text that describes a player |
//! | [`networks`] | the networks of all players, each opened once |
//! | [`thinker`] | one search that can be stopped, prolonged and inspected at any time |
//! | [`many`] | many positions searched at once, each by itself |
//! | [`seat`] | a player in one game |
//! | [`solo`] | a player who plays one game alone, not in a match |
//! | [`solver`] | problems of the generator game, solved side by side |
//! | [`random`], [`perfect`], [`uci`] | those who do not search here |

pub mod many;
pub mod networks;
pub mod perfect;
pub mod random;
pub mod seat;
pub mod solo;
pub mod solver;
pub mod spec;
pub mod thinker;
pub mod uci;

use std::{any::TypeId, sync::Arc};

use games::{Game, chess::Chess, connect_four::ConnectFour};
use search::{GameKey, Search, Settings};

pub use networks::{NetworkOptions, Networks, OpenedNetwork};
pub use seat::{Chooser, Progress, Seat};
pub use solo::Solo;

use network::{
    ModelError, NetworkError,
    client::{local::OpenError, remote::ConnectError},
};

use crate::evaluator::{Evaluator, Source};
use perfect::Solvers;
use spec::{Kind, Spec};
use thinker::ThinkError;
use uci::{Engines, UciError};

/// A player that cannot be had, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// The network's file.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The network in this process.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The network behind a server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A network that did not answer.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A search that went wrong.
    #[error(transparent)]
    Think(#[from] ThinkError),
    /// A network's answer that the search refused.
    #[error("the network's answer cannot be used: {0}")]
    Answer(#[from] search::ApplyError),
    /// A UCI engine.
    #[error(transparent)]
    Uci(#[from] UciError),
    /// The player cannot play this game.
    #[error("{player} plays {plays} only, not {game}")]
    Game {
        /// Which.
        player: &'static str,
        /// What it plays.
        plays: &'static str,
        /// What was asked.
        game: &'static str,
    },
    /// A search that found nothing where there was something to choose.
    #[error("the search of {0} chose nothing")]
    NoChoice(String),
}

/// A player that is ready. Threads may share one.
#[derive(Debug)]
pub struct Player<G: Game> {
    name: String,
    mind: Mind<G>,
}

/// How a player comes to its choice.
#[derive(Debug)]
enum Mind<G: Game> {
    Search {
        settings: Settings,
        temperature: f32,
        /// `None`: uniform.
        network: Option<Arc<OpenedNetwork>>,
        encoding: G::Encoding,
    },
    Random,
    Perfect(Solvers),
    Uci(Arc<Engines>),
}

impl<G: Game> Player<G> {
    /// Opens a player. Networks are opened once for all players that share `networks`.
    ///
    /// # Errors
    /// [`PlayerError`]: the network is not there, damaged, or plays another game; the engine does not start.
    pub fn open(spec: &Spec, networks: &mut Networks) -> Result<Self, PlayerError> {
        let mind = match &spec.kind {
            Kind::Model(name, search) => {
                let network = networks.open(name)?;
                let encoding =
                    network::file::encoding_of::<G>(&network.description().layout, &name.to_string())?;
                Mind::Search {
                    settings: search.settings(network.search()),
                    temperature: search.temperature,
                    network: Some(network),
                    encoding,
                }
            }
            Kind::Uct(search) => Mind::Search {
                settings: search.settings(None),
                temperature: search.temperature,
                network: None,
                encoding: uniform_encoding::<G>()?,
            },
            Kind::Random => Mind::Random,
            Kind::Perfect => {
                only::<G, ConnectFour>("a perfect player")?;
                Mind::Perfect(Solvers::default())
            }
            Kind::Uci(engine) => {
                only::<G, Chess>("a UCI engine")?;
                Mind::Uci(Arc::new(Engines::start(engine)?))
            }
        };
        Ok(Self {
            name: spec.name.clone(),
            mind,
        })
    }

    /// A search that asks a network which is open already.
    ///
    /// # Errors
    /// [`PlayerError::Model`] where the network plays another game.
    pub fn searching(
        name: String,
        network: Arc<OpenedNetwork>,
        settings: Settings,
    ) -> Result<Self, PlayerError> {
        let description = network.description();
        let encoding = network::file::encoding_of::<G>(&description.layout, &description.version)?;
        Ok(Self {
            name,
            mind: Mind::Search {
                settings,
                temperature: 0.0,
                network: Some(network),
                encoding,
            },
        })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The network it asks.
    pub fn network(&self) -> Option<&Arc<OpenedNetwork>> {
        match &self.mind {
            Mind::Search { network, .. } => network.as_ref(),
            _ => None,
        }
    }

    /// How it searches.
    pub fn settings(&self) -> Option<&Settings> {
        match &self.mind {
            Mind::Search { settings, .. } => Some(settings),
            _ => None,
        }
    }

    /// Whether its thinking blocks the thread, so that games at once gain nothing.
    pub fn is_blocking(&self) -> bool {
        matches!(self.mind, Mind::Uci(_))
    }

    /// An evaluator for its searches; `thread` says which of the network's copies answers. `None` where it does not search.
    pub fn evaluator(&self, thread: usize) -> Option<Evaluator<G>> {
        let Mind::Search {
            network, encoding, ..
        } = &self.mind
        else {
            return None;
        };
        let source = network
            .as_ref()
            .map_or(Source::Uniform, |network| network.source(thread));
        Some(Evaluator::new(source, *encoding))
    }

    /// The player in a game that begins at `start`. All its draws belong to `key`.
    ///
    /// # Errors
    /// [`PlayerError`] where an engine does not start.
    pub fn seat(&self, start: &G, key: GameKey) -> Result<Seat<G>, PlayerError> {
        Ok(match &self.mind {
            Mind::Search {
                settings,
                temperature,
                ..
            } => Seat::Search {
                search: Box::new(Search::new(start.clone(), settings.clone(), key)),
                temperature: *temperature,
            },
            Mind::Random => Seat::Chooser(Box::new(random::Random::new(key))),
            Mind::Perfect(solvers) => Seat::Chooser(Box::new(perfect::Perfect::new(solvers.clone(), key))),
            Mind::Uci(engines) => Seat::Chooser(Box::new(uci::UciPlayer::new(Arc::clone(engines))?)),
        })
    }
}

/// A representation for evaluations that never look at it: any that the game has.
fn uniform_encoding<G: Game>() -> Result<G::Encoding, PlayerError> {
    (0..8)
        .find_map(|options| G::encoding(options).ok())
        .ok_or(PlayerError::Game {
            player: "uniform UCT",
            plays: "games with a representation",
            game: G::NAME,
        })
}

fn only<G: Game, Other: Game>(player: &'static str) -> Result<(), PlayerError> {
    if TypeId::of::<G>() == TypeId::of::<Other>() {
        return Ok(());
    }
    Err(PlayerError::Game {
        player,
        plays: Other::NAME,
        game: G::NAME,
    })
}
