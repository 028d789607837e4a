//! Checks of single values.

use std::{fmt::Display, ops::RangeInclusive};

use super::ConfigError;

/// Checks one requirement of a value.
///
/// # Errors
/// [`ConfigError::Value`] if it does not hold.
pub(super) fn require(holds: bool, key: &'static str, reason: impl Into<String>) -> Result<(), ConfigError> {
    match holds {
        true => Ok(()),
        false => Err(ConfigError::Value {
            key,
            reason: reason.into(),
        }),
    }
}

/// Checks that a value is in a range.
///
/// # Errors
/// [`ConfigError::Value`] if it is not, or is not a number.
pub(super) fn within<T: PartialOrd + Display>(
    key: &'static str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), ConfigError> {
    let reason = format!("must be between {} and {}", range.start(), range.end());
    require(range.contains(&value), key, reason)
}

/// Checks that a value is not below `least`.
///
/// # Errors
/// [`ConfigError::Value`] if it is, or is not a number.
pub(super) fn at_least<T: PartialOrd + Display>(
    key: &'static str,
    value: T,
    least: T,
) -> Result<(), ConfigError> {
    require(value >= least, key, format!("must be at least {least}"))
}

/// Returns `chosen`, or `otherwise` if `chosen` is empty.
pub(super) fn first_given<'a>(chosen: &'a str, otherwise: &'a str) -> &'a str {
    if chosen.is_empty() { otherwise } else { chosen }
}
