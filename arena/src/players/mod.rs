//! Descriptions of players, and players that are ready to choose.
//!
//! | module | contents |
//! |---|---|
//! | [`spec`] | the text that describes a player |
//! | [`networks`] | the networks of all players, each opened once |
//! | [`thinker`] | one search that can be stopped, prolonged and inspected at any time |
//! | [`many`] | many positions searched at once, each by itself |
//! | [`seat`] | a player in one game; random moves |
//! | [`solo`] | a player who plays one game alone, not in a match |
//! | [`solver`] | problems of the generator game, solved side by side |
//! | [`perfect`] | perfect play in Connect Four |
//! | [`engine`], [`uci`], [`gtp`] | programs of others |

pub mod engine;
mod error;
pub mod gtp;
pub mod many;
pub mod networks;
pub mod perfect;
pub mod seat;
pub mod solo;
pub mod solver;
pub mod spec;
pub mod thinker;
pub mod uci;

use std::{
    any::{Any, TypeId},
    sync::Arc,
};

use games::{
    Game, MoverValue, chess::Chess, connect_four::ConnectFour, othello::Othello, paco_sako::PacoSako,
};
use network::batched::{BatchedEvaluator, EvaluationSource};
use search::{GameKey, Search, Settings};

pub use error::PlayerError;
pub use networks::{NetworkOptions, Networks, OpenedNetwork};
pub use seat::{Chooser, Progress, Seat};
pub use solo::Solo;

use engine::Engines;
use perfect::{Perfect, Solvers};
use seat::Random;
use spec::{GtpSpec, Kind, SearchSpec, Spec, UciSpec};

/// A player that is ready to play. Threads may share one.
#[derive(Debug)]
pub struct Player<G: Game> {
    name: String,
    method: Method<G>,
}

/// The way in which a player chooses its actions.
#[derive(Debug)]
enum Method<G: Game> {
    Search {
        settings: Settings,
        temperature: f32,
        /// `None`: uniform evaluations.
        network: Option<Arc<OpenedNetwork>>,
        /// Values of uniform evaluations; `None`: 0.
        values: Option<fn(&G) -> MoverValue>,
        encoding: G::Encoding,
    },
    Random,
    Perfect(Solvers),
    Uci(Arc<Engines<UciSpec>>),
    Gtp(Arc<Engines<GtpSpec>>),
}

impl<G: Game> Player<G> {
    /// Opens a player. Networks are opened once for all players that share `networks`.
    ///
    /// # Errors
    /// [`PlayerError`] if the network is missing, damaged or for another game, or if the engine does not start.
    pub fn open(spec: &Spec, networks: &mut Networks) -> Result<Self, PlayerError> {
        let method = match &spec.kind {
            Kind::Model(name, search) => {
                let network = networks.open(name)?;
                let encoding =
                    network::file::encoding_of::<G>(&network.description().layout, &name.to_string())?;
                Method::Search {
                    settings: search.settings(network.search().or(usual_search::<G>().as_ref())),
                    temperature: search.temperature,
                    network: Some(network),
                    values: None,
                    encoding,
                }
            }
            Kind::Uct(search) => Self::without_network(search, None)?,
            Kind::Luna(search) => {
                only::<G, PacoSako>("luna")?;
                Self::without_network(search, Some(threat_value))?
            }
            Kind::Random => Method::Random,
            Kind::Perfect => {
                only::<G, ConnectFour>("a perfect player")?;
                Method::Perfect(Solvers::default())
            }
            Kind::Uci(engine) => {
                only::<G, Chess>("a UCI engine")?;
                Method::Uci(Arc::new(Engines::start(engine.clone())?))
            }
            Kind::Gtp(engine) => {
                only::<G, Othello>("a GTP engine")?;
                Method::Gtp(Arc::new(Engines::start(engine.clone())?))
            }
        };
        Ok(Self {
            name: spec.name.clone(),
            method,
        })
    }

    /// Returns a player that searches with a network that is open already.
    ///
    /// # Errors
    /// [`PlayerError`] if the network is for another game.
    pub fn searching(
        name: String,
        network: Arc<OpenedNetwork>,
        settings: Settings,
    ) -> Result<Self, PlayerError> {
        let description = network.description();
        let encoding = network::file::encoding_of::<G>(&description.layout, &description.version)?;
        Ok(Self {
            name,
            method: Method::Search {
                settings,
                temperature: 0.0,
                network: Some(network),
                values: None,
                encoding,
            },
        })
    }

    fn without_network(
        search: &SearchSpec,
        values: Option<fn(&G) -> MoverValue>,
    ) -> Result<Method<G>, PlayerError> {
        Ok(Method::Search {
            settings: search.settings(usual_search::<G>().as_ref()),
            temperature: search.temperature,
            network: None,
            values,
            encoding: uniform_encoding::<G>()?,
        })
    }

    /// Name of the player.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The player's network, if it has one.
    pub fn network(&self) -> Option<&Arc<OpenedNetwork>> {
        match &self.method {
            Method::Search { network, .. } => network.as_ref(),
            _ => None,
        }
    }

    /// The player's search settings, if it searches.
    pub fn settings(&self) -> Option<&Settings> {
        match &self.method {
            Method::Search { settings, .. } => Some(settings),
            _ => None,
        }
    }

    /// True if choosing an action blocks the thread, so that several games at once bring no speed.
    pub fn is_blocking(&self) -> bool {
        matches!(self.method, Method::Uci(_) | Method::Gtp(_))
    }

    /// Returns the settings of the player's searches, and an evaluator as [`Self::evaluator`] does.
    ///
    /// # Errors
    /// [`PlayerError`] if the player does not search.
    pub fn search(&self, thread: usize) -> Result<(&Settings, BatchedEvaluator<G>), PlayerError> {
        let found = self.settings().zip(self.evaluator(thread));
        found.ok_or_else(|| PlayerError::failed(format!("{} does not search", self.name)))
    }

    /// Returns an evaluator for the player's searches; `thread` selects the copy of the network. `None` if the player does not search.
    pub fn evaluator(&self, thread: usize) -> Option<BatchedEvaluator<G>> {
        let Method::Search {
            network,
            values,
            encoding,
            ..
        } = &self.method
        else {
            return None;
        };
        let source = network
            .as_ref()
            .map_or(EvaluationSource::Uniform, |network| network.source(thread));
        Some(BatchedEvaluator::new(source, *encoding).with_values(*values))
    }

    /// Returns the player's seat in a game that begins at `start`. `key` determines all random draws.
    ///
    /// # Errors
    /// [`PlayerError`] if an engine does not start.
    pub fn seat(&self, start: &G, key: GameKey) -> Result<Seat<G>, PlayerError> {
        Ok(match &self.method {
            Method::Search {
                settings,
                temperature,
                ..
            } => Seat::Search {
                search: Box::new(Search::new(start.clone(), settings.clone(), key)),
                temperature: *temperature,
            },
            Method::Random => Seat::Chooser(Box::new(Random::new(key))),
            Method::Perfect(solvers) => seat_of("a perfect player", Perfect::new(solvers.clone(), key))?,
            Method::Uci(engines) => seat_of("a UCI engine", uci::UciPlayer::new(Arc::clone(engines))?)?,
            Method::Gtp(engines) => seat_of("a GTP engine", gtp::GtpPlayer::new(Arc::clone(engines))?)?,
        })
    }
}

/// Returns the search settings on which those of a player are based if its network is of no run: in games of one player those of
/// [`solver`]. `None`: the defaults.
pub fn usual_search<G: Game>() -> Option<Settings> {
    (G::PLAYERS == 1).then(|| solver::settings(Settings::default().visits))
}

/// Returns any representation of the game, for uniform evaluations, which ignore it.
fn uniform_encoding<G: Game>() -> Result<G::Encoding, PlayerError> {
    (0..8)
        .find_map(|options| G::encoding(options).ok())
        .ok_or_else(|| other_game::<G>("uniform UCT", "games with a representation"))
}

/// Returns the value of a position of Paco Ŝako by wins within a turn alone ([`PacoSako::threat_value`]); 0 in other games.
fn threat_value<G: Game>(state: &G) -> MoverValue {
    let state: &dyn Any = state;
    state
        .downcast_ref::<PacoSako>()
        .map_or(MoverValue::new(0.0), PacoSako::threat_value)
}

/// The seat of a player of `Other` in a game of the same type.
fn seat_of<G: Game, Other: Game>(
    player: &str,
    chooser: impl Chooser<Other> + 'static,
) -> Result<Seat<G>, PlayerError> {
    let chooser: Box<dyn Chooser<Other>> = Box::new(chooser);
    let chooser: Box<dyn Any> = Box::new(chooser);
    match chooser.downcast::<Box<dyn Chooser<G>>>() {
        Ok(chooser) => Ok(Seat::Chooser(*chooser)),
        Err(_) => Err(other_game::<G>(player, Other::NAME)),
    }
}

fn only<G: Game, Other: Game>(player: &str) -> Result<(), PlayerError> {
    if TypeId::of::<G>() == TypeId::of::<Other>() {
        return Ok(());
    }
    Err(other_game::<G>(player, Other::NAME))
}

fn other_game<G: Game>(player: &str, plays: &str) -> PlayerError {
    PlayerError::failed(format!("{player} plays {plays} only, not {}", G::NAME))
}
