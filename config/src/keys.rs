//! Unknown keys: errors that name the key and the nearest valid one, or the later version that has the key.

use super::ConfigError;

/// Version of the keys that this build writes. A release that adds or removes a key takes a new number.
pub const VERSION: u32 = 1;

/// Tables with unknown keys: each game checks its own rules.
const FREE_TABLES: [&str; 1] = ["game.rules"];

/// Refuses a file of a later version, and names all its keys that do not exist in `valid`, the defaults.
///
/// # Errors
/// [`ConfigError::Newer`].
pub(super) fn refuse_later_version(table: &toml::Table, valid: &toml::Table) -> Result<(), ConfigError> {
    let version = table.get("run").and_then(|run| run.get("version"));
    match version.and_then(toml::Value::as_integer) {
        Some(found) if found > i64::from(VERSION) => {
            let mut keys = Vec::new();
            unknown_keys(table, valid, "", &mut keys);
            Err(ConfigError::Newer { found, keys })
        }
        _ => Ok(()),
    }
}

/// Checks that every key of `table` exists in `valid`, the defaults.
///
/// # Errors
/// [`ConfigError::UnknownKey`] with the first unknown key.
pub(super) fn refuse_unknown_keys(table: &toml::Table, valid: &toml::Table) -> Result<(), ConfigError> {
    let mut keys = Vec::new();
    unknown_keys(table, valid, "", &mut keys);
    match keys.into_iter().next() {
        Some(key) => Err(ConfigError::UnknownKey {
            nearest: nearest_key(&key, valid),
            key,
        }),
        None => Ok(()),
    }
}

/// Adds the full paths of the keys that `valid` does not have. `path` is the path of the table.
fn unknown_keys(table: &toml::Table, valid: &toml::Table, path: &str, keys: &mut Vec<String>) {
    for (key, value) in table {
        let whole = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        match (valid.get(key), value) {
            (None, _) => keys.push(whole),
            (Some(toml::Value::Table(inner_valid)), toml::Value::Table(inner))
                if !FREE_TABLES.contains(&whole.as_str()) =>
            {
                unknown_keys(inner, inner_valid, &whole, keys);
            }
            _ => {}
        }
    }
}

/// Returns the valid key of the same section that is spelt most like the key with the full path `whole`.
fn nearest_key(whole: &str, valid: &toml::Table) -> Option<String> {
    let (path, key) = whole.rsplit_once('.').unwrap_or(("", whole));
    let mut sections = path.split('.').filter(|section| !section.is_empty());
    let valid = sections.try_fold(valid, |table, section| table.get(section)?.as_table())?;
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
