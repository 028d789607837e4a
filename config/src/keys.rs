//! Unknown keys: errors that name the key and the nearest valid one.

use super::ConfigError;

/// Tables with unknown keys: each game checks its own rules.
const FREE_TABLES: [&str; 1] = ["game.rules"];

/// Checks that every key of `table` exists in `valid`, the defaults. `path` is the path of the table.
///
/// # Errors
/// [`ConfigError::UnknownKey`] with the first unknown key.
pub(super) fn refuse_unknown_keys(
    table: &toml::Table,
    valid: &toml::Table,
    path: &str,
) -> Result<(), ConfigError> {
    for (key, value) in table {
        let whole = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        match (valid.get(key), value) {
            (None, _) => {
                return Err(ConfigError::UnknownKey {
                    nearest: nearest_key(key, valid, path),
                    key: whole,
                });
            }
            (Some(toml::Value::Table(inner_valid)), toml::Value::Table(inner))
                if !FREE_TABLES.contains(&whole.as_str()) =>
            {
                refuse_unknown_keys(inner, inner_valid, &whole)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn nearest_key(key: &str, valid: &toml::Table, path: &str) -> Option<String> {
    let (likeness, name) = valid
        .keys()
        .map(|name| (strsim::jaro_winkler(key, name), name))
        .max_by(|left, right| left.0.total_cmp(&right.0))?;
    (likeness > 0.7).then(|| {
        if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        }
    })
}
