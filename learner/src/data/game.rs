//! The run's game: layout of its rows, symmetries, and random positions for the check of the first export.

use config::GameConfig;
use games::{
    RowLayout, RowSymmetries, StartError, Symmetry,
    erased::{AnyGame, AnyState, Variant, VariantError},
    registry::{self, UnknownGame},
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;

/// Maximum length of a random game, in actions.
const LONGEST: usize = 200;
/// Highest level of the problems at which random games begin.
const HARDEST: u32 = 16;

/// The game of a run.
#[derive(Clone, Debug)]
pub struct TrainingGame {
    /// Layout of its rows.
    pub layout: RowLayout,
    /// Symmetries of its rows and policies.
    pub symmetries: RowSymmetries,
    /// Concatenated rows of the start position and of random play.
    pub rows: Vec<u32>,
}

/// Error: a game cannot be trained.
#[derive(Debug, thiserror::Error)]
pub enum GameError {
    /// The game does not exist.
    #[error("`game.name` cannot be used")]
    Name(#[from] UnknownGame),
    /// The rules do not exist.
    #[error("`game.rules` cannot be used")]
    Rules(#[from] serde_json::Error),
    /// The representation does not exist, or there is no start position.
    #[error("`game.options` cannot be used")]
    Start(#[from] StartError),
    /// The game's layout is invalid.
    #[error("the layout of {game}: {reason}")]
    Layout {
        /// The game.
        game: &'static str,
        /// Reason of the error.
        reason: String,
    },
}

impl From<VariantError> for GameError {
    fn from(error: VariantError) -> Self {
        match error {
            VariantError::Rules { source, .. } => Self::Rules(source),
            VariantError::Options(source) => Self::Start(source),
        }
    }
}

impl TrainingGame {
    /// Returns the game of a configuration, with `positions` rows from random play drawn by `seed`.
    ///
    /// # Errors
    /// [`GameError`] naming the key of the configuration.
    pub fn new(config: &GameConfig, positions: usize, seed: u64) -> Result<Self, GameError> {
        let game = registry::find(&config.name)?;
        let rules = serde_json::to_value(&config.rules)?;
        let variant = game.variant(&rules, Some(config.options))?;
        variant.check()?;
        let layout = variant.layout();
        layout.check().map_err(|error| GameError::Layout {
            game: game.name,
            reason: error.to_string(),
        })?;
        let mut draw = ChaCha20Rng::seed_from_u64(seed);
        let mut rows = Vec::with_capacity(positions * layout.row_lengths().start());
        let mut legal = Vec::new();
        let mut written = 0;
        while written < positions {
            let mut state = start(game, variant.as_ref(), &mut draw)?;
            for _ in 0..LONGEST {
                if written == positions || state.outcome().is_some() {
                    break;
                }
                state.write_row(Symmetry::IDENTITY, &mut rows);
                written += 1;
                state.legal_actions(&mut legal);
                if legal.is_empty() {
                    break;
                }
                state.play_legal(legal[draw.random_range(0..legal.len())]);
            }
        }
        Ok(TrainingGame {
            layout,
            symmetries: variant.row_symmetries(),
            rows,
        })
    }
}

/// Returns the first position of random play: the start position, or a problem if the game consists of problems.
fn start(
    game: &AnyGame,
    variant: &dyn Variant,
    draw: &mut ChaCha20Rng,
) -> Result<Box<dyn AnyState>, StartError> {
    let usual = variant.start(None)?;
    if game.levels == 0 {
        return Ok(usual);
    }
    let level = draw.random_range(1..=game.levels.min(HARDEST));
    let drawn = variant.draw_start(level, false, &mut |below| draw.random_range(0..below.max(1)));
    Ok(drawn.map_or(usual, |drawn| drawn.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_play_gives_valid_and_different_rows() {
        for &name in registry::NAMES {
            let config = GameConfig {
                name: name.into(),
                options: if name == "generator" { 0 } else { 1 },
                ..GameConfig::default()
            };
            let Ok(game) = TrainingGame::new(&config, 64, 1) else {
                // Not every game has the default's options.
                continue;
            };
            assert_eq!(game.rows, TrainingGame::new(&config, 64, 1).unwrap().rows);
            let rows: std::collections::HashSet<&[u32]> = game.layout.split(&game.rows).collect();
            assert!(rows.len() > 16, "{name}: {} different rows", rows.len());
            for row in rows {
                game.layout.validate(row).unwrap();
            }
        }
    }

    #[test]
    fn what_cannot_be_trained_names_the_key() {
        let fault = |change: fn(&mut GameConfig)| {
            let mut config = GameConfig::default();
            change(&mut config);
            TrainingGame::new(&config, 1, 1).unwrap_err().to_string()
        };
        assert!(fault(|config| config.name = "paco-saco".into()).starts_with("`game.name`"));
        assert!(fault(|config| config.options = 99).starts_with("`game.options`"));
        let rules = |config: &mut GameConfig| {
            config.rules.insert("no_such_rule".into(), 1.into());
        };
        assert!(fault(rules).starts_with("`game.rules`"));
    }
}
