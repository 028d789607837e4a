//! The run's game: layout of its rows, symmetries, and random positions for the check of the first export.

use anyhow::Context as _;
use config::{GameConfig, ModelConfig};
use games::{RowLayout, RowSymmetries, erased::VariantError, outside, registry};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;

use crate::network::NetworkShape;

/// Share of the entries of a random row that point at distinct squares.
const FILLED: f32 = 0.8;

/// The game of a run.
#[derive(Clone, Debug)]
pub struct TrainingGame {
    /// Layout of its rows.
    pub layout: RowLayout,
    /// Symmetries of its rows and policies.
    pub symmetries: RowSymmetries,
    /// True if its records tell who owns the squares at the end.
    pub has_territory: bool,
    /// Concatenated rows of the start position and of random play, or random rows if this program does not know the rules.
    pub rows: Vec<u32>,
}

impl TrainingGame {
    /// Returns the game of a configuration, with `positions` rows from random play drawn by `seed`.
    ///
    /// # Errors
    /// The game, its rules or its representation do not exist. The error names the key of the configuration.
    pub fn new(config: &GameConfig, positions: usize, seed: u64) -> anyhow::Result<Self> {
        let game = registry::find(&config.name).context("`game.name` cannot be used")?;
        let no_rules = "`game.rules` cannot be used";
        let no_options = "`game.options` cannot be used";
        let rules = serde_json::to_value(&config.rules).context(no_rules)?;
        let variant = game
            .variant(&rules, Some(config.options))
            .map_err(|error| match error {
                VariantError::Rules { source, .. } => anyhow::Error::from(source).context(no_rules),
                VariantError::Options(source) => anyhow::Error::from(source).context(no_options),
            })?;
        variant.check().context(no_options)?;
        let layout = variant.layout();
        layout
            .check()
            .with_context(|| format!("the layout of {}", game.name))?;
        let mut draw = ChaCha20Rng::seed_from_u64(seed);
        let rows = match config.is_from_outside() && !outside::has_rules() {
            // The description of the game says what rows may hold, and not which positions there are.
            true => onnx::random::rows(&layout, positions, FILLED, seed),
            false => variant
                .random_rows(positions, &mut |below| draw.random_range(0..below.max(1)))
                .context(no_options)?,
        };
        Ok(TrainingGame {
            layout,
            symmetries: variant.row_symmetries(),
            has_territory: game.has_territory,
            rows,
        })
    }

    /// Returns the network that `[model]` describes for this game.
    ///
    /// # Errors
    /// As [`NetworkShape::new`].
    pub fn network(&self, model: &ModelConfig) -> anyhow::Result<NetworkShape> {
        let shape = NetworkShape::new(model, &self.layout)?;
        Ok(match self.has_territory && model.territory {
            true => shape.with_territory(),
            false => shape,
        })
    }
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
    fn networks_of_games_with_a_territory_have_its_head_unless_it_is_switched_off() {
        let network = |name: &str, territory| {
            let config = GameConfig {
                name: name.into(),
                options: 0,
                ..GameConfig::default()
            };
            let model = ModelConfig {
                territory,
                ..ModelConfig::default()
            };
            TrainingGame::new(&config, 1, 1).unwrap().network(&model).unwrap()
        };
        for (name, territory, expected) in
            [("go", true, true), ("go", false, false), ("othello", true, false)]
        {
            assert_eq!(network(name, territory).has_territory(), expected, "{name}");
        }
        let differences = network("go", true).differences(&network("go", false));
        assert_eq!(differences, ["territory is true, there was none"]);
        let differences = network("go", false).differences(&network("go", true));
        assert_eq!(differences, ["there is no territory, was true"]);
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
