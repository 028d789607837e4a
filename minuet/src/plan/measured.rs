//! [`Measured`]: results of benchmarks, each with its origin.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::reports::{Inference, Replay, Report, Selfplay, Training, size_of};

/// Figures that come with Minuet.
const SHIPPED: &str = include_str!("measured.jsonl");

/// Error: a file of measured figures cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredError {
    /// The file cannot be opened.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// Something in the file is not a result of a benchmark.
    #[error(
        "{name}: object {number} is not a result of `minuet bench … --json`; write the command's output to the file again"
    )]
    Damaged {
        /// Name of the file.
        name: String,
        /// Number of the object in the file, from 1.
        number: usize,
        /// Reason.
        source: serde_json::Error,
    },
    /// A rate or a size is not above 0.
    #[error("{name}: object {number}: `{key}` is {value} and must be above 0; measure it again, for longer")]
    NotPositive {
        /// Name of the file.
        name: String,
        /// Number of the object in the file, from 1.
        number: usize,
        /// Key of the figure.
        key: &'static str,
        /// Value of the figure.
        value: f64,
    },
    /// The file holds no object.
    #[error("{name} is empty; write results of `minuet bench … --json` to it, as `minuet plan --help` shows")]
    Empty {
        /// Name of the file.
        name: String,
    },
}

/// Origin of a result. Results of one's own machine need none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Kind of the machine.
    #[serde(default)]
    pub machine: Option<String>,
    /// Command that printed the result.
    #[serde(default)]
    pub command: Option<String>,
    /// Commit of the program.
    #[serde(default)]
    pub commit: Option<String>,
}

/// A result and its origin.
#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(flatten)]
    origin: Origin,
    #[serde(flatten)]
    report: Report,
}

/// A result with its origin.
pub type Found<'a, T> = (&'a Origin, &'a T);

/// Results of benchmarks.
#[derive(Debug)]
pub struct Measured(Vec<Entry>);

impl Measured {
    /// Returns the figures that come with Minuet.
    ///
    /// # Errors
    /// [`MeasuredError`] if this build's own file is damaged.
    pub fn shipped() -> Result<Self, MeasuredError> {
        Self::parse(SHIPPED.as_bytes(), "the file of figures of this build")
    }

    /// Reads a file of objects, one after the other.
    ///
    /// # Errors
    /// [`MeasuredError`].
    pub fn read(path: &Path) -> Result<Self, MeasuredError> {
        let file = File::open(path).map_err(|source| MeasuredError::Io {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(BufReader::new(file), &path.display().to_string())
    }

    /// Parses objects, one after the other. `name` is that of their file, for errors.
    ///
    /// # Errors
    /// [`MeasuredError`].
    pub fn parse(objects: impl Read, name: &str) -> Result<Self, MeasuredError> {
        let objects = serde_json::Deserializer::from_reader(objects).into_iter::<Entry>();
        let mut entries = Vec::new();
        for (number, entry) in (1..).zip(objects) {
            let name = || name.to_owned();
            let entry = entry.map_err(|source| MeasuredError::Damaged {
                name: name(),
                number,
                source,
            })?;
            if let Some((key, value)) = entry.report.not_positive() {
                return Err(MeasuredError::NotPositive {
                    name: name(),
                    number,
                    key,
                    value,
                });
            }
            entries.push(entry);
        }
        if entries.is_empty() {
            return Err(MeasuredError::Empty { name: name.into() });
        }
        Ok(Self(entries))
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
        let mut names: Vec<String> = self.0.iter().flat_map(|entry| entry.report.networks()).collect();
        names.sort();
        names.dedup();
        names
    }

    fn last<'a, T>(&'a self, pick: impl Fn(&'a Report) -> Option<&'a T>) -> Option<Found<'a, T>> {
        let mut entries = self.0.iter().rev();
        entries.find_map(|entry| Some((&entry.origin, pick(&entry.report)?)))
    }
}
