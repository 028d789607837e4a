//! Loads a model's file into a model that is ready to run: loaded by a provider, compared with f32, warmed.
//!
//! | module | contents |
//! |---|---|
//! | `runner` | one file in a session of one provider, in its precision, compared with f32 |
//! | `choice` | the fastest provider, by measurement |
//! | `int8` | a file in 8-bit integers |
//! | `kept` | measured choices, kept for later starts |

mod choice;
mod int8;
mod kept;
mod runner;

use std::path::PathBuf;

use config::Provider;
use games::RowLayout;
use onnx::OnnxError;
use ort::environment::Environment;
use parking_lot::Mutex;

use crate::{
    batch::{RunError, Runner, legal_width},
    buckets::Buckets,
    canary::{self, Distance},
    file::ModelFile,
    model::{Model, ModelInfo, VersionIds},
    provider::{self, ProviderError, ProviderSettings},
    runtime::{self, RuntimeError},
    session::Contract,
    threads::{self, ThreadSpeed},
};
pub use kept::cache_folder;
pub(crate) use kept::write_newest;
use runner::{Task, varies};

/// Error: a model cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// ONNX Runtime cannot be loaded.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The provider is not available, or does not take the model.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The file is not a model of this layout, or cannot be converted for the provider. The text says why.
    #[error("{0}")]
    Unsuitable(String),
    /// The model cannot be run.
    #[error("a first batch failed")]
    Run(#[from] RunError),
    /// A network cannot be opened in this process.
    #[error("{version} cannot be loaded")]
    Version {
        /// Version of the network.
        version: String,
        /// Reason.
        source: Box<LoadError>,
    },
    /// The provider's outputs are too far from those of f32.
    #[error(
        "{provider} is too far from f32: priors {:.5} (at most {}), values {:.5} (at most {})",
        distance.prior, bound, distance.value, bound
    )]
    Differs {
        /// The provider.
        provider: Provider,
        /// Measured distance.
        distance: Distance,
        /// Largest allowed distance of either.
        bound: f32,
    },
}

impl LoadError {
    /// Returns the error of a conversion. `what` is the sentence before the reason.
    fn of_conversion(what: &str) -> impl FnOnce(OnnxError) -> Self {
        move |reason| Self::Unsuitable(format!("{what}: {reason}"))
    }
}

/// Makes a device that a benchmark simulates, for a model of this layout.
pub type Simulate = fn(&RowLayout) -> Box<dyn Runner>;

/// Loads models with one provider, or with the fastest one. If the settings leave the number of sessions open, the first
/// model decides it by measurement.
#[derive(Debug)]
pub struct Loader {
    environment: Environment,
    settings: ProviderSettings,
    buckets: Buckets,
    provider: Provider,
    /// With `auto`: the available providers, the fastest first. Empty until they have been measured.
    ranking: Mutex<Vec<Provider>>,
    /// File of rankings that were measured at earlier starts.
    choices: Option<PathBuf>,
    /// Measured speeds, if the settings leave the number of sessions open. Empty until they have been measured.
    speeds: Mutex<Vec<ThreadSpeed>>,
    numbers: VersionIds,
    /// In place of the providers.
    simulate: Option<Simulate>,
}

impl Loader {
    /// Makes a loader for batches of at most `largest` positions on a provider. `auto` chooses the fastest provider that agrees with
    /// f32.
    ///
    /// # Errors
    /// [`LoadError`] if ONNX Runtime is missing, or if the requested provider cannot run a small network on this machine.
    pub fn new(
        settings: impl Into<ProviderSettings>,
        largest: usize,
        provider: Provider,
    ) -> Result<Self, LoadError> {
        let loader = Self {
            environment: runtime::load()?,
            settings: settings.into(),
            buckets: Buckets::new(largest),
            provider,
            ranking: Mutex::new(Vec::new()),
            choices: None,
            speeds: Mutex::new(Vec::new()),
            numbers: VersionIds::default(),
            simulate: None,
        };
        if provider != Provider::Auto {
            loader.try_out(provider)?;
        }
        Ok(loader)
    }

    /// Replaces the providers by a simulated device, for a benchmark; no setting reaches this.
    pub fn simulated(self, simulate: Simulate) -> Self {
        Self {
            simulate: Some(simulate),
            ..self
        }
    }

    /// Loads, checks and warms a model that Minuet made. Blocks for a tenth of a second to some seconds.
    ///
    /// # Errors
    /// [`LoadError`] with the reason.
    pub fn load(&self, file: &ModelFile) -> Result<Model, LoadError> {
        self.load_from("", file, &Contract::default())
    }

    /// Loads a model from any source, with its own names of inputs and outputs. Otherwise like [`Loader::load`].
    ///
    /// # Errors
    /// [`LoadError`] with the reason.
    pub fn load_from(&self, source: &str, file: &ModelFile, contract: &Contract) -> Result<Model, LoadError> {
        let digest = checkpoints::version::sha256_hex(&file.bytes);
        let info = |provider: &'static str, bytes, threads| ModelInfo {
            source: source.to_owned(),
            version: file.version.clone(),
            id: self.numbers.of(&contract.identity(&digest, &file.layout)),
            digest: digest.clone(),
            step: file.step,
            layout: file.layout.clone(),
            provider,
            bytes,
            threads,
            speeds: self.speeds.lock().clone(),
        };
        if let Some(simulate) = self.simulate {
            let info = info("simulated", file.bytes.len() as u64, 1);
            return Ok(Model::new(
                info,
                self.buckets.clone(),
                vec![simulate(&file.layout)],
            ));
        }
        let refused = format!(
            "the model is refused before the provider {} loads it",
            self.provider
        );
        onnx::one_file::check(&file.bytes).map_err(LoadError::of_conversion(&refused))?;
        let task = &Task::new(file, contract, &digest);
        let (plain, truth) = self.plain(task)?;
        let (provider, runner) = match self.provider {
            Provider::Auto => self.choose(task, plain, &truth)?,
            Provider::Cpu if !self.settings.fp16 && !self.settings.bind_always => (Provider::Cpu, plain),
            provider => {
                let candidate = self.candidate(provider, task, &truth)?;
                (provider, candidate.checked(&self.settings)?.runner)
            }
        };
        let runners = self.with_more_sessions(provider, runner, task)?;
        let sizes = self.prepared(provider);
        let runners = runners
            .into_iter()
            .map(|runner| warmed(runner, &file.layout, &sizes));
        let runners = runners.collect::<Result<Vec<_>, _>>()?;
        let bytes = self.memory_on(provider, file.bytes.len() as u64);
        let info = info(
            provider::name_with(provider, &self.settings),
            bytes,
            runners.len(),
        );
        let buckets = match varies(&file.layout) {
            true => self.buckets.every_size(),
            false if provider::pads(provider) => self.prepared(provider),
            false => self.buckets.fine(),
        };
        Ok(Model::new(info, buckets, runners))
    }

    /// Returns the memory that a model counts for, in bytes, by the length of its file: the weights for each time that it is
    /// compiled. Other memory of a provider depends on the batch size and not on the number of models.
    pub fn memory(&self, file_bytes: u64) -> u64 {
        let of = |provider| self.memory_on(provider, file_bytes);
        match self.provider {
            Provider::Auto => Provider::each().map(of).max().unwrap_or(file_bytes),
            provider => of(provider),
        }
    }

    /// Returns the batch sizes that a model is warmed for on `provider`.
    fn prepared(&self, provider: Provider) -> Buckets {
        match provider {
            Provider::Cuda => self.buckets.powers(),
            _ => self.buckets.clone(),
        }
    }

    /// Returns the batch sizes that have a session of their own on `provider`.
    fn fixed_sizes(&self, provider: Provider) -> Vec<usize> {
        provider::fixed_sizes(provider, self.prepared(provider).sizes())
    }

    fn memory_on(&self, provider: Provider, file_bytes: u64) -> u64 {
        let compiled = 1 + self.fixed_sizes(provider).len();
        file_bytes * (compiled * self.sessions(provider)) as u64
    }

    /// Returns the number of sessions of a model on `provider`: 1 until it has been measured.
    fn sessions(&self, provider: Provider) -> usize {
        match self.settings.sessions {
            _ if provider.is_gpu() => 1,
            0 => threads::choose(&self.speeds.lock()).unwrap_or(1),
            sessions => sessions,
        }
    }

    /// Returns `runner` and more of the same model, one for each session. Measures their best number at the first call, if
    /// the settings leave it open.
    fn with_more_sessions(
        &self,
        provider: Provider,
        runner: Box<dyn Runner>,
        task: &Task<'_>,
    ) -> Result<Vec<Box<dyn Runner>>, LoadError> {
        let is_open = self.settings.sessions == 0 && !provider.is_gpu() && self.speeds.lock().is_empty();
        let most = match is_open {
            true => service::process::cores(),
            false => self.sessions(provider),
        };
        let mut runners = vec![runner];
        while runners.len() < most {
            runners.push(self.runner(provider, task, &self.settings)?);
        }
        if !is_open {
            return Ok(runners);
        }
        let batch = canary::batch(&task.file.layout, self.buckets.largest());
        let speeds = threads::measure(&mut runners, &batch)?;
        for speed in &speeds {
            tracing::info!(
                %provider,
                threads = speed.threads,
                positions_per_second = speed.positions_per_second.round() as u64,
                positions_per_cpu_second = speed.positions_per_cpu_second.round() as u64,
                cores = format_args!("{:.2}", speed.cores),
                batch = batch.size(),
                "threads measured"
            );
        }
        *self.speeds.lock() = speeds;
        runners.truncate(self.sessions(provider));
        Ok(runners)
    }
}

/// Runs one batch of every size, so that no request pays for a first run.
fn warmed(
    mut runner: Box<dyn Runner>,
    layout: &RowLayout,
    sizes: &Buckets,
) -> Result<Box<dyn Runner>, RunError> {
    for &size in sizes.sizes() {
        let batch = canary::batch(layout, size);
        if runner.picks_legal() {
            let width = legal_width(1, layout.actions);
            runner.run(batch.clone().with_legal(vec![0; size * width], width))?;
        }
        runner.run(batch)?;
    }
    Ok(runner)
}
