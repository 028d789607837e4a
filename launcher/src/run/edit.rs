//! Changes single values of a `run.toml`; comments, order and all other text stay.

use config::{self, ConfigError, Override};
use toml_edit::{DocumentMut, Item, TomlError, Value, table};

/// Error: a value in a `run.toml` cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The new values make no valid configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The text is not TOML.
    #[error(transparent)]
    Toml(#[from] TomlError),
    /// The key's section is not a table.
    #[error("cannot set {0}: its section is not a table")]
    Section(String),
}

/// Returns the text with the values of `changes` in it. A missing key is added to its section, a missing section to the end.
///
/// # Errors
/// [`EditError`].
pub fn with_values(text: &str, changes: &[Override]) -> Result<String, EditError> {
    let wanted = config::parse_with(text, changes)?;
    let mut document: DocumentMut = text.parse()?;
    for change in changes {
        let key = change.key();
        let not_a_table = || EditError::Section(key.clone());
        let mut values = toml::Value::try_from(&wanted).map_err(|_| not_a_table())?;
        let mut item = document.as_item_mut();
        for part in key.split('.') {
            values = values.get(part).cloned().ok_or_else(not_a_table)?;
            let section = item.as_table_like_mut().ok_or_else(not_a_table)?;
            item = section.entry(part).or_insert_with(table);
        }
        // The comment behind the old value stays behind the new one.
        let decor = item.as_value().map(|old| old.decor().clone());
        let mut value: Value = values.to_string().parse()?;
        if let Some(decor) = decor {
            *value.decor_mut() = decor;
        }
        *item = Item::Value(value);
    }
    let edited = document.to_string();
    config::parse(&edited)?;
    Ok(edited)
}

#[cfg(test)]
mod tests {
    use config::RunConfig;
    use proptest::prelude::*;

    use super::*;

    fn overrides(texts: &[&str]) -> Vec<Override> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn only_the_values_of_the_keys_change() {
        let text = "# mine\n[search]\nvisits = 7 # few\n\n[ model ]\nblocks=2 # small\n# and wide\nfilters = 32\n\n[learner]\nbatch_size = 64\n";
        let changes = overrides(&["model.blocks=6", "learner.optimizer=sgd"]);
        let edited = with_values(text, &changes).unwrap();
        let expected = text
            .replace("blocks=2 # small", "blocks=6 # small")
            .replace("batch_size = 64\n", "batch_size = 64\noptimizer = \"sgd\"\n");
        assert_eq!(edited, expected);
        assert_eq!(with_values(&edited, &changes).unwrap(), edited);
        let added = with_values("", &overrides(&["model.filters=96"])).unwrap();
        assert_eq!(added, "[model]\nfilters = 96\n");
        let inline = with_values("model = { blocks = 2 }\n", &overrides(&["model.blocks=3"])).unwrap();
        assert_eq!(inline, "model = { blocks = 3 }\n");
    }

    #[test]
    fn invalid_values_are_refused() {
        let refused = |change: &str| with_values("", &overrides(&[change])).unwrap_err().to_string();
        assert!(refused("model.blocks=0").contains("`model.blocks` must be"));
        assert!(refused("model.block=3").contains("did you mean `model.blocks`"));
    }

    proptest! {
        #[test]
        fn a_changed_template_has_the_new_values_and_all_its_comments(
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
                "learner.optimizer=sgd",
            ]);
            let edited = with_values(&text, &changes).unwrap();
            prop_assert_eq!(config::parse(&edited).unwrap(), config::parse_with(&text, &changes).unwrap());
            let comments = |text: &str| text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(comments(&edited), comments(&text));
        }
    }
}
