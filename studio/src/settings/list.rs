//! [`Setting`]: a key of the run's `run.toml` with its value, its usual value and its documentation.

use std::{collections::BTreeMap, path::Path};

use config::{ConfigError, RunConfig};
use games::registry;

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the section, e.g. `search`.
    pub section: String,
    /// Full path, e.g. `search.visits`.
    pub path: String,
    /// Documentation; that of the game for a rule, e.g. `game.rules.dead_end`.
    pub documentation: &'static str,
    /// Value in TOML.
    pub value: String,
    /// The setting as an argument of a command, e.g. `--set search.visits=200`, quoted for a shell where that is needed.
    pub argument: String,
}

/// Reads all settings of the run in a folder, with paths as the file has them.
///
/// # Errors
/// [`ConfigError`] if the file cannot be read or used.
pub fn read(folder: &Path) -> Result<RunConfig, ConfigError> {
    let path = folder.join("run.toml");
    let refused = |error| ConfigError::Invalid(format!("cannot read {}: {error}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(refused)?;
    config::parse(&text)
}

/// All settings of a configuration, in the order of `run.toml`.
pub fn settings(config: &RunConfig) -> Vec<Setting> {
    let game = registry::find(&config.game.title());
    let rule = |key: &str| game.as_ref().ok()?.rule_comment(key);
    let mut found = Vec::new();
    for section in config::described(config) {
        for key in section.keys {
            let path = format!("{}.{}", section.name, key.name);
            let mut add =
                |path: String, documentation: Option<&'static str>, value: String, text: Option<&str>| {
                    found.push(Setting {
                        section: section.name.clone(),
                        argument: argument(&path, &value, text),
                        path,
                        documentation: documentation.unwrap_or(key.documentation),
                        value,
                    });
                };
            match key.value.as_table() {
                Some(table) => {
                    for (name, value) in table {
                        add(
                            format!("{path}.{name}"),
                            rule(name),
                            value.to_string(),
                            value.as_str(),
                        );
                    }
                }
                None => add(path, None, key.value.to_string(), key.value.as_str()),
            }
        }
    }
    found
}

/// An argument that sets `value`, which is a text if there is `text`.
fn argument(path: &str, value: &str, text: Option<&str>) -> String {
    let is_plain = |text: &&str| {
        text.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "_-./:+".contains(letter))
    };
    match text.into_iter().chain([value]).find(is_plain) {
        Some(plain) => format!("--set {path}={plain}"),
        None => format!("--set '{path}={}'", value.replace('\'', r"'\''")),
    }
}

/// Values of a new run of a game, by path.
///
/// # Errors
/// [`ConfigError`] if this build does not know the game.
pub fn usual(game: &str) -> Result<BTreeMap<String, String>, ConfigError> {
    let new = launcher::new_run(Some(game), &[])?;
    let values = settings(&new)
        .into_iter()
        .map(|setting| (setting.path, setting.value));
    Ok(values.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell and `minuet up` make the same value of an argument.
    #[test]
    fn an_argument_sets_the_same_value() {
        let mut run = RunConfig::default();
        run.game.rules.insert("dead_end".into(), "forbid".into());
        run.learner.learning_rate = 3.3e-4;
        run.inference.sources = vec!["chess=../che ss".into(), "it's".into()];
        run.actor.name = "it's \"one\"; $HOME".into();
        run.replay.archive = "s3://games/old".into();
        for setting in settings(&run) {
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("printf '%s\\n' {}", setting.argument)])
                .output()
                .unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            let value = said.strip_prefix("--set\n").unwrap().trim_end_matches('\n');
            let new = config::parse_with(
                if setting.path.starts_with("game.rules") {
                    "[game.rules]\ndead_end = \"loss\"\n"
                } else {
                    ""
                },
                &[value.parse().unwrap()],
            );
            // Some values depend on others, and are refused alone.
            let Ok(new) = new else { continue };
            let found = settings(&new).into_iter().find(|new| new.path == setting.path);
            assert_eq!(found.unwrap().value, setting.value, "{value}");
        }
    }

    #[test]
    fn usual_values_are_those_of_the_game() {
        let paco = usual("paco-sako").unwrap();
        let four = usual("connect-four").unwrap();
        assert_eq!(paco["game.rules.dead_end"], "\"loss\"");
        assert_eq!(four["game.name"], "\"connect-four\"");
        assert!(usual("chest").is_err());
    }
}
