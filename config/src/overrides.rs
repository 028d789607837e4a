//! Single values set on the command line: `--set section.key=value`.

use std::{fmt, fmt::Display, str::FromStr};

use super::{ConfigError, RunConfig, error::syntax, load::with_overrides};

/// One value for one key, as `section.key=value`. The value is TOML (`4`, `true`, `"text"`, `[1, 2]`);
/// quotes around a text are optional, and so are the brackets of a list of texts (`one,two`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    path: Vec<String>,
    value: String,
}

impl Override {
    /// Makes an override of `key`, the full path (`section.key`), with `value`, the text behind the `=`.
    ///
    /// # Errors
    /// [`ConfigError::Override`] if the path is not made of names and single dots.
    pub fn new(key: &str, value: impl Display) -> Result<Self, ConfigError> {
        format!("{key}={value}").parse()
    }

    /// Makes an override of `key` with a text, which is quoted.
    ///
    /// # Errors
    /// As [`Override::new`].
    pub fn text(key: &str, text: &str) -> Result<Self, ConfigError> {
        Self::new(key, toml::Value::from(text))
    }

    /// Returns the full path of the key.
    pub fn key(&self) -> String {
        self.path.join(".")
    }

    /// Puts the value into `table`. The key's default in `valid` determines the type of the value.
    pub(super) fn apply(&self, table: &mut toml::Table, valid: &toml::Table) -> Result<(), ConfigError> {
        let Some((name, sections)) = self.path.split_last() else {
            return Ok(());
        };
        let mut place = table;
        let mut default = Some(valid);
        for section in sections {
            default = default
                .and_then(|table| table.get(section))
                .and_then(toml::Value::as_table);
            place = place
                .entry(section)
                .or_insert_with(|| toml::Value::Table(toml::Table::new()))
                .as_table_mut()
                .ok_or_else(|| self.refused(&format!("`{section}` is not a section")))?;
        }
        let usual = default.and_then(|table| table.get(name));
        let text_expected = match default {
            // A table with free keys has no types: a value that is not TOML is text.
            Some(table) if table.is_empty() => self.parsed().is_none(),
            Some(_) => usual.is_some_and(toml::Value::is_str),
            None => self.parsed().is_none(),
        };
        let value = match self.parsed() {
            Some(value) if !text_expected || value.is_str() => value,
            None if usual.is_some_and(toml::Value::is_array) => {
                self.value.split(',').map(str::trim).collect::<Vec<_>>().into()
            }
            None if !text_expected => return Err(self.refused(&"the value is not TOML")),
            _ => toml::Value::String(self.value.clone()),
        };
        place.insert(name.clone(), value);
        Ok(())
    }

    fn parsed(&self) -> Option<toml::Value> {
        let mut table: toml::Table = toml::from_str(&format!("value = {}", self.value)).ok()?;
        // More than one key: the value contained a line break and another key.
        (table.len() == 1).then(|| table.remove("value"))?
    }

    pub(super) fn refused(&self, reason: &dyn Display) -> ConfigError {
        ConfigError::Override {
            text: self.to_string(),
            reason: reason.to_string().trim_end().replace('\n', "; "),
        }
    }
}

impl FromStr for Override {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let refused = |reason: &str| ConfigError::Override {
            text: text.into(),
            reason: reason.into(),
        };
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| refused("write section.key=value"))?;
        let path: Vec<String> = key.trim().split('.').map(str::to_owned).collect();
        let is_name = |name: &String| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
        };
        if path.len() < 2 || !path.iter().all(is_name) {
            return Err(refused("write section.key=value"));
        }
        Ok(Self {
            path,
            value: value.trim().to_owned(),
        })
    }
}

impl Display for Override {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.key(), self.value)
    }
}

/// Returns search settings with single values replaced. The keys of `values` are `search.KEY`.
///
/// # Errors
/// [`ConfigError`] for a value that `KEY` cannot have.
pub fn override_search(
    settings: &search::Settings,
    values: &[Override],
) -> Result<search::Settings, ConfigError> {
    let run = RunConfig {
        search: settings.clone(),
        ..RunConfig::default()
    };
    let table = toml::Table::try_from(&run).map_err(syntax)?;
    let run = with_overrides(run, table.clone(), &table, values)?;
    run.search.check()?;
    Ok(search::Settings {
        tree_bytes: settings.tree_bytes,
        ..run.search
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Provider, parse_with};
    use super::*;

    fn with(text: &str, overrides: &[&str]) -> Result<RunConfig, ConfigError> {
        let overrides: Vec<Override> = overrides
            .iter()
            .map(|text| text.parse())
            .collect::<Result<_, _>>()?;
        parse_with(text, &overrides)
    }

    fn refusal(text: &str) -> String {
        with("", &[text]).unwrap_err().to_string()
    }

    #[test]
    fn values_take_the_type_of_their_key() {
        let config = with(
            "[actor]\nthreads = 3\n",
            &[
                "actor.threads=5",
                "actor.name=17",
                "replay.address=127.0.0.1:9",
                "inference.address=\"[::1]:8\"",
                "inference.provider=cpu",
                "inference.sources=[\"chess=a\", \"othello=b\"]",
                "game.options=perspective, must-lift",
                "search.random_symmetry=false",
                "learner.learning_rate=2",
                "game.rules.dead_end=forbid",
                "game.rules.limit=3",
            ],
        )
        .unwrap();
        assert_eq!(config.actor.threads, 5);
        assert_eq!(config.actor.name, "17");
        assert_eq!(config.replay.address, "127.0.0.1:9");
        assert_eq!(config.inference.address, "[::1]:8");
        assert_eq!(config.inference.provider, Provider::Cpu);
        assert_eq!(config.inference.sources, ["chess=a", "othello=b"]);
        assert_eq!(config.game.options, 3);
        assert!(!config.search.random_symmetry);
        assert_eq!(config.learner.learning_rate, 2.0);
        assert_eq!(config.game.rules["dead_end"].as_str(), Some("forbid"));
        assert_eq!(config.game.rules["limit"].as_integer(), Some(3));
    }

    #[test]
    fn the_last_override_of_a_key_wins_and_other_keys_keep_the_files_value() {
        let config = with(
            "[search]\nvisits = 7\nleaves = 2\n",
            &["search.visits=8", "search.visits=9"],
        )
        .unwrap();
        assert_eq!((config.search.visits, config.search.leaves), (9, 2));
    }

    #[test]
    fn an_error_names_the_override_that_cannot_be_used() {
        assert_eq!(
            refusal("search.visit=3"),
            "unknown key `search.visit`; did you mean `search.visits`?"
        );
        assert_eq!(
            refusal("serch.visits=3"),
            "unknown key `serch`; did you mean `search`?"
        );
        assert_eq!(
            refusal("search.visits=many"),
            "--set search.visits=many: the value is not TOML"
        );
        assert!(refusal("search.visits=\"many\"").starts_with("--set search.visits=\"many\": invalid type"));
        assert!(refusal("inference.provider=gpu").contains("unknown variant `gpu`"));
        assert_eq!(refusal("search.visits=0"), "`search.visits` must be at least 1");
        assert_eq!(
            refusal("search.visits.deep=0"),
            "--set search.visits.deep=0: invalid type: map, expected u32; in `search.visits`"
        );
        for malformed in ["visits=3", "search.visits", "search..visits=3", "=3", "a b.c=3"] {
            assert!(
                refusal(malformed).ends_with("write section.key=value"),
                "{malformed}"
            );
        }
        assert!(with("", &["search.visits=3\nleaves=4"]).is_err());
    }

    #[test]
    fn fuzz_overrides() {
        let seeds: [&[u8]; 2] = [b"search.visits=100", b"game.name=\"chess\""];
        test_support::fuzz("override", &seeds, |bytes| {
            std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<Override>().is_ok())
        });
    }
}
