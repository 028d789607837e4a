//! [`ConfigError`]: reasons for which a configuration cannot be used, and the checks of single values.

use std::{fmt::Display, ops::RangeInclusive};

/// Error: a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read, has an unknown key, or a value that cannot be used. The text says which one and why.
    #[error("{0}")]
    Invalid(String),
    /// The text is not TOML, or a value has another type than its key. The first line says where, the others show the text.
    #[error("{0}")]
    Syntax(String),
    /// A value given by `--set` cannot be used.
    #[error("--set {text}: {reason}")]
    Override {
        /// The argument, `section.key=value`.
        text: String,
        /// Reason why it cannot be used.
        reason: String,
    },
    /// A value of `[search]` is out of its range.
    #[error("`search.{}` {}", .0.setting, .0.must)]
    Search(search::SettingsError),
}

impl ConfigError {
    /// Makes the error of a value that cannot be used. `key` is the full path of its key.
    pub fn of_value(key: &str, reason: impl Display) -> Self {
        Self::Invalid(format!("`{key}` {reason}"))
    }

    /// Returns the message without the lines that show the text, which may be that of another kind of file.
    pub fn without_text(&self) -> String {
        let message = self.to_string();
        match self {
            Self::Syntax(_) => message.lines().next().unwrap_or_default().into(),
            _ => message,
        }
    }
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

/// Checks one requirement of a value.
pub(super) fn require(holds: bool, key: &str, reason: impl Display) -> Result<(), ConfigError> {
    match holds {
        true => Ok(()),
        false => Err(ConfigError::of_value(key, reason)),
    }
}

/// Checks that a value is in a range.
pub(super) fn within<T: PartialOrd + Display>(
    key: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), ConfigError> {
    let reason = format!("must be between {} and {}", range.start(), range.end());
    require(range.contains(&value), key, reason)
}

/// Checks that a value is not below `least`.
pub(super) fn at_least<T: PartialOrd + Display>(key: &str, value: T, least: T) -> Result<(), ConfigError> {
    require(value >= least, key, format!("must be at least {least}"))
}
