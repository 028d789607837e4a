//! Keys of earlier versions that no longer exist. A `run.toml` that still has one is read, with a warning that names the
//! replacement.

/// A key that no longer exists.
struct RemovedKey {
    /// Section of the key.
    section: &'static str,
    /// Name of the key within its section.
    name: &'static str,
    /// Replacement of the key, as the end of the sentence "`key` no longer exists and is ignored: …".
    replacement: &'static str,
}

impl RemovedKey {
    fn warning(&self) -> String {
        let Self {
            section,
            name,
            replacement,
        } = self;
        format!("`{section}.{name}` no longer exists and is ignored: {replacement}")
    }
}

const fn removed(section: &'static str, name: &'static str, replacement: &'static str) -> RemovedKey {
    RemovedKey {
        section,
        name,
        replacement,
    }
}

const NO_COOLDOWN: &str = "the learning rate stays constant after the warm-up, and learner.average_decay smooths the published weights";

/// All removed keys.
const REMOVED: [RemovedKey; 16] = [
    removed(
        "inference",
        "batch_sizes",
        "the server chooses sizes up to inference.max_batch, of which at most a third is padding",
    ),
    removed(
        "inference",
        "drain_seconds",
        "requests in flight get 10 seconds when the process is asked to stop",
    ),
    removed(
        "inference",
        "preferred_batches",
        "a batch takes all positions that wait, up to inference.max_batch",
    ),
    removed("learner", "cooldown", NO_COOLDOWN),
    removed("learner", "cooldown_from", NO_COOLDOWN),
    removed("learner", "cooldown_steps", NO_COOLDOWN),
    removed("learner", "last_learning_rate", NO_COOLDOWN),
    removed("learner", "loaders", "two threads pack batches ahead of training"),
    removed(
        "learner",
        "momentum",
        "SGD's momentum and Adam's first decay rate have their usual value, 9/10",
    ),
    removed(
        "learner",
        "q_range",
        "search.q_range is used for the policy target too",
    ),
    removed(
        "learner",
        "q_scale",
        "search.q_scale is used for the policy target too",
    ),
    removed(
        "rating",
        "cache_mib",
        "each network has an evaluation cache of 32 MiB",
    ),
    removed("rating", "scale", "rating.elo0 and rating.elo1 are logistic Elo"),
    removed(
        "replay",
        "engine",
        "games are kept in a segment log; an older build can export those of a sled database",
    ),
    removed(
        "replay",
        "remembered_games",
        "the store remembers the ids of at least a million games",
    ),
    removed(
        "security",
        "max_streams",
        "a connection has at most 256 calls and streams open at the same time",
    ),
];

/// Takes the removed keys out of a configuration and returns a warning for each.
pub(crate) fn take_removed_keys(table: &mut toml::Table) -> Vec<String> {
    let mut warnings = Vec::new();
    for key in &REMOVED {
        let section = table.get_mut(key.section).and_then(toml::Value::as_table_mut);
        if section.and_then(|section| section.remove(key.name)).is_some() {
            warnings.push(key.warning());
        }
    }
    warnings
}

/// Returns a warning if `path`, a key with its section, is a removed key.
pub(crate) fn removed_key_warning(path: &str) -> Option<String> {
    let (section, name) = path.split_once('.')?;
    let key = REMOVED
        .iter()
        .find(|key| key.section == section && key.name == name)?;
    Some(key.warning())
}

#[cfg(test)]
mod tests {
    use super::{super::*, *};

    #[test]
    fn a_removed_key_is_ignored_with_a_warning_that_names_its_replacement() {
        let text =
            "[inference]\npreferred_batches = [64]\nmax_batch = 64\n\n[learner]\ncooldown = \"linear\"\n";
        let run = parse(text).unwrap();
        assert_eq!(run.inference.max_batch, 64);
        let mut table = toml::from_str(text).unwrap();
        assert_eq!(
            take_removed_keys(&mut table),
            [
                "`inference.preferred_batches` no longer exists and is ignored: \
                 a batch takes all positions that wait, up to inference.max_batch",
                "`learner.cooldown` no longer exists and is ignored: the learning rate stays constant after the warm-up, \
                 and learner.average_decay smooths the published weights",
            ]
        );
        assert!(take_removed_keys(&mut table).is_empty());
    }

    #[test]
    fn a_removed_key_can_be_set_on_the_command_line() {
        let removed: Override = "rating.scale=logistic".parse().unwrap();
        assert_eq!(parse_with("", &[removed]).unwrap(), RunConfig::default());
    }

    #[test]
    fn every_replacement_names_existing_keys_only() {
        let valid = toml::Table::try_from(RunConfig::default()).unwrap();
        for key in &REMOVED {
            assert!(
                valid[key.section].get(key.name).is_none(),
                "{}.{} exists",
                key.section,
                key.name
            );
            let words = key.replacement.split([' ', ',', ';']);
            for (section, name) in words.filter_map(|word| word.split_once('.')) {
                assert!(
                    valid[section].get(name).is_some(),
                    "{section}.{name} does not exist"
                );
            }
        }
    }

    #[test]
    fn a_run_with_removed_keys_is_still_checked() {
        let message = parse("[rating]\nscale = \"logistic\"\nvisit = 3\n")
            .unwrap_err()
            .to_string();
        assert_eq!(
            message,
            "unknown key `rating.visit`; did you mean `rating.visits`?"
        );
        assert!(parse("[rating]\nscale = \"logistic\"\nvisits = \"many\"\n").is_err());
    }
}
