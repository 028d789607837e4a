//! Games and states without their type, so that one Python class serves every game of the registry.

use std::fmt::Debug;

use games::{
    Action, Face, IllegalAction, Outcome, Player, RowLayout, RowSymmetries, Symmetry,
    registry::{self, Visitor},
    terminal::Style,
};
use search::{Draws, GameKey, Purpose, Settings};
use serde_json::{Map, Value};

use crate::searching::{AnySearch, TypedSearch};

/// A game with its rules and the representation of its rows.
pub trait AnyGame: Send + Sync + Debug {
    /// State that a game begins in, from the JSON form that the game defines.
    fn start(
        &self,
        position: Option<&Value>,
        fields: &Map<String, Value>,
    ) -> Result<Box<dyn AnyState>, String>;
    /// Start of a problem, and the actions of a solution.
    fn problem(&self, wanted: &Wanted<'_>) -> Result<(Box<dyn AnyState>, Vec<Action>), String>;
}

/// Problem to be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub level: i64,
    /// Name of the kind, as in [`games::ProblemKind`].
    pub kind: &'a str,
    /// Key of all random draws, together with the level.
    pub key: GameKey,
    /// True for a problem that self-play never draws, false for one of self-play.
    pub is_held_out: bool,
}

/// A state of a game, with the representation of its rows. The methods are those of [`games::Game`] and [`Face`].
pub trait AnyState: Send + Sync + Debug {
    fn copy(&self) -> Box<dyn AnyState>;
    fn to_move(&self) -> Player;
    fn outcome(&self) -> Option<Outcome>;
    fn outcome_name(&self) -> Option<&'static str>;
    fn ending(&self) -> Option<&'static str>;
    fn position(&self) -> String;
    fn drawing(&self) -> String;
    fn legal_actions(&self, actions: &mut Vec<Action>);
    fn play(&mut self, action: Action) -> Result<(), IllegalAction>;
    fn play_legal(&mut self, action: Action);
    fn allows(&self, symmetry: Symmetry) -> bool;
    fn write_row(&self, symmetry: Symmetry, row: &mut Vec<u32>);
    fn policy_index(&self, symmetry: Symmetry, action: Action) -> u32;
    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String>;
    fn write_turn(&self, actions: &[Action]) -> String;
    fn action_from_json(&self, value: &Value) -> Result<Action, String>;
    fn search(&self, settings: Settings, key: GameKey) -> Box<dyn AnySearch>;
}

/// Facts about a game, and the game itself.
#[derive(Debug)]
pub struct Spec {
    pub name: &'static str,
    pub players: u8,
    pub actions: u32,
    pub symmetries: u8,
    pub layout: RowLayout,
    pub rules: Value,
    pub maps: RowSymmetries,
    pub game: Box<dyn AnyGame>,
}

impl Spec {
    /// Game called `name`. `rules` replaces rules of self-play.
    ///
    /// # Errors
    /// [`SpecError`] with the reason.
    pub fn new(name: &str, options: Option<u32>, rules: Map<String, Value>) -> Result<Self, SpecError> {
        registry::visit(name, Making { options, rules })
            .map_err(|error| SpecError::Unknown(error.to_string()))?
    }

    /// True if states of both can stand in one batch.
    pub fn is_like(&self, other: &Self) -> bool {
        self.layout == other.layout && self.rules == other.rules
    }
}

/// Error: there is no such game.
#[derive(Debug)]
pub enum SpecError {
    /// No game has this name.
    Unknown(String),
    /// The game has no such rules or representation.
    Rules(String),
}

struct Making {
    options: Option<u32>,
    rules: Map<String, Value>,
}

impl Visitor for Making {
    type Output = Result<Spec, SpecError>;

    fn visit<G: Face>(self) -> Self::Output {
        let wrong = |error: String| SpecError::Rules(error);
        let encoding =
            G::encoding(self.options.unwrap_or(G::OPTIONS)).map_err(|error| wrong(error.to_string()))?;
        let mut table =
            serde_json::to_value(G::Rules::default()).map_err(|error| wrong(error.to_string()))?;
        if let Value::Object(fields) = &mut table {
            fields.extend(self.rules);
        } else if !self.rules.is_empty() {
            return Err(wrong(format!("{} has no rules to change", G::NAME)));
        }
        let rules: G::Rules = serde_json::from_value(table.clone())
            .map_err(|error| wrong(format!("these are no rules of {}: {error}", G::NAME)))?;
        Ok(Spec {
            name: G::NAME,
            players: G::PLAYERS,
            actions: G::ACTIONS,
            symmetries: G::SYMMETRIES,
            layout: G::layout(encoding),
            rules: table,
            maps: G::row_symmetries(encoding),
            game: Box::new(TypedGame::<G> { rules, encoding }),
        })
    }
}

#[derive(Debug)]
struct TypedGame<G: Face> {
    rules: G::Rules,
    encoding: G::Encoding,
}

impl<G: Face> AnyGame for TypedGame<G> {
    fn start(
        &self,
        position: Option<&Value>,
        fields: &Map<String, Value>,
    ) -> Result<Box<dyn AnyState>, String> {
        if let Some(name) = fields
            .keys()
            .find(|name| !G::START_FIELDS.contains(&name.as_str()))
        {
            return Err(format!("a start of {} has no field {name:?}", G::NAME));
        }
        Ok(Box::new(TypedState::<G> {
            state: G::start_from_json(&self.rules, position, fields)?,
            encoding: self.encoding,
        }))
    }

    fn problem(&self, wanted: &Wanted<'_>) -> Result<(Box<dyn AnyState>, Vec<Action>), String> {
        let Wanted { level, kind, key, .. } = *wanted;
        let kinds = G::problem_kinds(&self.rules);
        if G::LEVELS == 0 || kinds.is_empty() {
            return Err(format!("{} has no problems", G::NAME));
        }
        let highest = G::LEVELS;
        let level = u32::try_from(level)
            .ok()
            .filter(|level| (1..=highest).contains(level))
            .ok_or_else(|| format!("{} has levels 1 to {highest}, not {level}", G::NAME))?;
        let Some(own) = kinds.iter().find(|own| own.name == kind) else {
            let names: Vec<&str> = kinds.iter().map(|own| own.name).collect();
            let names = names.join(", ");
            return Err(format!(
                "{} has problems of the kinds {names}, not {kind:?}",
                G::NAME
            ));
        };
        G::check(&own.rules, self.encoding).map_err(|error| error.to_string())?;
        // The stream by which `minuet bench generator` draws its problems.
        let mut draws = Draws::new(key, level, Purpose::Problem);
        let mut draw = |below| draws.below(below);
        let drawn = match wanted.is_held_out {
            true => G::draw_held_out(&own.rules, level, &mut draw),
            false => G::draw_start(&own.rules, level, &mut draw),
        };
        let drawn = drawn.ok_or_else(|| format!("{}: no such {kind} of level {level} was found", G::NAME))?;
        let state = TypedState {
            state: drawn.start,
            encoding: self.encoding,
        };
        Ok((Box::new(state), drawn.solution))
    }
}

/// A state with its type.
#[derive(Debug)]
pub struct TypedState<G: Face> {
    pub state: G,
    pub encoding: G::Encoding,
}

impl<G: Face> AnyState for TypedState<G> {
    fn copy(&self) -> Box<dyn AnyState> {
        Box::new(Self {
            state: self.state.clone(),
            encoding: self.encoding,
        })
    }

    fn to_move(&self) -> Player {
        self.state.to_move()
    }

    fn outcome(&self) -> Option<Outcome> {
        self.state.outcome()
    }

    fn outcome_name(&self) -> Option<&'static str> {
        self.state.outcome_name()
    }

    fn ending(&self) -> Option<&'static str> {
        self.state.ending()
    }

    fn position(&self) -> String {
        self.state.position()
    }

    fn drawing(&self) -> String {
        self.state.draw(Style {
            ascii: true,
            colour: false,
            flipped: false,
        })
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        self.state.legal_actions(actions);
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.state.play(action)
    }

    fn play_legal(&mut self, action: Action) {
        self.state.play_legal(action);
    }

    fn allows(&self, symmetry: Symmetry) -> bool {
        symmetry.0 < G::SYMMETRIES && self.state.allows(symmetry)
    }

    fn write_row(&self, symmetry: Symmetry, row: &mut Vec<u32>) {
        self.state.write_row(self.encoding, symmetry, row);
    }

    fn policy_index(&self, symmetry: Symmetry, action: Action) -> u32 {
        self.state.policy_index(self.encoding, symmetry, action)
    }

    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String> {
        self.state.read_turn(text)
    }

    fn write_turn(&self, actions: &[Action]) -> String {
        self.state.write_turn(actions)
    }

    fn action_from_json(&self, value: &Value) -> Result<Action, String> {
        self.state.action_from_json(value)
    }

    fn search(&self, settings: Settings, key: GameKey) -> Box<dyn AnySearch> {
        Box::new(TypedSearch::new(self.state.clone(), self.encoding, settings, key))
    }
}
