//! Descriptions of players, and players that are ready to choose.
//!
//! | module | contents |
//! |---|---|
//! | [`spec`] | the text that describes a player |
//! | [`networks`] | the networks of all players, each opened once |
//! | [`searches`] | searches of any game that share the batches of one network |
//! | [`thinker`] | one search that can be stopped, prolonged and inspected at any time |
//! | [`chooser`] | players that choose in one call; random moves; a player in a single game outside a match |
//! | [`solver`] | problems of the generator game, solved side by side |
//! | [`perfect`] | perfect play in Connect Four |
//! | [`engine`], [`uci`], [`gtp`] | programs of others |
//! | [`vertex`] | points of a board and colours in the Go Text Protocol |

pub mod chooser;
pub mod engine;
pub mod gtp;
pub mod networks;
pub mod perfect;
pub mod searches;
pub mod solver;
pub mod spec;
pub mod thinker;
pub mod uci;
pub mod vertex;

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use games::{
    Game as _, Notation,
    chess::Chess,
    connect_four::ConnectFour,
    erased::{AnyGame, AnyState, Typed},
    paco_sako::PacoSako,
};
use network::batched::EvaluationSource;
use search::{GameKey, Settings};

pub use chooser::Solo;
pub use networks::{NetworkOptions, Networks, OpenedNetwork};

use chooser::{Chooser, Random};
use engine::Engines;
use gtp::GtpEngine;
use perfect::{Perfect, Solvers};
use searches::{Searches, searches};
use spec::{Kind, SearchSpec, Spec, UciSpec};

/// A player of a game that is ready to play. Threads may share one.
#[derive(Debug)]
pub struct Player {
    name: String,
    /// Description, as a person writes it.
    written: String,
    game: &'static AnyGame,
    method: Method,
}

/// The way in which a player chooses its actions.
#[derive(Debug)]
enum Method {
    Search(SearchMethod),
    Random,
    Perfect(Solvers),
    Uci(Arc<Engines<UciSpec>>),
    Gtp(Arc<Engines<GtpEngine>>),
}

/// A search as the way in which a player chooses its actions.
#[derive(Debug)]
struct SearchMethod {
    settings: Settings,
    temperature: f32,
    /// `None`: uniform evaluations.
    network: Option<Arc<OpenedNetwork>>,
    values: Values,
}

/// Origin of the values of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// The network; without one every value is 0.
    Network,
    /// Wins within a turn, in Paco Ŝako without a network.
    Threats,
}

impl Player {
    /// Opens a player of a game. Networks are opened once for all players that share `networks`.
    ///
    /// # Errors
    /// The network is missing, damaged or for another game, or the engine does not start.
    pub fn open(game: &'static AnyGame, spec: &Spec, networks: &mut Networks) -> anyhow::Result<Self> {
        let only = |player: &str, plays: &str| {
            ensure!(
                game.name == plays,
                "{player} plays {plays} only, not {}",
                game.name
            );
            Ok(())
        };
        let without_network = |search: &SearchSpec, values: Values| {
            Method::Search(SearchMethod {
                // A reference of unchanging strength, without proofs.
                settings: search.settings(Some(&Settings {
                    solver: false,
                    ..usual_search(game)
                })),
                temperature: search.temperature,
                network: None,
                values,
            })
        };
        let method = match &spec.kind {
            Kind::Model(name, search) => {
                let network = networks.open(name)?;
                let settings = search.settings(network.search().or(Some(&usual_search(game))));
                let mut player = Self::searching(game, name.to_string(), network, settings)?;
                if let Method::Search(method) = &mut player.method {
                    method.temperature = search.temperature;
                }
                player.method
            }
            Kind::Uct(search) => without_network(search, Values::Network),
            Kind::Luna(search) => {
                only("luna", PacoSako::NAME)?;
                without_network(search, Values::Threats)
            }
            Kind::Random => Method::Random,
            Kind::Perfect => {
                only("a perfect player", ConnectFour::NAME)?;
                Method::Perfect(Solvers::default())
            }
            Kind::Uci(engine) => {
                only("a UCI engine", Chess::NAME)?;
                Method::Uci(Arc::new(Engines::start(engine.clone())?))
            }
            Kind::Gtp(engine) => {
                let engine = GtpEngine::new(game, engine.clone())?;
                Method::Gtp(Arc::new(Engines::start(engine)?))
            }
        };
        Ok(Self {
            name: spec.name.clone(),
            written: spec.written.clone(),
            game,
            method,
        })
    }

    /// Returns a player of a game that searches with a network that is open already.
    ///
    /// # Errors
    /// The network is for another game.
    pub fn searching(
        game: &'static AnyGame,
        name: String,
        network: Arc<OpenedNetwork>,
        settings: Settings,
    ) -> anyhow::Result<Self> {
        let player = Self {
            written: name.clone(),
            name,
            game,
            method: Method::Search(SearchMethod {
                settings,
                temperature: 0.0,
                network: Some(network),
                values: Values::Network,
            }),
        };
        player.searches(0)?;
        Ok(player)
    }

    /// Name of the player.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Description of the player, as a person writes it.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// The game.
    pub fn game(&self) -> &'static AnyGame {
        self.game
    }

    /// True if both players search the same game with the same evaluations, so that their searches can share batches.
    pub fn searches_with(&self, other: &Self) -> bool {
        let source = |player: &Self| {
            let search = player.search()?;
            Some((search.network.as_ref().map(Arc::as_ptr), search.values))
        };
        self.game.name == other.game.name && source(self).is_some() && source(self) == source(other)
    }

    /// The player's network, if it has one.
    pub fn network(&self) -> Option<&Arc<OpenedNetwork>> {
        self.search().and_then(|search| search.network.as_ref())
    }

    /// The player's search settings, if it searches.
    pub fn settings(&self) -> Option<&Settings> {
        self.search().map(|search| &search.settings)
    }

    fn search(&self) -> Option<&SearchMethod> {
        match &self.method {
            Method::Search(search) => Some(search),
            _ => None,
        }
    }

    /// Temperature of the choice of actions, if the player searches; else 0.
    pub fn temperature(&self) -> f32 {
        self.search().map_or(0.0, |search| search.temperature)
    }

    /// True if choosing an action blocks the thread, so that several games at once bring no speed.
    pub fn is_blocking(&self) -> bool {
        matches!(self.method, Method::Uci(_) | Method::Gtp(_))
    }

    /// Returns the player's settings, and [`Searches`] with its network; `thread` selects the copy of the network.
    ///
    /// # Errors
    /// The player does not search.
    pub fn searches(&self, thread: usize) -> anyhow::Result<(&Settings, Box<dyn Searches>)> {
        let search = self.search();
        let search = search.with_context(|| format!("{} does not search", self.name))?;
        let network = search.network.as_ref();
        let source = match network {
            Some(network) => network.source(thread)?,
            None => EvaluationSource::Uniform,
        };
        let searches = searches(self.game, source, search.values, &self.name)?;
        Ok((&search.settings, searches))
    }

    /// Returns a player that does not search, in one game. `key` determines all random draws. `None` if the player searches.
    ///
    /// # Errors
    /// An engine does not start.
    pub fn chooser(&self, key: GameKey) -> anyhow::Result<Option<Box<dyn Chooser>>> {
        Ok(match &self.method {
            Method::Search(_) => None,
            Method::Random => Some(Box::new(Random(key))),
            Method::Perfect(solvers) => Some(Box::new(Perfect::new(solvers.clone(), key))),
            Method::Uci(engines) => Some(Box::new(uci::UciPlayer::new(Arc::clone(engines))?)),
            Method::Gtp(engines) => Some(Box::new(gtp::GtpPlayer::new(Arc::clone(engines))?)),
        })
    }
}

/// Returns the search settings on which those of a player are based if its network is of no run: in games of one player those of
/// [`solver`], in others the defaults with proofs.
pub fn usual_search(game: &AnyGame) -> Settings {
    match game.players {
        1 => solver::settings(Settings::default().visits),
        _ => Settings {
            solver: true,
            ..Settings::default()
        },
    }
}

/// Returns a state with its type.
fn typed<G: Notation>(state: &dyn AnyState) -> anyhow::Result<&G> {
    let found = Typed::<G>::find(state).map(|typed| &typed.state);
    found.with_context(|| format!("a player of {} cannot play {}", G::name(), state.game().name))
}
