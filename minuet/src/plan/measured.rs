//! [`Measured`]: results of benchmarks, each with its origin.

use std::{
    fs::File,
    io::{BufReader, Read},
    path::Path,
};

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
            if let Some((key, value)) = not_positive("", &serde_json::to_value(&result.report)?) {
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

/// Results of the benchmarks that a plan uses. Their other fields are ignored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "bench", rename_all = "lowercase")]
enum Report {
    Selfplay(Selfplay),
    Inference(Inference),
    Replay(Replay),
    Training(Training),
    /// A benchmark that a plan does not use.
    #[serde(other)]
    Other,
}

/// Result of `minuet bench selfplay`. Rates are per second.
#[derive(Debug, Serialize, Deserialize)]
pub struct Selfplay {
    pub game: String,
    /// Description of the network; one of random weights ends with its size.
    pub network: String,
    pub leaves: u32,
    pub actor_threads: usize,
    pub games_in_progress: usize,
    pub visits_per_second: f64,
    pub fresh_evaluations_per_second: f64,
    pub positions_per_second: f64,
    pub rows_per_request: f64,
    /// Processor time of the actor, in microseconds.
    pub actor_us_per_visit: f64,
}

/// Result of `minuet bench inference`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Inference {
    pub game: String,
    pub request_bytes_per_position: f64,
    pub reply_bytes_per_position: f64,
    pub figures: Vec<Served>,
}

/// Figures of one network on one provider under one load. Rates are evaluations per second of one server on one core, or of
/// one GPU.
#[derive(Debug, Serialize, Deserialize)]
pub struct Served {
    pub network: String,
    pub load: Load,
    pub provider: String,
    pub served: f64,
    pub served_per_cpu_second: f64,
    /// Size of the model's file. Older results lack it.
    pub model_bytes: Option<f64>,
}

/// Shape of a load, written `streams`x`rows`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Load {
    /// Number of streams; each has one request in flight.
    pub streams: u32,
    /// Positions in a request.
    pub rows: u32,
}

impl TryFrom<String> for Load {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = text.split_once('x');
        let load = parts.and_then(|(streams, rows)| {
            let (streams, rows) = (streams.parse().ok()?, rows.parse().ok()?);
            Some(Self { streams, rows })
        });
        load.filter(|load| load.streams > 0 && load.rows > 0)
            .ok_or_else(|| format!("`{text}` is not a load; a load is streams x rows, e.g. 4x64"))
    }
}

/// Result of `minuet bench replay`. Rates are positions per second of the store's processor time, sizes bytes per position.
#[derive(Debug, Serialize, Deserialize)]
pub struct Replay {
    pub game: String,
    pub appended: Rates,
    pub sampled: Rates,
    pub message_bytes: f64,
    pub disk_bytes: f64,
    /// Size in a batch. Older results lack it.
    pub batch_bytes: Option<f64>,
}

/// Positions per second of processor time.
#[derive(Debug, Serialize, Deserialize)]
pub struct Rates {
    pub per_cpu_second: f64,
}

/// Result of `minuet bench training`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Training {
    pub game: String,
    pub network: String,
    /// Device of all figures. Older results lack it and are of the CPU.
    #[serde(default = "cpu")]
    pub device: String,
    pub figures: Vec<Trained>,
}

/// Samples per second in one precision.
#[derive(Debug, Serialize, Deserialize)]
pub struct Trained {
    pub precision: String,
    pub samples: f64,
    pub samples_per_cpu_second: f64,
}

fn cpu() -> String {
    "cpu".into()
}

impl Report {
    /// Returns games and sizes of the measured networks, as `game size`.
    fn networks(&self) -> Vec<String> {
        match self {
            Self::Selfplay(found) => vec![format!("{} {}", found.game, size_of(&found.network))],
            Self::Training(found) => vec![format!("{} {}", found.game, found.network)],
            Self::Inference(found) => {
                let sizes = found.figures.iter().map(|figures| &figures.network);
                sizes.map(|size| format!("{} {size}", found.game)).collect()
            }
            Self::Replay(_) | Self::Other => Vec::new(),
        }
    }
}

/// Size of a network in the description that self-play gives, `random weights 4x64`. A trained network's is its version.
fn size_of(network: &str) -> &str {
    network.strip_prefix("random weights ").unwrap_or(network)
}

/// Returns the first number in a result that is not above 0, with its key. A plan divides by the numbers, or multiplies with them.
fn not_positive(key: &str, value: &Value) -> Option<(String, f64)> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().filter(|&number| number <= 0.0)?;
            Some((key.to_owned(), number))
        }
        Value::Array(list) => list.iter().find_map(|value| not_positive(key, value)),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| match key {
            "" => not_positive(name, value),
            key => not_positive(&format!("{key}.{name}"), value),
        }),
        _ => None,
    }
}
