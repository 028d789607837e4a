//! Results of benchmarks, with the fields that a plan uses.

use serde::Deserialize;

/// Results of the benchmarks that a plan uses. Their other fields are ignored.
#[derive(Debug, Deserialize)]
#[serde(tag = "bench", rename_all = "lowercase")]
pub enum Report {
    Selfplay(Selfplay),
    Inference(Inference),
    Replay(Replay),
    Training(Training),
    /// A benchmark that a plan does not use.
    #[serde(other)]
    Other,
}

/// Result of `minuet bench selfplay`. Rates are per second.
#[derive(Debug, Deserialize)]
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
#[derive(Debug, Deserialize)]
pub struct Inference {
    pub game: String,
    pub request_bytes_per_position: f64,
    pub reply_bytes_per_position: f64,
    pub figures: Vec<Served>,
}

/// Figures of one network on one provider under one load. Rates are evaluations per second of one server on one core, or of
/// one GPU.
#[derive(Debug, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
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
#[derive(Debug, Deserialize)]
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
#[derive(Debug, Deserialize)]
pub struct Rates {
    pub per_cpu_second: f64,
}

/// Result of `minuet bench training`.
#[derive(Debug, Deserialize)]
pub struct Training {
    pub game: String,
    pub network: String,
    /// Device of all figures. Older results lack it and are of the CPU.
    #[serde(default = "cpu")]
    pub device: String,
    pub figures: Vec<Trained>,
}

/// Samples per second in one precision.
#[derive(Debug, Deserialize)]
pub struct Trained {
    pub precision: String,
    pub samples: f64,
    pub samples_per_cpu_second: f64,
}

fn cpu() -> String {
    "cpu".into()
}

impl Report {
    /// Returns the first figure that a plan divides by or multiplies with and that is not above 0, with its key.
    pub fn not_positive(&self) -> Option<(&'static str, f64)> {
        let numbers = match self {
            Self::Selfplay(found) => vec![
                ("leaves", found.leaves.into()),
                ("actor_threads", found.actor_threads as f64),
                ("games_in_progress", found.games_in_progress as f64),
                ("visits_per_second", found.visits_per_second),
                ("fresh_evaluations_per_second", found.fresh_evaluations_per_second),
                ("positions_per_second", found.positions_per_second),
                ("rows_per_request", found.rows_per_request),
                ("actor_us_per_visit", found.actor_us_per_visit),
            ],
            Self::Inference(found) => {
                let bytes = [
                    ("request_bytes_per_position", found.request_bytes_per_position),
                    ("reply_bytes_per_position", found.reply_bytes_per_position),
                ];
                let rates = found.figures.iter().flat_map(|figures| {
                    [
                        ("served", figures.served),
                        ("served_per_cpu_second", figures.served_per_cpu_second),
                        ("model_bytes", figures.model_bytes.unwrap_or(1.0)),
                    ]
                });
                bytes.into_iter().chain(rates).collect()
            }
            Self::Replay(found) => vec![
                ("appended.per_cpu_second", found.appended.per_cpu_second),
                ("sampled.per_cpu_second", found.sampled.per_cpu_second),
                ("message_bytes", found.message_bytes),
                ("disk_bytes", found.disk_bytes),
                ("batch_bytes", found.batch_bytes.unwrap_or(1.0)),
            ],
            Self::Training(found) => found
                .figures
                .iter()
                .flat_map(|figures| {
                    [
                        ("samples", figures.samples),
                        ("samples_per_cpu_second", figures.samples_per_cpu_second),
                    ]
                })
                .collect(),
            Self::Other => Vec::new(),
        };
        numbers.into_iter().find(|(_, number)| *number <= 0.0)
    }

    /// Returns games and sizes of the measured networks, as `game size`.
    pub fn networks(&self) -> Vec<String> {
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
pub fn size_of(network: &str) -> &str {
    network.strip_prefix("random weights ").unwrap_or(network)
}
