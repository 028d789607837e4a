//! Reading `run.toml`: unknown keys are errors that name the key and the nearest valid one.

use std::{fs, path::Path};

use serde::Deserialize;

use super::{
    ConfigError, Override, RunConfig, SecurityConfig, VERSION,
    error::syntax,
    keys::{refuse_later_version, refuse_unknown_keys},
};

/// Reads and checks a configuration; relative paths in it become relative to the file's folder.
///
/// # Errors
/// [`ConfigError`], naming the key.
pub fn load(path: &Path) -> Result<RunConfig, ConfigError> {
    load_with(Some(path), &[])
}

/// Reads and checks a configuration like [`load`], with `overrides` in place of the file's values. Without a file every key
/// has its default, and paths are relative to the working folder.
///
/// # Errors
/// [`ConfigError`], naming the key.
pub fn load_with(path: Option<&Path>, overrides: &[Override]) -> Result<RunConfig, ConfigError> {
    let (text, folder) = match path {
        Some(path) => (read(path)?, path.parent().unwrap_or(Path::new(""))),
        None => (String::new(), Path::new("")),
    };
    let mut config = parse_with(&text, overrides)?;
    config.resolve_paths(folder);
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

fn read(path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|reason| ConfigError::Read {
        path: path.into(),
        reason,
    })
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
    let mut table: toml::Table = toml::from_str(text).map_err(syntax)?;
    let valid = toml::Table::try_from(RunConfig::default()).map_err(syntax)?;
    refuse_later_version(&table, &valid)?;
    refuse_unknown_keys(&table, &valid)?;
    // If the configuration is read from the text, a type error names its line.
    let mut config: RunConfig = toml::from_str(text).map_err(syntax)?;
    for single in overrides {
        single.apply(&mut table, &valid)?;
        refuse_unknown_keys(&table, &valid)?;
        config = RunConfig::deserialize(table.clone()).map_err(|error| single.refused(&error))?;
    }
    config.check()?;
    // The keys are those of this version now.
    config.run.version = VERSION;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default_run() {
        assert_eq!(parse("").unwrap(), RunConfig::default());
    }

    #[test]
    fn the_default_run_parses_back_from_its_text() {
        let text = toml::to_string(&RunConfig::default()).unwrap();
        assert_eq!(parse(&text).unwrap(), RunConfig::default());
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
    fn a_store_needs_an_address() {
        let error = parse("[replay]\naddress = \"\"").unwrap_err().to_string();
        assert_eq!(error, "`replay.address` must not be empty");
    }

    #[test]
    fn a_game_rules_table_takes_any_key() {
        let config = parse("[game.rules]\ndead_end = \"forbid\"").unwrap();
        assert_eq!(config.game.rules["dead_end"].as_str(), Some("forbid"));
    }
}
