//! Writes a complete `run.toml` with a comment on every key. The comments are the doc comments of the settings' fields, so a
//! key has one text for both, and a key without a doc comment does not compile.

use documented::DocumentedFields;

use super::{
    ActorConfig, CheckpointConfig, GameConfig, InferenceConfig, LearnerConfig, ModelConfig, ProblemsConfig,
    RatingConfig, ReplayConfig, RunConfig, RunSection, SecurityConfig,
};

const HEAD: &str = "\
# A run of Minuet. Every key is here with its value; one that is removed takes its default.
# Paths are relative to this file's folder. Addresses and metrics pages are chosen free by `minuet up`
# and given to the roles apart from this file; they count where roles are started one by one.
# A change takes effect when the run is started again.
";

/// Returns `config` as a commented `run.toml`, which parses back to the same configuration.
pub fn template(config: &RunConfig) -> String {
    let mut text = String::from(HEAD);
    // A struct of numbers, texts and tables with text keys always has a TOML form.
    let sections = toml::Table::try_from(config).unwrap_or_default();
    for (section, keys) in &sections {
        text.push('\n');
        push_comment(&mut text, RunConfig::get_field_docs(section).unwrap_or_default());
        text.push_str(&format!("[{section}]\n"));
        let keys = keys.as_table().into_iter().flatten();
        let (tables, plain): (Vec<_>, Vec<_>) = keys.partition(|(_, value)| value.is_table());
        for (key, value) in plain {
            push_comment(&mut text, comment(section, key).unwrap_or_default());
            text.push_str(&format!("{key} = {}\n", shortest(value.clone())));
        }
        for (key, table) in tables {
            text.push('\n');
            push_comment(&mut text, comment(section, key).unwrap_or_default());
            text.push_str(&format!("[{section}.{key}]\n"));
            for (name, value) in table.as_table().into_iter().flatten() {
                text.push_str(&format!("{name} = {}\n", shortest(value.clone())));
            }
        }
    }
    text
}

fn push_comment(text: &mut String, comment: &str) {
    for line in comment.lines() {
        text.push_str("# ");
        text.push_str(&line.replace('`', "'"));
        text.push('\n');
    }
}

/// Returns the doc comment of a key.
fn comment(section: &str, key: &str) -> Option<&'static str> {
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
    use search::TemperatureStep;

    use super::super::{ProviderChoice, parse};
    use super::*;

    #[test]
    fn the_template_reads_back_as_the_same_configuration() {
        assert_eq!(
            parse(&template(&RunConfig::default())).unwrap(),
            RunConfig::default()
        );

        let mut other = RunConfig::default();
        other.run.seed = 99;
        other.game.name = "connect-four".into();
        other.game.rules.insert("dead_end".into(), "forbid".into());
        other.search.exploration = 0.1;
        other.search.temperature = vec![TemperatureStep {
            until_action: 3,
            temperature: 0.7,
        }];
        other.inference.provider = ProviderChoice::OpenvinoBf16;
        other.inference.sources = vec!["chess=../chess".into()];
        other.learner.learning_rate = 3.3e-4;
        other.actor.name = "a \"quoted\" name\nwith a second line".into();
        assert_eq!(parse(&template(&other)).unwrap(), other);
    }

    #[test]
    fn every_section_and_every_key_has_a_comment() {
        let sections = toml::Table::try_from(RunConfig::default()).unwrap();
        for (section, keys) in &sections {
            assert!(
                !RunConfig::get_field_docs(section).unwrap().is_empty(),
                "{section}"
            );
            for key in keys.as_table().unwrap().keys() {
                let found = comment(section, key).unwrap_or_default();
                assert!(
                    found.len() > 10,
                    "`{section}.{key}` needs a comment in config/src"
                );
                assert!(
                    !found.contains("[`"),
                    "`{section}.{key}`: a link means nothing in a run.toml"
                );
            }
        }
        let text = template(&RunConfig::default());
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let is_key = pair[1].contains(" = ") && !pair[1].starts_with('#');
            assert!(
                !is_key || pair[0].starts_with('#'),
                "no comment above `{}`",
                pair[1]
            );
        }
    }

    #[test]
    fn numbers_are_written_short() {
        let text = template(&RunConfig::default());
        assert!(text.contains("\nfirst_play_reduction = 0.2\n"), "{text}");
        assert!(text.contains("\nlearning_rate = 0.001\n"), "{text}");
    }
}
