//! The games of the registry as a `run.toml` names them: defaults for a new run, and a check of what is written,
//! so that a slip is found here and not by four roles.

use arena::rating::RatingError;
use config::{ConfigError, GameConfig, LearnerConfig, ModelConfig, ProblemsConfig, RunConfig};
use games::{
    Game,
    generator::GeneratorGame,
    registry::{self, Visitor},
};
use search::{FirstPlay, Reuse};

/// `[game]` of a new run of the game called `name`: every rule is written out with its default.
///
/// # Errors
/// [`ConfigError::Game`] if there is no such game.
pub fn defaults(name: &str) -> Result<GameConfig, ConfigError> {
    registry::visit(name, Defaults).map_err(|error| ConfigError::Game(format!("`game.name`: {error}")))
}

/// Other defaults of a new run that depend on its game.
pub fn tune(config: &mut RunConfig) {
    if config.game.name != GeneratorGame::NAME {
        return;
    }
    // One player, whose way to the solution should be short: values are discounted, and a way once found is followed.
    config.search = search::Settings {
        visits: 64,
        first_play: FirstPlay::Reduction,
        first_play_reduction: 0.1,
        noise_total_alpha: 10.0,
        random_symmetry: false,
        reuse: Reuse::Keep,
        discount: 0.97,
        max_share: 0.25,
        stop_when_solved: true,
        max_actions: 64,
        ..config.search.clone()
    };
    // The 568 thousand parameters of the game's design.
    config.model = ModelConfig {
        blocks: 3,
        filters: 64,
        value_hidden: 128,
        ..ModelConfig::default()
    };
    // A played position costs a search, a known one nothing: on a small machine the learner would wait for the first kind.
    config.problems = ProblemsConfig {
        known_solutions: 0.95,
        ..config.problems.clone()
    };
    config.learner = LearnerConfig {
        batch_size: 128,
        checkpoint_steps: 100,
        ..config.learner.clone()
    };
    // On a small machine an attempt that fails should not take as long as ten that succeed.
    config.game.rules.insert("move_limit".into(), 32.into());
}

/// Checks that the game exists and has these rules and this representation.
///
/// # Errors
/// [`ConfigError::Game`] naming the key.
pub fn check(game: &GameConfig) -> Result<(), ConfigError> {
    let checked = registry::visit(&game.name, Check(game));
    checked.map_err(|error| ConfigError::Game(format!("`game.name`: {error}")))?
}

/// Checks that checkpoints of the game can play each other, where they are to be rated.
///
/// # Errors
/// [`ConfigError::Game`] naming the key.
pub fn check_rating(config: &RunConfig) -> Result<(), ConfigError> {
    match arena::rating::check_game(&config.game.name) {
        Err(RatingError::Config(error)) if config.rating.enabled => Err(error),
        _ => Ok(()),
    }
}

struct Defaults;

impl Visitor for Defaults {
    type Output = GameConfig;

    fn visit<G: Game>(self) -> GameConfig {
        let usual = GameConfig::default().options;
        GameConfig {
            name: G::NAME.into(),
            // A game with one representation calls it 0.
            options: if G::encoding(usual).is_ok() { usual } else { 0 },
            // Rules that have no TOML form keep their defaults unwritten.
            rules: toml::Table::try_from(G::Rules::default()).unwrap_or_default(),
        }
    }
}

struct Check<'a>(&'a GameConfig);

impl Visitor for Check<'_> {
    type Output = Result<(), ConfigError>;

    fn visit<G: Game>(self) -> Self::Output {
        let refused = |key: &str, reason: String| {
            ConfigError::Game(format!(
                "`{key}` of {}: {}",
                G::NAME,
                reason.trim_end().replace('\n', "; ")
            ))
        };
        self.0
            .rules
            .clone()
            .try_into::<G::Rules>()
            .map_err(|error| refused("game.rules", error.to_string()))?;
        G::encoding(self.0.options).map_err(|error| refused("game.options", error.to_string()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_games_defaults_are_its_own_and_pass_the_check() {
        for name in registry::NAMES {
            let game = defaults(name).unwrap();
            assert_eq!(&game.name, name);
            check(&game).unwrap();
        }
        let paco = defaults("paco-sako").unwrap();
        assert_eq!(paco.options, 1);
        assert_eq!(paco.rules["dead_end"].as_str(), Some("loss"));
    }

    #[test]
    fn slips_are_named() {
        let said = |game: &GameConfig| check(game).unwrap_err().to_string();
        let mut game = defaults("paco-sako").unwrap();
        game.options = 99;
        assert!(
            said(&game).starts_with("`game.options` of paco-sako: "),
            "{}",
            said(&game)
        );
        game.options = 1;
        game.rules.insert("dead_ends".into(), "loss".into());
        assert!(
            said(&game).starts_with("`game.rules` of paco-sako: unknown field `dead_ends`"),
            "{}",
            said(&game)
        );
        game.name = "paco-saco".into();
        assert!(said(&game).contains("did you mean paco-sako?"), "{}", said(&game));
        assert!(defaults("go").is_err());
    }
}
