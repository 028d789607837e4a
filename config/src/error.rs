//! [`ConfigError`]: reasons for which a configuration cannot be used.

use std::{fmt::Display, io, path::PathBuf};

use crate::VERSION;

/// Error: a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read {path}: {reason}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        reason: io::Error,
    },
    /// The text is not TOML, or a value has the wrong type.
    #[error("{0}")]
    Syntax(String),
    /// A key that does not exist.
    #[error("unknown key `{key}`{}", nearest.as_ref().map(|key| format!("; did you mean `{key}`?")).unwrap_or_default())]
    UnknownKey {
        /// Full path of the key.
        key: String,
        /// The valid key that is spelt most like it, if any is.
        nearest: Option<String>,
    },
    /// A newer build wrote the file.
    #[error(
        "`run.version` is {found}, this build reads versions up to {VERSION}: use a newer build{}",
        going_back(.keys)
    )]
    Newer {
        /// Version of the file.
        found: i64,
        /// Full paths of the keys that this build does not know.
        keys: Vec<String>,
    },
    /// A value given by `--set` cannot be used.
    #[error("--set {text}: {reason}")]
    Override {
        /// The argument, `section.key=value`.
        text: String,
        /// Reason why it cannot be used.
        reason: String,
    },
    /// `[game]` does not fit the game.
    #[error("{0}")]
    Game(String),
    /// A value of `[search]` is out of its range.
    #[error("`search.{}` {}", .0.setting, .0.must)]
    Search(search::SettingsError),
    /// A value is out of its range.
    #[error("`{key}` {reason}")]
    Value {
        /// Full path of the key.
        key: &'static str,
        /// Requirement that the value breaks.
        reason: String,
    },
}

/// Returns the end of a message: how a file of a later version is made one of this version.
fn going_back(keys: &[String]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    let remove = match keys.is_empty() {
        true => String::new(),
        false => format!("remove {} and ", keys.join(", ")),
    };
    format!("; to go back to this build, {remove}set `run.version = {VERSION}`")
}

impl From<search::SettingsError> for ConfigError {
    fn from(error: search::SettingsError) -> Self {
        Self::Search(error)
    }
}

/// Converts an error of the TOML parser.
pub(super) fn syntax(error: impl Display) -> ConfigError {
    ConfigError::Syntax(error.to_string())
}
