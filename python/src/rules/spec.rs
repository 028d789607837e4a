//! A game with its rules and representation, and the facts about it that Python asks for often.

use std::sync::Arc;

use games::{
    Action, RowLayout, RowSymmetries,
    erased::{self, AnyGame, AnyState, Variant, VariantError},
    registry,
};
use pyo3::prelude::*;
use search::{Draws, GameKey, Purpose};
use serde_json::{Map, Value};

use crate::error::{PositionError, UnknownGameError};

/// A game with its rules and the representation of its rows.
#[derive(Debug)]
pub struct Spec {
    pub game: &'static AnyGame,
    pub layout: RowLayout,
    pub rules: Value,
    pub maps: RowSymmetries,
    /// Number of symmetries, the identity included.
    pub symmetries: u8,
    variant: Arc<dyn Variant>,
}

impl Spec {
    /// Returns the game called `name`. `changes` replaces rules of self-play.
    ///
    /// # Errors
    /// `UnknownGameError` or `PositionError`.
    pub fn new(name: &str, options: Option<u32>, changes: Map<String, Value>) -> PyResult<Self> {
        let game = registry::find(name).map_err(|error| UnknownGameError::new_err(error.to_string()))?;
        let variant = game.variant(&erased::changed(game.rules(), changes), options);
        let variant = variant.map_err(|error| {
            PositionError::new_err(match error {
                VariantError::Rules { game, source } => format!("{game} has no such rules: {source}"),
                VariantError::Options(error) => error.to_string(),
            })
        })?;
        let start = variant
            .start(None)
            .map_err(|error| PositionError::new_err(error.to_string()))?;
        Ok(Self {
            game,
            layout: variant.layout(),
            rules: variant.rules(),
            maps: variant.row_symmetries(),
            symmetries: start.symmetries(),
            variant,
        })
    }

    /// True if states of both fit into one batch.
    pub fn is_like(&self, other: &Self) -> bool {
        self.layout == other.layout && self.rules == other.rules
    }

    /// Returns the state that a game begins in, from the JSON form that the game defines.
    pub fn start(&self, start: Option<&Value>, fields: &Map<String, Value>) -> PyResult<Box<dyn AnyState>> {
        let is_unknown = |name: &&String| !self.game.start_fields.contains(&name.as_str());
        let started = match fields.keys().find(is_unknown) {
            Some(name) => Err(format!("a start of {} has no field {name:?}", self.game.name)),
            None => self.variant.start_from_json(start, fields),
        };
        started.map_err(PositionError::new_err)
    }

    /// Returns the start of a problem, and the actions of a solution. `key` and `level` determine all random draws. If `is_held_out`,
    /// it is a problem that self-play never draws.
    ///
    /// # Errors
    /// Sentence that says why there is no such problem.
    pub fn problem(
        &self,
        level: i64,
        kind: &str,
        key: GameKey,
        is_held_out: bool,
    ) -> Result<(Box<dyn AnyState>, Vec<Action>), String> {
        let (name, highest) = (self.game.name, self.game.levels);
        let kinds = self.variant.problem_kinds();
        if highest == 0 || kinds.is_empty() {
            return Err(format!("{name} has no problems"));
        }
        let level = u32::try_from(level)
            .ok()
            .filter(|level| (1..=highest).contains(level))
            .ok_or_else(|| format!("{name} has levels 1 to {highest}, not {level}"))?;
        let Some(own) = kinds.iter().find(|own| own.name == kind) else {
            let names: Vec<&str> = kinds.iter().map(|own| own.name).collect();
            let names = names.join(", ");
            return Err(format!("{name} has problems of the kinds {names}, not {kind:?}"));
        };
        own.rules.check().map_err(|error| error.to_string())?;
        // The stream by which `minuet bench generator` draws its problems.
        let mut draws = Draws::new(key, level, Purpose::Problem);
        let drawn = (own.rules).draw_start(level, is_held_out, &mut |below| draws.below(below));
        let drawn = drawn.ok_or_else(|| format!("{name}: no such {kind} of level {level} was found"))?;
        Ok((drawn.start, drawn.solution))
    }
}
