//! `[game]`: the game, its rules and its representation.

use std::{fmt::Display, fs, path::PathBuf};

use documented::DocumentedFields;
use games::{
    outside::{self, Description},
    registry,
};
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[game]`: the game, its rules and its representation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(try_from = "Written", into = "Written")]
pub struct GameConfig {
    /// Name of the game, e.g. "paco-sako".
    pub name: String,
    /// Options of the representation, by name. Paco Ŝako: "perspective" (the player to act is at the bottom), "must-lift" and
    /// "must-promote" (planes that hint at the kind of action); Connect Four: "cells" (planes of 6×7 squares); generator: "examples" of
    /// tasks; other games: none. A number is read as the sum of 1, 2 and 4 for the names in this order. Without the key, the usual options of the
    /// game.
    pub options: u32,
    /// File with the description of a game from outside, e.g. of a Python class: layout of rows, actions, symmetries. Relative to the
    /// run's folder; `python -m minuet up FILE.py` writes it. Empty: the game comes with Minuet.
    pub description: PathBuf,
    /// Rules of the game; each game defines its own keys.
    pub rules: toml::Table,
}

impl GameConfig {
    /// Returns what a person names the game by: its name, with the size of the board if the rules have one (`gomoku:15`).
    pub fn title(&self) -> String {
        match self.rules.get("size") {
            Some(size) => format!("{}:{size}", self.name),
            None => self.name.clone(),
        }
    }

    /// True if the game is from outside, so that a file describes it.
    pub fn is_from_outside(&self) -> bool {
        !self.description.as_os_str().is_empty()
    }

    /// Reads the description of a game from outside, if the game is one.
    ///
    /// # Errors
    /// [`ConfigError`] if there is no such file, or if it is not a description.
    pub fn read_description(&self) -> Result<Option<Description>, ConfigError> {
        if !self.is_from_outside() {
            return Ok(None);
        }
        let refused = |error: &dyn Display| {
            let file = self.description.display();
            ConfigError::Invalid(format!("`game.description`: cannot use {file}: {error}"))
        };
        let text = fs::read(&self.description).map_err(|error| refused(&error))?;
        let description: Description = serde_json::from_slice(&text).map_err(|error| refused(&error))?;
        if description.name != self.name {
            let reason = format!(
                "it describes {}, but `game.name` is {}",
                description.name, self.name
            );
            return Err(refused(&reason));
        }
        Ok(Some(description))
    }

    /// Gives this process the description of a game from outside, if the game is one.
    ///
    /// # Errors
    /// [`ConfigError`] if the description cannot be used, or if the process has another game from outside.
    pub(crate) fn describe(&self) -> Result<(), ConfigError> {
        let Some(description) = self.read_description()? else {
            return Ok(());
        };
        let refused = |error| ConfigError::Invalid(format!("{}: {error}", self.description.display()));
        outside::describe(description).map_err(refused)
    }
}

impl Default for GameConfig {
    fn default() -> Self {
        Self {
            name: "paco-sako".into(),
            options: 1,
            description: PathBuf::new(),
            rules: toml::Table::new(),
        }
    }
}

/// Form of [`GameConfig`] in a file.
#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename = "GameConfig")]
struct Written {
    name: String,
    options: Option<Options>,
    description: PathBuf,
    rules: toml::Table,
}

/// Options of a representation in a file.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a list of names, or a number")]
enum Options {
    Number(u32),
    Names(Vec<String>),
}

impl Default for Written {
    fn default() -> Self {
        let GameConfig {
            name,
            description,
            rules,
            ..
        } = GameConfig::default();
        Self {
            name,
            options: None,
            description,
            rules,
        }
    }
}

impl From<GameConfig> for Written {
    fn from(config: GameConfig) -> Self {
        let names = registry::find(&config.name)
            .ok()
            .and_then(|game| game.options_of(config.options));
        let options = match names {
            Some(names) => Options::Names(names.into_iter().map(Into::into).collect()),
            None => Options::Number(config.options),
        };
        Self {
            name: config.name,
            options: Some(options),
            description: config.description,
            rules: config.rules,
        }
    }
}

impl TryFrom<Written> for GameConfig {
    type Error = ConfigError;

    fn try_from(written: Written) -> Result<Self, ConfigError> {
        let game = registry::find(&written.name);
        let options = match (written.options, game) {
            (Some(Options::Number(number)), _) => number,
            (Some(Options::Names(names)), Ok(game)) => game
                .options_named(&names)
                .map_err(|error| ConfigError::Invalid(format!("`game.options`: {error}")))?,
            (Some(Options::Names(names)), Err(error)) if !names.is_empty() => {
                return Err(ConfigError::Invalid(format!("`game.name`: {error}")));
            }
            (None, Ok(game)) => game.options,
            // A game from outside has no options, and may not be known yet.
            (_, Err(_)) => 0,
        };
        Ok(Self {
            name: written.name,
            options,
            description: written.description,
            rules: written.rules,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{RunConfig, parse, template};

    fn options(game: &str, options: &str) -> Result<u32, String> {
        let text = format!("[game]\nname = \"{game}\"\noptions = {options}\n");
        let run = parse(&text).map_err(|error| error.to_string())?;
        assert_eq!(parse(&template(&run)).unwrap(), run);
        Ok(run.game.options)
    }

    #[test]
    fn options_are_names_or_their_number() {
        let names = ["perspective", "must-lift", "must-promote"];
        for number in 0..8 {
            let chosen: Vec<&str> = (0..3)
                .filter(|bit| number >> bit & 1 == 1)
                .map(|bit| names[bit])
                .collect();
            assert_eq!(options("paco-sako", &format!("{chosen:?}")), Ok(number));
            assert_eq!(options("paco-sako", &number.to_string()), Ok(number));
            let mut run = RunConfig::default();
            run.game.options = number;
            let written = toml::Value::from(chosen);
            assert!(template(&run).contains(&format!("\noptions = {written}\n")));
        }
        assert_eq!(options("generator", "[\"examples\"]"), Ok(1));
        assert_eq!(options("chess", "[]"), Ok(0));
        assert_eq!(options("of-somebody-else", "[]"), Ok(0));
        let usual = |game| {
            parse(&format!("[game]\nname = \"{game}\"\n"))
                .unwrap()
                .game
                .options
        };
        assert_eq!(
            ["paco-sako", "connect-four", "generator", "chess"].map(usual),
            [1, 1, 0, 0]
        );
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let refused = |game, names| options(game, names).unwrap_err();
        let message = refused("paco-sako", "[\"perspektive\"]");
        assert!(
            message.contains(
                "`game.options`: paco-sako has no option \"perspektive\"; there are \"perspective\", \"must-lift\", \"must-promote\""
            ),
            "{message}"
        );
        let message = refused("chess", "[\"perspective\"]");
        assert!(
            message.contains("chess has no option \"perspective\"; it has none"),
            "{message}"
        );
        assert!(refused("paco-saco", "[\"perspective\"]").contains("did you mean paco-sako?"));
        assert!(refused("paco-sako", "\"perspective\"").contains("a list of names, or a number"));
    }
}
