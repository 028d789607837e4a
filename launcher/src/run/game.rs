//! Games of the registry in a `run.toml`: defaults for a new run, and a check of the values, so that an error is reported
//! once and not by each of four roles.

use config::{ConfigError, GameConfig, Override, RunConfig};
use games::{
    Face, Game,
    registry::{self, Visitor},
};

/// Returns the section `[game]` of a new run of the game `name`, with the default of every rule.
///
/// # Errors
/// [`ConfigError::Game`] if there is no such game.
pub fn defaults(name: &str) -> Result<GameConfig, ConfigError> {
    registry::visit(name, Defaults).map_err(|error| ConfigError::Game(format!("`game.name`: {error}")))
}

/// Settings in which a new run of the game called `name` differs from the usual ones.
///
/// # Errors
/// [`ConfigError`] if there is no such game, or if one of its settings is not `section.key=value`.
pub fn settings(name: &str) -> Result<Vec<Override>, ConfigError> {
    let settings = registry::visit(name, Settings)
        .map_err(|error| ConfigError::Game(format!("`game.name`: {error}")))?;
    settings.iter().map(|setting| setting.parse()).collect()
}

/// Returns `config` as a `run.toml` with a comment on every key, those of the game's rules included.
pub fn template(config: &RunConfig) -> String {
    let rule = registry::visit(&config.game.name, RuleComments);
    config::template_with_rules(config, |key| rule.as_ref().ok()?(key))
}

/// Checks that the game exists and has these rules and this representation.
///
/// # Errors
/// [`ConfigError::Game`] naming the key.
pub fn check(game: &GameConfig) -> Result<(), ConfigError> {
    let checked = registry::visit(&game.name, Check(game));
    checked.map_err(|error| ConfigError::Game(format!("`game.name`: {error}")))?
}

struct Defaults;

impl Visitor for Defaults {
    type Output = GameConfig;

    fn visit<G: Game>(self) -> GameConfig {
        let usual = GameConfig::default();
        GameConfig {
            name: G::NAME.into(),
            // The usual options are those of the usual game.
            options: if usual.name == G::NAME { usual.options } else { 0 },
            // Rules that have no TOML form keep their defaults unwritten.
            rules: toml::Table::try_from(G::Rules::default()).unwrap_or_default(),
        }
    }
}

struct Settings;

impl Visitor for Settings {
    type Output = &'static [&'static str];

    fn visit<G: Face>(self) -> Self::Output {
        G::RUN_SETTINGS
    }
}

struct RuleComments;

impl Visitor for RuleComments {
    type Output = fn(&str) -> Option<&'static str>;

    fn visit<G: Face>(self) -> Self::Output {
        G::rule_comment
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
        let rules = (self.0.rules.clone())
            .try_into::<G::Rules>()
            .map_err(|error| refused("game.rules", error.to_string()))?;
        let encoding =
            G::encoding(self.0.options).map_err(|error| refused("game.options", error.to_string()))?;
        G::check(&rules, encoding).map_err(|error| refused("game.options", error.to_string()))
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
    fn every_rule_of_every_game_has_a_comment_above_it() {
        for name in registry::NAMES {
            let config = RunConfig {
                game: defaults(name).unwrap(),
                ..RunConfig::default()
            };
            let text = template(&config);
            let lines: Vec<&str> = text.lines().collect();
            for key in config.game.rules.keys() {
                let at = lines
                    .iter()
                    .position(|line| line.starts_with(&format!("{key} = ")));
                let above = lines[at.unwrap() - 1];
                assert!(
                    above.starts_with("# ") && above.len() > 10,
                    "{name}: {key}: {above}"
                );
            }
        }
    }

    #[test]
    fn invalid_values_are_errors_that_name_the_key() {
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
        let mut tasks = defaults("generator").unwrap();
        assert_eq!(tasks.options, 0);
        tasks.rules.insert("tasks".into(), 20.into());
        assert!(
            said(&tasks).starts_with("`game.options` of generator: "),
            "{}",
            said(&tasks)
        );
        tasks.options = 1;
        check(&tasks).unwrap();
        game.name = "paco-saco".into();
        assert!(said(&game).contains("did you mean paco-sako?"), "{}", said(&game));
        assert!(defaults("go").is_err());
    }
}
