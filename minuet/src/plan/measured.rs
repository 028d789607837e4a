//! [`Measured`]: results of benchmarks, each with its origin.

use std::{
    fs::File,
    io::{BufReader, Read},
    path::Path,
};

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};

use super::reports::{Inference, Replay, Report, Selfplay, Training, size_of};

/// Figures that come with Minuet.
const SHIPPED: &str = include_str!("measured.jsonl");

/// Origin of a result. Results of one's own machine need none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Kind of the machine.
    pub machine: Option<String>,
    /// Command that printed the result.
    pub command: Option<String>,
    /// Commit of the program.
    pub commit: Option<String>,
}

/// A result and its origin.
#[derive(Debug, Deserialize)]
struct OneResult {
    #[serde(flatten)]
    origin: Origin,
    #[serde(flatten)]
    report: Report,
}

/// A result with its origin.
pub type Found<'a, T> = (&'a Origin, &'a T);

/// Results of benchmarks.
#[derive(Debug)]
pub struct Measured(Vec<OneResult>);

impl Measured {
    /// Returns the figures that come with Minuet.
    ///
    /// # Errors
    /// This build's own file is damaged.
    pub fn shipped() -> anyhow::Result<Self> {
        Self::parse(SHIPPED.as_bytes(), "the file of figures of this build")
    }

    /// Reads a file of objects, one after the other.
    ///
    /// # Errors
    /// The file cannot be read, is empty, or an object in it is damaged.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        Self::parse(BufReader::new(file), &name)
    }

    /// Parses objects, one after the other. `name` is that of their file, for errors.
    pub fn parse(objects: impl Read, name: &str) -> anyhow::Result<Self> {
        let objects = serde_json::Deserializer::from_reader(objects).into_iter::<OneResult>();
        let mut results = Vec::new();
        for (number, result) in (1..).zip(objects) {
            let result = result.with_context(|| {
                format!(
                    "{name}: object {number} is not a result of `minuet bench … --json`; write the command's output to the file again"
                )
            })?;
            if let Some((key, value)) = result.report.not_positive() {
                bail!(
                    "{name}: object {number}: `{key}` is {value} and must be above 0; measure it again, for longer"
                );
            }
            results.push(result);
        }
        ensure!(
            !results.is_empty(),
            "{name} is empty; write results of `minuet bench … --json` to it, as `minuet plan --help` shows"
        );
        Ok(Self(results))
    }

    /// Returns the last self-play of `game` with a network of random weights of this size.
    pub fn selfplay(&self, game: &str, network: &str) -> Option<Found<'_, Selfplay>> {
        self.last(|report| match report {
            Report::Selfplay(found) => {
                (found.game == game && size_of(&found.network) == network).then_some(found)
            }
            _ => None,
        })
    }

    /// Returns the last result of the inference server that has figures of this network.
    pub fn inference(&self, game: &str, network: &str) -> Option<Found<'_, Inference>> {
        self.last(|report| match report {
            Report::Inference(found) => {
                let has = found.figures.iter().any(|figures| figures.network == network);
                (found.game == game && has).then_some(found)
            }
            _ => None,
        })
    }

    /// Returns the last result of the replay store.
    pub fn replay(&self, game: &str) -> Option<Found<'_, Replay>> {
        self.last(|report| match report {
            Report::Replay(found) => (found.game == game).then_some(found),
            _ => None,
        })
    }

    /// Returns the last training of this network.
    pub fn training(&self, game: &str, network: &str) -> Option<Found<'_, Training>> {
        self.last(|report| match report {
            Report::Training(found) => (found.game == game && found.network == network).then_some(found),
            _ => None,
        })
    }

    /// Returns games and sizes of all networks, each once, as `game size`.
    pub fn networks(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .0
            .iter()
            .flat_map(|result| result.report.networks())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn last<'a, T>(&'a self, pick: impl Fn(&'a Report) -> Option<&'a T>) -> Option<Found<'a, T>> {
        let mut results = self.0.iter().rev();
        results.find_map(|result| Some((&result.origin, pick(&result.report)?)))
    }
}
