//! A game as a file gives it, and the record that is made of it.
//!
//! The policy of each position is the action that was played, as one visit. The root value of each position is the result, so that
//! `learner.root_value_share` mixes the result with itself: nobody searched, and no value is made up.

use std::time::{SystemTime, UNIX_EPOCH};

use config::RunConfig;
use games::{
    Action, Outcome, StartError, Symmetry,
    erased::{AnyGame, Variant, VariantError},
    registry,
};
use proto::{IMPORTED, endings::ADJUDICATED, v1::Game};
use replay_store::record::{MAX_POSITIONS, rules::result_of};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The game of the run into which games are imported.
pub struct Target {
    /// The game, with the size of its board.
    pub game: &'static AnyGame,
    /// Representation options of the rows.
    options: u32,
    /// Discount of one-player games.
    discount: f32,
}

impl Target {
    /// Returns the game of a run.
    ///
    /// # Errors
    /// This build has no such game.
    pub fn of(config: &RunConfig) -> Result<Self, registry::UnknownGame> {
        Ok(Self {
            game: registry::find(&config.game.title())?,
            options: config.game.options,
            discount: config.search.discount,
        })
    }

    /// Returns a game apart from any run; no row is written.
    pub const fn of_game(game: &'static AnyGame) -> Self {
        Self {
            game,
            options: 0,
            discount: 1.0,
        }
    }

    /// Returns the game by other rules, which are a JSON object.
    ///
    /// # Errors
    /// There are no such rules.
    pub fn variant(&self, rules: &Value) -> Result<std::sync::Arc<dyn Variant>, VariantError> {
        self.game.variant(rules, Some(self.options))
    }
}

/// Reason for which a game is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The options of the command select other games.
    NotSelected,
    /// The file gives no result, and the rules neither.
    NoResult,
    /// The result is not the one that the rules give, or two results are given.
    Contradiction,
    /// The start or an action is not legal.
    Illegal,
    /// The text is damaged, or holds another game.
    Unreadable,
}

impl Reason {
    /// All reasons, each with its name in JSON and with words for people.
    pub const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::NotSelected, "not_selected", "not selected"),
        (Self::NoResult, "no_result", "without a result"),
        (
            Self::Contradiction,
            "contradiction",
            "with a result that contradicts the rules",
        ),
        (Self::Illegal, "illegal", "with an illegal start or move"),
        (Self::Unreadable, "unreadable", "unreadable"),
    ];
}

/// Error: a game is left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Fault {
    /// Kind of fault.
    pub reason: Reason,
    /// The fault in words.
    pub text: String,
}

impl Fault {
    /// Returns a fault.
    pub fn new(reason: Reason, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { reason, text }
    }

    /// Returns the fault of a move that is not legal. `number` counts from 0.
    pub fn of_move(number: usize, text: &str, problem: impl std::fmt::Display) -> Self {
        Self::new(
            Reason::Illegal,
            format!("move {} ({text:.40}): {problem}", number + 1),
        )
    }
}

impl From<StartError> for Fault {
    fn from(error: StartError) -> Self {
        Self::new(Reason::Illegal, error.to_string())
    }
}

impl From<VariantError> for Fault {
    fn from(error: VariantError) -> Self {
        Self::new(Reason::Unreadable, service::chain(&error).to_string())
    }
}

/// A player as a file names one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Named {
    /// Name; empty if unknown.
    pub name: String,
    /// Rating; `None` if unknown.
    pub rating: Option<f64>,
}

/// A game as a file gives it. Its moves are not played yet.
pub struct Found {
    /// The first and the second player.
    pub players: [Named; 2],
    /// Result that the file gives; `None` if it gives none.
    pub result: Option<Outcome>,
    /// Reads and plays the moves.
    pub play: Play,
}

/// Reads the moves of a game and plays them. The moves after an end by the rules are not read.
pub type Play = Box<dyn FnOnce(&Target) -> Result<Played, Fault> + Send>;

/// The actions of a game, all of them legal.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Rules, a JSON object.
    pub rules: Value,
    /// Position in which the game begins; `None` for the usual start.
    pub start: Option<String>,
    /// The actions.
    pub actions: Vec<Action>,
}

/// Plays a game and returns its record. `source` and `number` tell where it is from.
///
/// # Errors
/// [`Fault`] with the reason for which the game is left out.
pub fn record(target: &Target, found: Found, (source, number): (&str, u64)) -> Result<Game, Fault> {
    let played = (found.play)(target)?;
    let variant = target.variant(&played.rules)?;
    if variant.game().size() != target.game.size() {
        let (found, own) = (variant.game().title(), target.game.title());
        let text = format!("a game of {found}, and the run is of {own}");
        return Err(Fault::new(Reason::Unreadable, text));
    }
    let plies = played.actions.len();
    if !(1..=MAX_POSITIONS).contains(&plies) {
        let text = format!("{plies} moves; 1 to {MAX_POSITIONS} are possible");
        return Err(Fault::new(Reason::Unreadable, text));
    }
    let mut state = variant.start(played.start.as_deref())?;
    let usual = variant.start(None).ok().map(|usual| usual.position());
    let start = state.position();
    let discount = match target.game.players {
        1 => target.discount,
        _ => 0.0,
    };
    let mut game = Game {
        game: target.game.name.into(),
        options: target.options,
        rules_json: variant.rules().to_string(),
        start: if usual.as_ref() == Some(&start) {
            String::new()
        } else {
            start
        },
        search_json: "{}".into(),
        discount,
        actor: source.into(),
        game_number: number,
        build: actor::play::record::build().into(),
        provenance: IMPORTED.into(),
        visit_counts: vec![1; plies],
        visits: vec![1; plies],
        ..Game::default()
    };
    let mut movers = Vec::with_capacity(plies);
    let rows_vary = variant.layout().row_len().is_none();
    for (ply, &action) in played.actions.iter().enumerate() {
        movers.push(state.to_move().index() as u8);
        let before = game.rows.len();
        state.write_row(Symmetry::IDENTITY, &mut game.rows);
        if rows_vary {
            game.row_lengths.push((game.rows.len() - before) as u32);
        }
        game.visit_actions
            .push(state.policy_index(Symmetry::IDENTITY, action));
        let played = state.play(action);
        played.map_err(|error| Fault::of_move(ply, &action.to_string(), error.reason))?;
    }
    let (outcome, ending) = match (state.outcome(), found.result) {
        (Some(outcome), told) if told.is_none_or(|told| told == outcome) => {
            if let Some(territory) = state.territory() {
                let owners = territory.owners.into_iter().map(i8::cast_unsigned);
                (game.territory, game.territory_score) = (owners.collect(), territory.score);
            }
            (outcome, state.ending().unwrap_or_default())
        }
        (Some(_), _) => {
            let end = state.result_text().unwrap_or_default();
            let text = format!("the file gives another result than the rules after move {plies}: {end}");
            return Err(Fault::new(Reason::Contradiction, text));
        }
        (None, Some(told)) if target.game.players == 2 => (told, ADJUDICATED),
        (None, _) => {
            return Err(Fault::new(
                Reason::NoResult,
                "the game is not over, and the file gives no result",
            ));
        }
    };
    game.actions = played.actions;
    game.result = result_of(outcome).into();
    game.score = outcome.value().get();
    game.ending = ending.into();
    game.root_values = root_values(&movers, game.score, if discount > 0.0 { discount } else { 1.0 });
    game.movers = movers.into();
    game.finished_at_ms = now_ms();
    game.id = id(&game).to_vec().into();
    Ok(game)
}

/// Returns the result from the point of view of each position's player, discounted once for each action that is left.
fn root_values(movers: &[u8], score: f32, discount: f32) -> Vec<f32> {
    let values = movers.iter().rev().zip(1..).map(|(&mover, left)| {
        let sign = if mover == 0 { 1.0 } else { -1.0 };
        sign * score * discount.powi(left)
    });
    let mut values: Vec<f32> = values.collect();
    values.reverse();
    values
}

/// Returns an id that depends on the game alone, so that a game is stored once, however often and from whichever file it is imported.
fn id(game: &Game) -> [u8; 16] {
    let mut digest = Sha256::new();
    for text in [&game.game, &game.rules_json, &game.start] {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    game.actions
        .iter()
        .for_each(|action| digest.update(action.to_le_bytes()));
    digest.update(game.score.to_le_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&digest.finalize()[..16]);
    id
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_millis() as u64)
}
