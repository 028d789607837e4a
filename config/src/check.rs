//! Checks of single values.

use super::ConfigError;

/// Checks one requirement of a value.
///
/// # Errors
/// [`ConfigError::Value`] if it does not hold.
pub(super) fn require(holds: bool, key: &'static str, reason: &'static str) -> Result<(), ConfigError> {
    if holds {
        Ok(())
    } else {
        Err(ConfigError::Value { key, reason })
    }
}

/// Checks that each value is at least 1.
///
/// # Errors
/// [`ConfigError::Value`] with the first key whose value is 0.
pub(super) fn require_positive(values: &[(&'static str, u64)]) -> Result<(), ConfigError> {
    values
        .iter()
        .try_for_each(|&(key, value)| require(value >= 1, key, "must be at least 1"))
}

/// Returns `chosen`, or `otherwise` if `chosen` is empty.
pub(super) fn first_given<'a>(chosen: &'a str, otherwise: &'a str) -> &'a str {
    if chosen.is_empty() { otherwise } else { chosen }
}
