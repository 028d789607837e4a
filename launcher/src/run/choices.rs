//! Settings that were chosen by measurement on this machine, kept in the run's folder: later starts use them without measuring
//! again, as long as machine and network are the same.

use std::{fs, io, path::Path};

use config::RunConfig;
use proto::v1::ModelDescription;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Name of the file in a run's folder.
pub const FILE: &str = "choices.json";

/// Settings chosen for a run on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choices {
    /// Conditions of the measurement.
    conditions: serde_json::Value,
    /// Chosen number of evaluating threads.
    pub threads: u32,
    /// Figures that decided, for people.
    pub reason: String,
    /// True if other programs used the cores meanwhile.
    busy: bool,
}

/// Everything that a measured speed depends on.
fn conditions(config: &RunConfig) -> serde_json::Value {
    json!({
        "processor": service::process::processor(),
        "cores": service::process::cores(),
        "game": config.game.name,
        "options": config.game.options,
        // The network's shape.
        "network": config.model,
        "provider": config.inference.provider,
        "max_batch": config.inference.largest_batch(),
    })
}

impl Choices {
    /// Returns the choices that an inference server describes; `None` if it has measured nothing.
    pub fn of(model: &ModelDescription, config: &RunConfig) -> Option<Self> {
        (!model.thread_speeds.is_empty()).then(|| Self {
            conditions: conditions(config),
            threads: model.threads,
            reason: reason(model),
            busy: model.measured_while_busy,
        })
    }

    /// Reads the choices kept in the folder of a run; `None` if there are none for this machine and this configuration.
    ///
    /// # Errors
    /// The file cannot be read, or does not hold choices.
    pub fn kept(run: &Path, config: &RunConfig) -> io::Result<Option<Self>> {
        let text = match fs::read(run.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let kept: Self = serde_json::from_slice(&text)?;
        Ok((kept.conditions == conditions(config)).then_some(kept))
    }

    /// Keeps the choices in the folder of a run. Choices that were measured while other programs used the cores are not kept, so
    /// that the next start measures again.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, run: &Path) -> io::Result<()> {
        if self.busy {
            return Ok(());
        }
        durable::write(&run.join(FILE), &serde_json::to_vec_pretty(self)?)
    }
}

/// Formats the speeds that decided: `1: 8,020, 2: 14,800 positions/s, openvino-f32`. If other programs used the cores, those are
/// speeds per second of processor time.
fn reason(model: &ModelDescription) -> String {
    let speeds = model.thread_speeds.iter().map(|speed| {
        let rate = match model.measured_while_busy {
            false => speed.positions_per_second,
            true => speed.positions_per_cpu_second,
        };
        let rate = indicatif::HumanCount(rate.round() as u64);
        format!("{}: {rate}", speed.threads)
    });
    let speeds: Vec<String> = speeds.collect();
    let unit = match model.measured_while_busy {
        false => "positions/s",
        true => "positions per second of processor time, since other programs used the cores",
    };
    format!("{} {unit}, {}", speeds.join(", "), model.provider)
}

#[cfg(test)]
mod tests {
    use proto::v1::ThreadSpeed;

    use super::*;

    fn described(threads: u32) -> ModelDescription {
        let speed = |threads, positions_per_second| ThreadSpeed {
            threads,
            positions_per_second,
            positions_per_cpu_second: 7_900.0,
        };
        ModelDescription {
            provider: "cpu".into(),
            threads,
            thread_speeds: vec![speed(1, 8_020.4), speed(2, 14_800.0)],
            ..ModelDescription::default()
        }
    }

    #[test]
    fn choices_are_kept_for_the_same_network() {
        let run = tempfile::tempdir().unwrap();
        let mut config = RunConfig::default();
        assert_eq!(Choices::kept(run.path(), &config).unwrap(), None);
        assert_eq!(
            Choices::of(&ModelDescription::default(), &config),
            None,
            "nothing measured"
        );
        let choices = Choices::of(&described(2), &config).unwrap();
        assert_eq!(
            (choices.threads, choices.reason.as_str()),
            (2, "1: 8,020, 2: 14,800 positions/s, cpu")
        );
        choices.keep(run.path()).unwrap();
        assert_eq!(Choices::kept(run.path(), &config).unwrap(), Some(choices));

        config.model.blocks += 1;
        let other = Choices::kept(run.path(), &config).unwrap();
        assert_eq!(other, None, "another network");
    }

    #[test]
    fn choices_of_a_busy_machine_hold_for_one_start() {
        let run = tempfile::tempdir().unwrap();
        let described = ModelDescription {
            measured_while_busy: true,
            ..described(2)
        };
        let choices = Choices::of(&described, &RunConfig::default()).unwrap();
        assert!(
            choices
                .reason
                .starts_with("1: 7,900, 2: 7,900 positions per second of processor time")
        );
        choices.keep(run.path()).unwrap();
        assert_eq!(Choices::kept(run.path(), &RunConfig::default()).unwrap(), None);
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let run = tempfile::tempdir().unwrap();
        for text in ["", "{", r#"{"threads":"two"}"#] {
            fs::write(run.path().join(FILE), text).unwrap();
            Choices::kept(run.path(), &RunConfig::default()).unwrap_err();
        }
    }
}
