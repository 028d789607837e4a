//! A baseline without Minuet's code: ONNX Runtime's own Python package runs the same model file on the same positions.

use std::{num::NonZeroUsize, path::Path, process::Command};

use serde::{Deserialize, Serialize};

use super::{child::DrivenChild, compared::Compared, measure::Measured, positions::Positions};

/// First line of the process.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ready {
    /// Version of the package.
    Version(String),
    /// Reason why there is no baseline.
    Missing(String),
}

/// The process, or the reason why there is none.
pub struct OnnxRuntime {
    pub process: Result<DrivenChild, String>,
    version: Option<String>,
}

/// Figures of ONNX Runtime's Python package.
#[derive(Serialize)]
pub struct Figures {
    /// Version of the package.
    pub version: Option<String>,
    /// Rates, and ratios to them; null if there is no baseline.
    pub compared: Option<Compared>,
    /// Reason why there is no baseline.
    pub missing: Option<String>,
}

impl OnnxRuntime {
    /// Starts `python` on the core of this thread, for batches of `batch` positions that `provider` computes with `threads`. (With
    /// 0 threads the package takes all cores of the machine, also those that this thread may not use.)
    pub fn start(
        python: Option<&Path>,
        model: &Path,
        positions: &Positions,
        (batch, threads): (usize, NonZeroUsize),
        provider: &str,
    ) -> anyhow::Result<Self> {
        let rows = model.with_extension("rows");
        let numbers = positions.batches(batch).flatten().flat_map(u32::to_le_bytes);
        std::fs::write(&rows, numbers.collect::<Vec<u8>>())?;
        let is_fixed = positions.layout.row_len().is_some();
        let start = || {
            let python = python.ok_or("no --python was given")?;
            if !is_fixed {
                return Err("the rows of this game differ in length".to_owned());
            }
            let mut command = Command::new(python);
            command.args(["-c", include_str!("onnxruntime.py")]);
            command
                .arg(model)
                .arg(&rows)
                .args([&batch.to_string(), &threads.to_string(), provider]);
            let process = DrivenChild::start(command).map_err(|error| format!("{error:#}"))?;
            match serde_json::from_str(&process.first_line) {
                Ok(Ready::Version(version)) => Ok((process, version)),
                Ok(Ready::Missing(reason)) => Err(reason),
                Err(error) => Err(format!("its first line is {}: {error}", process.first_line)),
            }
        };
        let (process, version) = match start() {
            Ok((process, version)) => (Ok(process), Some(version)),
            Err(reason) => (Err(reason), None),
        };
        Ok(Self { process, version })
    }

    /// Compares the rounds of a subject with those of the package, measured in turn with them.
    pub fn figures(&self, subject: &[Measured]) -> Figures {
        let own = self.process.as_ref().map_or(&[][..], |process| &process.rounds);
        Figures {
            version: self.version.clone(),
            compared: Compared::new(subject, own),
            missing: self.process.as_ref().err().cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::model;

    fn start(python: Option<&Path>, provider: &str) -> OnnxRuntime {
        let folder = tempfile::tempdir().unwrap();
        let positions = Positions::play("connect-four").unwrap();
        let file = folder.path().join("model.onnx");
        let (network, _) = model::find("connect-four", None, None, (1, 8)).unwrap();
        std::fs::write(&file, network.bytes).unwrap();
        OnnxRuntime::start(python, &file, &positions, (4, NonZeroUsize::MIN), provider).unwrap()
    }

    #[test]
    fn without_the_package_the_reason_is_in_the_figures() {
        for (python, expected) in [
            (None, "no --python was given"),
            (Some(Path::new("/nowhere/python")), "cannot start /nowhere/python"),
        ] {
            let figures = serde_json::to_value(start(python, "cpu").figures(&[])).unwrap();
            assert!(figures["compared"].is_null(), "{figures}");
            let missing = figures["missing"].as_str().unwrap();
            assert!(missing.contains(expected), "{figures}");
        }
    }

    #[test]
    fn the_package_runs_the_model_file() {
        let Some(python) = test_support::python("onnxruntime") else {
            return;
        };
        let mut baseline = start(Some(&python), "cpu");
        let process = baseline
            .process
            .as_mut()
            .unwrap_or_else(|reason| panic!("{reason}"));
        process.measure(0.05).unwrap();
        let ours = Measured {
            positions: 100,
            time: std::time::Duration::from_secs(1),
            cpu_seconds: 1.0,
            device_seconds: 0.0,
            busy_seconds: 0.0,
        };
        let figures = baseline.figures(&[ours]);
        assert_eq!(figures.missing, None);
        let compared = figures.compared.unwrap();
        assert!(compared.per_second > 0.0, "{compared:?}");
        assert!(
            (compared.ratio - 100.0 / compared.per_second).abs() < 1e-9,
            "{compared:?}"
        );

        let other = start(Some(&python), "cuda").figures(&[]);
        let reason = other.missing.unwrap();
        assert!(reason.contains("CUDAExecutionProvider"), "{reason}");
    }
}
