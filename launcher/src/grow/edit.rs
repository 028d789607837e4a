//! Changing single values of a `run.toml` and nothing else in it: comments, order and everything a person wrote stay.

use config::{self, ConfigError, Override, RunConfig};

/// A file that cannot be changed by a line at a time.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file, or what is to be changed in it.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A way of writing that this does not understand.
    #[error("cannot change {0} in it by itself; write it into the file and run the command again")]
    Form(String),
}

/// The text with `changes` in it; what it says then is what the file with these overrides says.
///
/// # Errors
/// [`EditError`].
pub fn changed(text: &str, changes: &[Override]) -> Result<String, EditError> {
    let wanted = config::parse_with(text, changes)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for change in changes {
        let key = change.key();
        let value = value_of(&wanted, &key).ok_or_else(|| EditError::Form(key.clone()))?;
        let (section, name) = key.rsplit_once('.').unwrap_or(("", &key));
        set(&mut lines, section, name, &value.to_string());
    }
    let mut edited = lines.join("\n");
    edited.push('\n');
    if config::parse(&edited).is_ok_and(|found| found == wanted) {
        Ok(edited)
    } else {
        let keys: Vec<String> = changes.iter().map(Override::key).collect();
        Err(EditError::Form(keys.join(", ")))
    }
}

/// The value at a key's whole path.
fn value_of(config: &RunConfig, key: &str) -> Option<toml::Value> {
    let mut value = toml::Value::try_from(config).ok()?;
    for part in key.split('.') {
        value = value.get(part)?.clone();
    }
    Some(value)
}

/// Writes `name = value` into a section: over the line that is there, else below the section's head, else into a new section.
fn set(lines: &mut Vec<String>, section: &str, name: &str, value: &str) {
    let line = format!("{name} = {value}");
    let head = lines.iter().position(|line| head_of(line) == Some(section));
    let Some(head) = head else {
        lines.extend([String::new(), format!("[{section}]"), line]);
        return;
    };
    let end = (head + 1..lines.len())
        .find(|&at| lines[at].trim_start().starts_with('['))
        .unwrap_or(lines.len());
    let is_it = |line: &String| {
        let key = line.split_once('=').map(|(key, _)| key.trim().trim_matches('"'));
        key == Some(name)
    };
    match (head + 1..end).find(|&at| is_it(&lines[at])) {
        Some(at) => lines[at] = line,
        None => lines.insert(head + 1, line),
    }
}

/// The section that a line begins.
fn head_of(line: &str) -> Option<&str> {
    let (name, _) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    Some(name.trim())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn overrides(texts: &[&str]) -> Vec<Override> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn only_the_lines_of_the_keys_change() {
        let text = "# mine\n[search]\nvisits = 7 # few\n\n[ model ]\nblocks=2 # small\n# and wide\nfilters = 32\n\n[learner]\nbatch_size = 64\n";
        let edited = changed(text, &overrides(&["model.blocks=6", "learner.optimizer=sgd"])).unwrap();
        let expected = text
            .replace("blocks=2 # small", "blocks = 6")
            .replace("[learner]\n", "[learner]\noptimizer = \"sgd\"\n");
        assert_eq!(edited, expected);
        // Again, nothing changes.
        assert_eq!(changed(&edited, &overrides(&["model.blocks=6"])).unwrap(), edited);
        let edited = changed("", &overrides(&["model.filters=96"])).unwrap();
        assert_eq!(edited, "\n[model]\nfilters = 96\n");
    }

    #[test]
    fn what_cannot_be_changed_so_is_refused_and_not_spoilt() {
        let refused =
            |text: &str, change: &str| changed(text, &overrides(&[change])).unwrap_err().to_string();
        assert!(refused("model = { blocks = 2 }\n", "model.blocks=3").contains("cannot change model.blocks"));
        assert!(refused("", "model.blocks=0").contains("`model.blocks` must be"));
        assert!(refused("", "model.block=3").contains("did you mean `model.blocks`"));
    }

    proptest! {
        #[test]
        fn a_whole_template_says_afterwards_what_was_asked_for(
            blocks in 1u32..20,
            filters in 1u32..200,
            rate in 1e-5f64..1e-2,
            seed in any::<u32>(),
        ) {
            let mut config = RunConfig::default();
            config.run.seed = seed.into();
            let text = config::template(&config);
            let changes = overrides(&[
                &format!("model.blocks={blocks}"),
                &format!("model.filters={filters}"),
                &format!("learner.learning_rate={rate}"),
                "learner.cooldown=cosine",
            ]);
            let edited = changed(&text, &changes).unwrap();
            prop_assert_eq!(config::parse(&edited).unwrap(), config::parse_with(&text, &changes).unwrap());
            // No line came or went, and no comment changed.
            prop_assert_eq!(edited.lines().count(), text.lines().count());
            let comments = |text: &str| text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(comments(&edited), comments(&text));
        }
    }
}
