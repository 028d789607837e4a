//! Writes a complete `run.toml` with a comment on every key. The comments are the documentation of the keys ([`described`]).

use super::{RunConfig, described};

const HEAD: &str = "\
# A run of Minuet. Every key is here with its value; one that is removed takes its default.
# Paths are relative to this file's folder. Addresses and metrics pages are chosen free by `minuet up`
# and given to the roles apart from this file; they count where roles are started one by one.
# A change takes effect when the run is started again.
";

/// Returns `config` as a commented `run.toml`, which parses back to the same configuration. The rules of the game, whose keys
/// only the game knows, have no comments.
pub fn template(config: &RunConfig) -> String {
    template_with_rules(config, |_| None)
}

/// Returns `config` as a commented `run.toml`. `rule` gives the comment of a key of the game's rules.
pub fn template_with_rules(config: &RunConfig, rule: impl Fn(&str) -> Option<&'static str>) -> String {
    let mut text = String::from(HEAD);
    for section in described(config) {
        text.push('\n');
        push_comment(&mut text, section.documentation);
        text.push_str(&format!("[{}]\n", section.name));
        for key in &section.keys {
            match &key.value {
                toml::Value::Table(table) => {
                    text.push('\n');
                    push_comment(&mut text, key.documentation);
                    text.push_str(&format!("[{}.{}]\n", section.name, key.name));
                    for (name, value) in table {
                        push_comment(&mut text, rule(name).unwrap_or_default());
                        text.push_str(&format!("{name} = {value}\n"));
                    }
                }
                value => {
                    push_comment(&mut text, key.documentation);
                    text.push_str(&format!("{} = {value}\n", key.name));
                }
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

#[cfg(test)]
mod tests {
    use search::TemperatureStep;

    use super::super::{Provider, parse};
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
        other.inference.provider = Provider::OpenvinoBf16;
        other.inference.sources = vec!["chess=../chess".into()];
        other.learner.learning_rate = 3.3e-4;
        other.actor.name = "a \"quoted\" name\nwith a second line".into();
        assert_eq!(parse(&template(&other)).unwrap(), other);
    }

    #[test]
    fn every_key_has_a_comment_above_it() {
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
