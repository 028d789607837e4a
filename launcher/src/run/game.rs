//! Games of the registry in a `run.toml`: defaults for a new run, and a check of the values, so that an error is reported
//! once and not by each of four roles.

use config::{ConfigError, GameConfig, Override, RunConfig};
use games::{
    erased::{AnyGame, VariantError},
    outside, registry,
};

use super::{description, recipe};

fn find(name: &str) -> Result<&'static AnyGame, ConfigError> {
    registry::find(name).map_err(|error| ConfigError::Invalid(format!("`game.name`: {error}")))
}

/// True if a run of this configuration is one of the game that a person names, with or without the size of its board.
pub fn is_of(config: &GameConfig, named: &str) -> bool {
    match named.contains(':') {
        true => registry::find(&config.title()).is_ok_and(|game| game.title() == named),
        false => config.name == named,
    }
}

/// Returns the section `[game]` of a new run of the game `name`, with the default of every rule.
///
/// # Errors
/// [`ConfigError`] if there is no such game.
pub fn defaults(name: &str) -> Result<GameConfig, ConfigError> {
    let game = find(name)?;
    let usual = GameConfig::default();
    Ok(GameConfig {
        name: game.name.into(),
        options: game.options,
        description: match outside::description() {
            Some(described) if described.name == game.name => description::FILE.into(),
            _ => usual.description,
        },
        // Rules that have no TOML form keep their defaults unwritten.
        rules: toml::Table::try_from(game.rules()).unwrap_or_default(),
    })
}

/// Settings in which a new run of this game differs from the usual ones, those of all games first ([`recipe`]).
///
/// # Errors
/// [`ConfigError`] if there is no such game, or if its settings are not TOML.
pub fn settings(config: &GameConfig) -> Result<Vec<Override>, ConfigError> {
    let game = find(&config.name)?;
    let mut settings = recipe::settings(game, config)?;
    settings.extend(overrides(game.run_settings, game.name)?);
    Ok(settings)
}

/// Returns the values of a `run.toml`, the settings of `what`.
pub(super) fn overrides(text: &str, what: &str) -> Result<Vec<Override>, ConfigError> {
    let sections: toml::Table = toml::from_str(text)
        .map_err(|error| ConfigError::Invalid(format!("the settings of {what}: {error}")))?;
    let mut found = Vec::new();
    for (section, keys) in sections {
        collect(&section, keys, &mut found)?;
    }
    Ok(found)
}

/// Adds all values below `path` to `found`.
fn collect(path: &str, value: toml::Value, found: &mut Vec<Override>) -> Result<(), ConfigError> {
    match value {
        toml::Value::Table(keys) => keys
            .into_iter()
            .try_for_each(|(key, value)| collect(&format!("{path}.{key}"), value, found)),
        value => {
            found.push(Override::new(path, value)?);
            Ok(())
        }
    }
}

/// Returns `config` as a `run.toml` with a comment on every key, those of the game's rules included. The first line says where the
/// settings of a game that nobody tuned are from.
pub fn template(config: &RunConfig) -> String {
    let game = registry::find(&config.game.name);
    let text = config::template_with_rules(config, |key| game.as_ref().ok()?.rule_comment(key));
    match recipe::reason(config) {
        Some(reason) => format!("# {reason}.\n{text}"),
        None => text,
    }
}

/// Returns the values of `config` that differ from the defaults, those of the game's rules included, as a `run.toml` without comments.
///
/// # Errors
/// [`ConfigError`] if there is no such game.
pub fn differences(config: &RunConfig) -> Result<String, ConfigError> {
    fn remove_equal(table: &mut toml::Table, usual: &toml::Table) {
        table.retain(|key, value| match (value, usual.get(key)) {
            (toml::Value::Table(own), Some(toml::Value::Table(usual))) => {
                remove_equal(own, usual);
                !own.is_empty()
            }
            (value, usual) => usual != Some(value),
        });
    }

    let usual = RunConfig::default();
    let of_game = RunConfig {
        game: GameConfig {
            description: usual.game.description.clone(),
            ..defaults(&config.game.name)?
        },
        ..usual.clone()
    };
    let mut of_game = config::table(&of_game);
    // A file without a name is one of the usual game.
    if let Some(toml::Value::Table(game)) = of_game.get_mut("game") {
        game.insert("name".into(), usual.game.name.into());
    }
    let mut table = config::table(config);
    remove_equal(&mut table, &of_game);
    toml::to_string(&table).map_err(|error| ConfigError::Invalid(error.to_string()))
}

/// Checks that the game exists and has these rules and this representation.
///
/// # Errors
/// [`ConfigError`] naming the key.
pub fn check(config: &GameConfig) -> Result<(), ConfigError> {
    let game = find(&config.name)?;
    if game.name != config.name {
        let reason = format!(
            "`game.name`: write {:?}, and the size as `size` in [game.rules]",
            game.name
        );
        return Err(ConfigError::Invalid(reason));
    }
    let refused =
        |key: &str, reason: String| ConfigError::Invalid(format!("`{key}` of {}: {reason}", game.name));
    let rules = serde_json::to_value(&config.rules);
    let rules = rules.map_err(|error| refused("game.rules", error.to_string()))?;
    // Rules that are not possible are so in any representation.
    let start = match game.variant(&rules, None) {
        Ok(_) => "game.options",
        Err(_) => "game.rules",
    };
    let variant = game.variant(&rules, Some(config.options));
    let checked = variant.and_then(|variant| Ok(variant.check()?));
    checked.map_err(|error| match error {
        VariantError::Rules { source, .. } => refused("game.rules", source.to_string()),
        VariantError::Options(error) => refused(start, error.to_string()),
    })
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

    /// A network that comes with Minuet keeps the settings of its run, without those that a new run has anyway.
    #[test]
    fn settings_of_shipped_networks_can_be_read_and_repeat_no_default() {
        let networks = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../networks");
        let folders = |path: &std::path::Path| {
            let entries = std::fs::read_dir(path).unwrap();
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.is_dir())
        };
        let games: Vec<_> = folders(&networks).collect();
        let levels = games.iter().flat_map(|game| folders(game));
        let mut count = 0;
        for folder in games.iter().cloned().chain(levels) {
            let text = std::fs::read_to_string(folder.join("run.toml")).unwrap();
            let run = config::parse(&text).unwrap();
            check(&run.game).unwrap();
            let table = |text: &str| toml::from_str::<toml::Table>(text).unwrap();
            let short = differences(&run).unwrap();
            assert_eq!(table(&text), table(&short), "{}", folder.display());
            count += 1;
        }
        assert!(count >= games.len());
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
            said(&game).contains("`game.options` of paco-sako: "),
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
            said(&tasks).contains("`game.options` of generator: "),
            "{}",
            said(&tasks)
        );
        tasks.options = 1;
        check(&tasks).unwrap();
        game.name = "paco-saco".into();
        assert!(said(&game).contains("did you mean paco-sako?"), "{}", said(&game));
        assert!(defaults("shogi").is_err());
    }

    #[test]
    fn a_size_is_a_rule_of_a_new_run_and_part_of_its_name() {
        let game = defaults("gomoku:15").unwrap();
        assert_eq!(
            (game.name.as_str(), game.rules["size"].as_integer()),
            ("gomoku", Some(15))
        );
        check(&game).unwrap();
        assert!(is_of(&game, "gomoku") && is_of(&game, "gomoku:15"));
        assert!(!is_of(&game, "gomoku:8") && !is_of(&game, "go"));
        assert!(defaults("gomoku:99").unwrap_err().to_string().contains("5 to 19"));
        assert!(defaults("chess:9").unwrap_err().to_string().contains("one size"));
        let named = GameConfig {
            name: "gomoku:15".into(),
            ..game
        };
        assert!(check(&named).unwrap_err().to_string().contains("[game.rules]"));
    }
}
