//! Reading `run.toml`: unknown keys are errors that name the key and the nearest valid one.

use std::{fs, path::Path};

use serde::Deserialize;

use super::{ConfigError, Override, RunConfig, SecurityConfig, error::syntax};

/// Version of the keys that this build writes. A release that adds or removes a key takes a new number.
pub const VERSION: u32 = 1;

/// Tables with unknown keys: each game checks its own rules.
const FREE_TABLES: [&str; 1] = ["game.rules"];

/// Reads and checks a configuration; relative paths in it become relative to the file's folder.
///
/// # Errors
/// [`ConfigError`], naming the key.
pub fn load(path: &Path) -> Result<RunConfig, ConfigError> {
    load_with(Some(path), &[])
}

/// Reads and checks a configuration like [`load`], with `overrides` in place of the file's values. Without a file every key
/// has its default, and paths are relative to the working folder. If a game from outside is played, this process is given its
/// description ([`games::outside::describe`]).
///
/// # Errors
/// [`ConfigError`], naming the key.
pub fn load_with(path: Option<&Path>, overrides: &[Override]) -> Result<RunConfig, ConfigError> {
    let (text, folder) = match path {
        Some(path) => {
            let refused = |error| ConfigError::Invalid(format!("cannot read {}: {error}", path.display()));
            let text = fs::read_to_string(path).map_err(refused)?;
            (text, path.parent().unwrap_or(Path::new("")))
        }
        None => (String::new(), Path::new("")),
    };
    let mut config = parse_with(&text, overrides)?;
    config.resolve_paths(folder);
    config.game.describe()?;
    Ok(config)
}

/// Reads `[security]` of the run that the environment variable `MINUET_CONFIG` names, for tools that get an address alone;
/// `None` if the variable is not set or empty.
///
/// # Errors
/// [`ConfigError`], naming the key.
pub fn security_from_environment() -> Result<Option<SecurityConfig>, ConfigError> {
    match std::env::var_os("MINUET_CONFIG") {
        Some(path) if !path.is_empty() => Ok(Some(load(Path::new(&path))?.security)),
        _ => Ok(None),
    }
}

/// Parses and checks a configuration.
///
/// # Errors
/// [`ConfigError`], naming the key.
pub fn parse(text: &str) -> Result<RunConfig, ConfigError> {
    parse_with(text, &[])
}

/// Parses a configuration, applies `overrides`, and checks the result.
///
/// # Errors
/// [`ConfigError`], naming the key.
pub fn parse_with(text: &str, overrides: &[Override]) -> Result<RunConfig, ConfigError> {
    let table: toml::Table = toml::from_str(text).map_err(syntax)?;
    let valid = toml::Table::try_from(RunConfig::default()).map_err(syntax)?;
    check_keys(&table, &valid)?;
    // If the configuration is read from the text, a type error names its line.
    let config: RunConfig = toml::from_str(text).map_err(syntax)?;
    let mut config = with_overrides(config, table, &valid, overrides)?;
    config.check()?;
    // The keys are those of this version now.
    config.run.version = VERSION;
    Ok(config)
}

/// Returns `config`, whose keys are in `table`, with single values replaced. `valid` has all keys with their defaults.
pub(super) fn with_overrides(
    mut config: RunConfig,
    mut table: toml::Table,
    valid: &toml::Table,
    overrides: &[Override],
) -> Result<RunConfig, ConfigError> {
    for single in overrides {
        single.apply(&mut table, valid)?;
        check_keys(&table, valid)?;
        config = RunConfig::deserialize(table.clone()).map_err(|error| single.refused(&error))?;
    }
    Ok(config)
}

/// Checks that every key of `table` exists in `valid`, the defaults. Refuses a file of a later version, and names all its unknown
/// keys.
fn check_keys(table: &toml::Table, valid: &toml::Table) -> Result<(), ConfigError> {
    let mut unknown = Vec::new();
    unknown_keys(table, valid, "", &mut unknown);
    let version = table.get("run").and_then(|run| run.get("version"));
    let later = version
        .and_then(toml::Value::as_integer)
        .filter(|&version| version > i64::from(VERSION));
    let reason = match (later, unknown.first()) {
        (Some(found), _) => {
            let keys: Vec<String> = unknown.iter().map(|key| format!("`{key}`")).collect();
            let remove = match keys.is_empty() {
                true => String::new(),
                false => format!("remove {} and ", keys.join(", ")),
            };
            format!(
                "`run.version` is {found}, this build reads versions up to {VERSION}: use a newer build; \
                 to go back to this build, {remove}set `run.version = {VERSION}`"
            )
        }
        (None, Some(key)) => match nearest_key(key, valid) {
            Some(nearest) => format!("unknown key `{key}`; did you mean `{nearest}`?"),
            None => format!("unknown key `{key}`"),
        },
        (None, None) => return Ok(()),
    };
    Err(ConfigError::Invalid(reason))
}

/// Adds the full paths of the keys that `valid` does not have. `path` is the path of the table.
fn unknown_keys(table: &toml::Table, valid: &toml::Table, path: &str, keys: &mut Vec<String>) {
    for (key, value) in table {
        let whole = below(path, key);
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

/// Returns the full path of a key in the table at `path`.
fn below(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
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
    (likeness > 0.7).then(|| below(path, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default_run() {
        assert_eq!(parse("").unwrap(), RunConfig::default());
    }

    #[test]
    fn an_unknown_key_error_names_the_nearest_key() {
        let message = parse("[search]\nvisit = 3").unwrap_err().to_string();
        assert_eq!(
            message,
            "unknown key `search.visit`; did you mean `search.visits`?"
        );
        let message = parse("[serch]").unwrap_err().to_string();
        assert_eq!(message, "unknown key `serch`; did you mean `search`?");
        let message = parse("[search]\nxyzzy = 3").unwrap_err().to_string();
        assert_eq!(message, "unknown key `search.xyzzy`");
    }

    #[test]
    fn values_out_of_range_and_of_wrong_type_are_errors() {
        assert_eq!(
            parse("[search]\nvisits = 0").unwrap_err().to_string(),
            "`search.visits` must be at least 1"
        );
        assert_eq!(
            parse("[replay]\naddress = \"\"").unwrap_err().to_string(),
            "`replay.address` must not be empty"
        );
        assert!(
            parse("[search]\nvisits = \"many\"")
                .unwrap_err()
                .to_string()
                .contains("visits = \"many\"")
        );
        assert!(parse("[search").is_err());
    }

    #[test]
    fn a_gumbel_root_needs_policy_targets_from_values() {
        let text = "[search]\nroot = \"gumbel\"\n";
        assert_eq!(
            parse(text).unwrap_err().to_string(),
            "`learner.policy_target` must be \"completed-q\" with search.root = \"gumbel\", whose visits say little \
             about the worth of an action"
        );
        let run = parse(&format!("{text}[learner]\npolicy_target = \"completed-q\"\n")).unwrap();
        assert_eq!(run.search.root, search::Root::Gumbel);
    }

    #[test]
    fn a_file_of_a_later_version_is_refused_with_its_unknown_keys() {
        let later = "[run]\nversion = 2\n[search]\nvisits = 7\nwidth = 3\n[league]\nsize = 4\n";
        let message = parse(later).unwrap_err().to_string();
        assert_eq!(
            message,
            "`run.version` is 2, this build reads versions up to 1: use a newer build; \
             to go back to this build, remove `search.width`, `league` and set `run.version = 1`"
        );
        let message = parse("[run]\nversion = 2\n").unwrap_err().to_string();
        assert!(
            message.ends_with("to go back to this build, set `run.version = 1`"),
            "{message}"
        );
        // The advice helps.
        let run = parse("[run]\nversion = 1\n[search]\nvisits = 7\n").unwrap();
        assert_eq!((run.run.version, run.search.visits), (VERSION, 7));
    }

    /// `cargo test -p config --lib write_a_golden_file -- --ignored` writes the file of this release.
    mod golden {
        use test_support::{all_golden, new_golden};

        use super::*;
        use crate::template;

        const CRATE: &str = env!("CARGO_MANIFEST_DIR");

        /// The configuration of the golden files: some values of every kind differ from the defaults.
        fn configuration() -> RunConfig {
            let mut run = RunConfig::default();
            run.run.seed = 77;
            run.game.name = "connect-four".into();
            run.game.options = 0;
            run.game.rules.insert("dead_end".into(), "forbid".into());
            run.search.visits = 123;
            run.learner.learning_rate = 0.002;
            // Defaults of the first releases.
            run.learner.min_positions = 4_000;
            (run.inference.threads, run.inference.max_batch) = (1, 128);
            (run.actor.games_per_thread, run.actor.requests_in_flight) = (64, 3);
            run.replay.window_positions = 600_000;
            run.replay.archive = "s3://games".into();
            run.rating.enabled = true;
            (run.rating.visits, run.rating.provider) = (64, crate::Provider::Auto);
            run
        }

        #[test]
        #[ignore = "writes the golden file of this release; run it when keys change"]
        fn write_a_golden_file() {
            let file = new_golden(CRATE, "run.toml");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, template(&configuration())).unwrap();
        }

        #[test]
        fn every_golden_file_is_read() {
            for golden in all_golden(CRATE, "run.toml") {
                let text = fs::read_to_string(&golden).unwrap();
                assert_eq!(parse(&text).unwrap(), configuration(), "{}", golden.display());
            }
        }
    }

    #[test]
    fn a_store_listens_at_its_address_unless_another_is_given() {
        let mut replay = parse("[replay]\naddress = \"host:1\"").unwrap().replay;
        assert_eq!(replay.listen_address(), "host:1");
        replay.listen = "0.0.0.0:1".into();
        assert_eq!(replay.listen_address(), "0.0.0.0:1");
    }

    #[test]
    fn fuzz_run_toml() {
        let whole = crate::template(&RunConfig::default());
        let bare: Vec<&str> = whole.lines().filter(|line| !line.starts_with('#')).collect();
        let bare = bare.join("\n");
        let small = b"[search]\nvisits = 100\n[game]\nname = \"chess\"\n[learner]\nbatch_size = 64\n";
        test_support::fuzz("run.toml", &[small, bare.as_bytes()], |bytes| {
            std::str::from_utf8(bytes).is_ok_and(|text| parse(text).is_ok())
        });
    }
}
