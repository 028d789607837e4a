//! A configuration as a list of keys, each with its value and its documentation: [`described`].
//!
//! The documentation of a key is the doc comment of its field, so a key without one does not compile.

use documented::DocumentedFields;

use super::{
    ActorConfig, AnalysisConfig, CheckpointConfig, GameConfig, InferenceConfig, LearnerConfig, ModelConfig,
    ProblemsConfig, RatingConfig, ReplayConfig, RunConfig, RunSection, SecurityConfig,
};

/// A section of `run.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Name, e.g. `search`.
    pub name: String,
    /// Documentation.
    pub documentation: &'static str,
    /// Keys, those with plain values first.
    pub keys: Vec<Key>,
}

/// A key of a section.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Name within the section, e.g. `visits`.
    pub name: String,
    /// Documentation.
    pub documentation: &'static str,
    /// Value. A table has keys of its own, e.g. those of `game.rules`.
    pub value: toml::Value,
}

/// Returns a configuration as TOML, with the shortest form of each number.
pub fn table(config: &RunConfig) -> toml::Table {
    // A struct of numbers, texts and tables with text keys always has a TOML form.
    let table = toml::Table::try_from(config).unwrap_or_default();
    table
        .into_iter()
        .map(|(key, value)| (key, shortest(value)))
        .collect()
}

/// Lists all sections of a configuration, with all their keys, in the order of `run.toml`.
pub fn described(config: &RunConfig) -> Vec<Section> {
    let described = table(config).into_iter().map(|(section, keys)| {
        let keys = match keys {
            toml::Value::Table(keys) => keys,
            _ => toml::Table::new(),
        };
        let (tables, plain): (Vec<_>, Vec<_>) = keys.into_iter().partition(|(_, value)| value.is_table());
        let keys = plain.into_iter().chain(tables).map(|(name, value)| Key {
            documentation: documentation(&section, &name).unwrap_or_default(),
            name,
            value,
        });
        Section {
            documentation: RunConfig::get_field_docs(&section).unwrap_or_default(),
            keys: keys.collect(),
            name: section,
        }
    });
    described.collect()
}

/// Returns true if training cannot continue with another value of a key, named by its full path: it resumes from a checkpoint of the
/// same game, the same rows and the same network only.
pub fn is_fixed(path: &str) -> bool {
    path.starts_with("model.") || ["game.name", "game.options"].contains(&path)
}

/// Returns the doc comment of a key.
fn documentation(section: &str, key: &str) -> Option<&'static str> {
    match section {
        "run" => RunSection::get_field_docs(key),
        "game" => GameConfig::get_field_docs(key),
        "model" => ModelConfig::get_field_docs(key),
        "search" => search::Settings::get_field_docs(key),
        "problems" => ProblemsConfig::get_field_docs(key),
        "actor" => ActorConfig::get_field_docs(key),
        "inference" => InferenceConfig::get_field_docs(key),
        "replay" => ReplayConfig::get_field_docs(key),
        "learner" => LearnerConfig::get_field_docs(key),
        "checkpoints" => CheckpointConfig::get_field_docs(key),
        "rating" => RatingConfig::get_field_docs(key),
        "analysis" => AnalysisConfig::get_field_docs(key),
        "security" => SecurityConfig::get_field_docs(key),
        _ => return None,
    }
    .ok()
}

/// Shortens numbers of single precision: 0.2 instead of 0.20000000298023224.
fn shortest(value: toml::Value) -> toml::Value {
    match value {
        toml::Value::Float(wide) => {
            let narrow = wide as f32;
            let written = narrow.to_string().parse().unwrap_or(wide);
            toml::Value::Float(if f64::from(narrow) == wide { written } else { wide })
        }
        toml::Value::Array(values) => values.into_iter().map(shortest).collect::<Vec<_>>().into(),
        toml::Value::Table(table) => table
            .into_iter()
            .map(|(key, value)| (key, shortest(value)))
            .collect::<toml::Table>()
            .into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_and_every_key_has_documentation() {
        for section in described(&RunConfig::default()) {
            assert!(!section.documentation.is_empty(), "{}", section.name);
            for key in section.keys {
                let path = format!("{}.{}", section.name, key.name);
                assert!(
                    key.documentation.len() > 10,
                    "`{path}` needs a comment in config/src"
                );
                assert!(
                    !key.documentation.contains("[`"),
                    "`{path}`: a link means nothing in a run.toml"
                );
            }
        }
    }

    #[test]
    fn every_fixed_key_exists() {
        let sections = described(&RunConfig::default());
        let mut fixed: Vec<String> = Vec::new();
        for section in &sections {
            let paths = section
                .keys
                .iter()
                .map(|key| format!("{}.{}", section.name, key.name));
            fixed.extend(paths.filter(|path| is_fixed(path)));
        }
        for path in ["game.name", "game.options", "model.blocks"] {
            assert!(fixed.iter().any(|found| found == path), "{path}");
        }
        assert!(!fixed.iter().any(|path| path == "search.visits"));
    }
}
