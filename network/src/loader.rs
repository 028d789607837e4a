//! Loads a model's file into a model that is ready to run: loaded by a provider, compared with f32, warmed.

use std::{
    borrow::Cow,
    cell::OnceCell,
    time::{Duration, Instant},
};

use games::{PlaneStack, RowForm, RowLayout};
use ort::environment::Environment;
use parking_lot::Mutex;

use crate::{
    batch::{RunError, Runner, legal_width},
    buckets::Buckets,
    canary::{self, CanaryOutput, Distance},
    identity::VersionIds,
    model::{Model, ModelInfo},
    provider::{Bound, Provider, ProviderError, Settings, Shapes},
    session::binding::Memory,
    session::expanded::ExpandedRunner,
    session::{Contract, ModelError, SessionRunner},
    threads::{self, ThreadSpeed},
};

/// Number of rounds of the measurement. The best round counts, so that other work on the machine has little effect.
const ROUNDS: usize = 3;
/// Shortest duration of one round.
const ROUND: Duration = Duration::from_millis(60);

/// Error: a model cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The provider is not available, or does not take the model.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The file is not a model of this layout.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model cannot be run.
    #[error("a first batch failed")]
    Run(#[from] RunError),
    /// The model cannot be converted to half precision.
    #[error("inference.fp16: the model cannot be converted to half precision")]
    Half(#[from] onnx::half::HalfError),
    /// The model cannot be converted to 8-bit integers.
    #[error("the model cannot be converted to 8-bit integers")]
    Int8(#[from] onnx::int8::Int8Error),
    /// The model cannot be extended to pick legal logits itself.
    #[error(transparent)]
    Legal(#[from] onnx::legal::LegalError),
    /// The provider's outputs are too far from those of f32.
    #[error(
        "{provider} is too far from f32: priors {:.5} (at most {}), values {:.5} (at most {})",
        distance.prior, bound.prior, distance.value, bound.value
    )]
    Differs {
        /// The provider.
        provider: Provider,
        /// Measured distance.
        distance: Distance,
        /// Largest allowed distance.
        bound: Bound,
    },
}

/// A file to load.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// The ONNX file.
    pub bytes: &'a [u8],
    /// Version of the checkpoint.
    pub version: &'a str,
    /// Training step.
    pub step: u64,
    /// Layout of its rows.
    pub layout: &'a RowLayout,
}

/// A file to load, and the names of its inputs and outputs.
#[derive(Debug)]
struct Task<'a> {
    file: File<'a>,
    contract: &'a Contract,
    /// The file with convolutions in 8-bit integers, once a session needed it.
    int8: OnceCell<Vec<u8>>,
}

/// Makes models of files, for a server: [`Loader`], or what a benchmark puts in its place.
pub trait Loads: std::fmt::Debug + Send + Sync {
    /// Loads a model from any source, with its own names of inputs and outputs. May block for some seconds.
    ///
    /// # Errors
    /// [`LoadError`] with the reason.
    fn load_from(&self, source: &str, file: File<'_>, contract: &Contract) -> Result<Model, LoadError>;

    /// Returns the memory that a model counts for, in bytes, by the length of its file.
    fn memory(&self, file_bytes: u64) -> u64;
}

impl Loads for Loader {
    fn load_from(&self, source: &str, file: File<'_>, contract: &Contract) -> Result<Model, LoadError> {
        Self::load_from(self, source, file, contract)
    }

    fn memory(&self, file_bytes: u64) -> u64 {
        Self::memory(self, file_bytes)
    }
}

/// Loads models with one provider, or with the fastest one. If the settings leave the number of sessions open, the first
/// model decides it by measurement.
#[derive(Debug)]
pub struct Loader {
    environment: Environment,
    settings: Settings,
    buckets: Buckets,
    asked_for: Option<Provider>,
    /// With `auto`: the available providers, the fastest first. Empty until they have been measured.
    ranking: Mutex<Vec<Provider>>,
    /// Measured speeds, if the settings leave the number of sessions open. Empty until they have been measured.
    speeds: Mutex<Vec<ThreadSpeed>>,
    numbers: VersionIds,
}

/// A model loaded by one provider.
struct Candidate {
    provider: Provider,
    runner: Box<dyn Runner>,
    distance: Distance,
    /// Best time for a batch of the largest size.
    time: Duration,
}

impl Candidate {
    /// Returns the plain CPU provider, the reference for the others.
    fn plain(runner: Box<dyn Runner>) -> Self {
        Self {
            provider: Provider::Cpu,
            runner,
            distance: Distance::NONE,
            time: Duration::MAX,
        }
    }

    /// Returns the candidate if it agrees with f32.
    fn checked(self, settings: &Settings) -> Result<Self, LoadError> {
        let bound = self.provider.bound_with(settings);
        if self.distance.is_within(bound) {
            return Ok(self);
        }
        Err(LoadError::Differs {
            provider: self.provider,
            distance: self.distance,
            bound,
        })
    }
}

impl Loader {
    /// Makes a loader for the provider `asked_for`. `None` chooses the fastest provider that agrees with f32.
    ///
    /// # Errors
    /// [`LoadError`] if the requested provider cannot run a small network on this machine.
    pub fn new(
        environment: Environment,
        settings: impl Into<Settings>,
        buckets: Buckets,
        asked_for: Option<Provider>,
    ) -> Result<Self, LoadError> {
        let loader = Self {
            environment,
            settings: settings.into(),
            buckets,
            asked_for,
            ranking: Mutex::new(Vec::new()),
            speeds: Mutex::new(Vec::new()),
            numbers: VersionIds::default(),
        };
        if let Some(provider) = asked_for {
            loader.try_out(provider)?;
        }
        Ok(loader)
    }

    /// Loads, checks and warms a model that Minuet made. Blocks for a tenth of a second to some seconds.
    ///
    /// # Errors
    /// [`LoadError`] with the reason.
    pub fn load(&self, file: File<'_>) -> Result<Model, LoadError> {
        self.load_from("", file, &Contract::default())
    }

    /// Loads a model from any source, with its own names of inputs and outputs. Otherwise like [`Loader::load`].
    ///
    /// # Errors
    /// [`LoadError`] with the reason.
    pub fn load_from(&self, source: &str, file: File<'_>, contract: &Contract) -> Result<Model, LoadError> {
        let task = &Task {
            file,
            contract,
            int8: OnceCell::new(),
        };
        let (plain, truth) = self.plain(task)?;
        let (provider, runner) = match self.asked_for {
            Some(Provider::Cpu) if !self.settings.fp16 && !self.settings.bind_always => {
                (Provider::Cpu, plain)
            }
            Some(provider) => {
                let candidate = self.candidate(provider, task, &truth)?;
                (provider, candidate.checked(&self.settings)?.runner)
            }
            None => self.choose(task, plain, &truth)?,
        };
        let runners = self.with_more_sessions(provider, runner, task)?;
        let sizes = self.prepared(provider);
        let runners = runners
            .into_iter()
            .map(|runner| warmed(runner, file.layout, &sizes));
        let runners = runners.collect::<Result<Vec<_>, _>>()?;
        let digest = checkpoints::version::sha256_hex(file.bytes);
        let info = ModelInfo {
            source: source.to_owned(),
            version: file.version.to_owned(),
            id: self.numbers.of(&contract.identity(&digest, file.layout)),
            digest,
            step: file.step,
            layout: file.layout.clone(),
            provider: provider.name_with(&self.settings),
            bytes: self.memory_on(provider, file.bytes.len() as u64),
            threads: runners.len(),
            speeds: self.speeds.lock().clone(),
        };
        let buckets = match varies(file.layout) {
            true => self.buckets.every_size(),
            false if provider.pads() => self.prepared(provider),
            false => self.buckets.fine(),
        };
        Ok(Model::new(info, buckets, runners))
    }

    /// Returns the memory that a model counts for, in bytes, by the length of its file: the weights for each time that it is
    /// compiled. Other memory of a provider depends on the batch size and not on the number of models.
    pub fn memory(&self, file_bytes: u64) -> u64 {
        let largest = |providers: &[Provider]| {
            providers
                .iter()
                .map(|&provider| self.memory_on(provider, file_bytes))
                .max()
                .unwrap_or(file_bytes)
        };
        match self.asked_for {
            Some(provider) => self.memory_on(provider, file_bytes),
            None => largest(&Provider::ALL),
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
        provider.fixed_sizes(self.prepared(provider).sizes())
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
        let batch = canary::batch(task.file.layout, self.buckets.largest());
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

    /// Runs a tiny network on `provider`, so that a missing provider is found at start.
    fn try_out(&self, provider: Provider) -> Result<(), LoadError> {
        let layout = tiny_layout();
        let shape = onnx::TowerShape::new(&layout, 1, 8);
        let weights = onnx::TowerWeights::random(&shape, 1);
        let metadata = onnx::Metadata {
            layout: layout.clone(),
            step: 0,
        };
        let bytes = onnx::build(&weights, &metadata, onnx::Input::Rows)
            .map_err(|error| RunError(error.to_string()))?;
        let file = File {
            bytes: &bytes,
            version: "",
            step: 0,
            layout: &layout,
        };
        let task = &Task {
            file,
            contract: &Contract::default(),
            int8: OnceCell::new(),
        };
        let (_, truth) = self.plain(task)?;
        self.candidate(provider, task, &truth)?
            .checked(&self.settings)
            .map(drop)
    }

    /// Loads the model with the plain CPU provider and runs the canary batch.
    fn plain(&self, task: &Task<'_>) -> Result<(Box<dyn Runner>, CanaryOutput), LoadError> {
        // The reference is the file itself, in its own precision.
        let settings = Settings::from(self.settings.threads);
        let mut runner = self.runner(Provider::Cpu, task, &settings)?;
        let truth = canary::run(runner.as_mut(), task.file.layout, canary::ROWS, false)?;
        Ok((runner, truth))
    }

    /// Loads the model with `provider` and measures its distance from `truth`.
    fn candidate(
        &self,
        provider: Provider,
        task: &Task<'_>,
        truth: &CanaryOutput,
    ) -> Result<Candidate, LoadError> {
        let mut runner = self.runner(provider, task, &self.settings)?;
        let (layout, mut distance) = (task.file.layout, Distance::NONE);
        for size in self.canary_sizes(provider, layout) {
            let found = canary::run(runner.as_mut(), layout, size, false)?;
            distance = distance.max(truth.distance(&found));
        }
        if runner.picks_legal() {
            let found = canary::run(runner.as_mut(), layout, canary::ROWS, true)?;
            distance = distance.max(truth.distance(&found));
        }
        Ok(Candidate {
            provider,
            runner,
            distance,
            time: Duration::MAX,
        })
    }

    /// Returns the batch sizes that reach every session of a runner: those with a session of their own, and one without.
    fn canary_sizes(&self, provider: Provider, layout: &RowLayout) -> Vec<usize> {
        let mut sizes = match varies(layout) {
            true => Vec::new(),
            false => self.fixed_sizes(provider),
        };
        let all = self.buckets.sizes().iter().rev();
        let is_free = |size: &&usize| **size <= canary::ROWS && !sizes.contains(size);
        let of_buckets = all.copied().find(|size| is_free(&size));
        let of_any = (1..=canary::ROWS).rev().find(|size| is_free(&size));
        let free = match sizes.contains(&canary::ROWS) {
            true => of_buckets.or(of_any),
            false => Some(canary::ROWS),
        };
        sizes.extend(free);
        sizes
    }

    /// Loads the model with `provider`.
    fn runner(
        &self,
        provider: Provider,
        task: &Task<'_>,
        settings: &Settings,
    ) -> Result<Box<dyn Runner>, LoadError> {
        let Task { file, contract, .. } = task;
        let mut bytes = Cow::Borrowed(file.bytes);
        if settings.fp16 {
            bytes = onnx::half::to_half(&bytes)?.into();
        }
        if varies(file.layout) {
            let session = provider.load_for_varying_shapes(&self.environment, settings, &bytes)?;
            return Ok(Box::new(ExpandedRunner::new(session, file.layout)?));
        }
        if provider == Provider::CpuInt8 {
            bytes = Cow::Borrowed(self.int8(task)?);
        }
        let is_bound = provider.is_gpu() || settings.bind_always;
        if is_bound {
            bytes = onnx::legal::with_legal_logits(&bytes, &contract.policy)?.into();
        }
        let shapes = self.shapes(task);
        let load = |fixed| provider.load(&self.environment, settings, &bytes, Some(shapes), fixed);
        let mut runner = SessionRunner::new(load(None)?, file.layout, contract)?;
        if is_bound {
            runner.bind(Memory::of(provider, settings))?;
        }
        if let Some(side) = runner.batch_symbol() {
            for size in self.fixed_sizes(provider) {
                runner.add_fixed(size, load(Some((&side, size)))?);
            }
        }
        Ok(Box::new(runner))
    }

    fn shapes(&self, task: &Task<'_>) -> Shapes {
        let layout = task.file.layout;
        Shapes {
            batch: self.buckets.largest(),
            row: task.contract.input.is_none().then(|| layout.row_len()).flatten(),
            actions: layout.actions as usize,
        }
    }

    /// Returns the file with convolutions in 8-bit integers. Their scales follow from the canary batch.
    fn int8<'a>(&self, task: &'a Task<'_>) -> Result<&'a [u8], LoadError> {
        if let Some(made) = task.int8.get() {
            return Ok(made);
        }
        let Task { file, contract, .. } = task;
        let probe = onnx::int8::with_ranges(file.bytes)?;
        let settings = Settings::from(self.settings.threads);
        let session = Provider::Cpu.load(
            &self.environment,
            &settings,
            &probe.file,
            Some(self.shapes(task)),
            None,
        )?;
        let mut runner = SessionRunner::new(session, file.layout, contract)?;
        let batch = canary::batch(file.layout, canary::ROWS);
        let ranges = runner.ranges(batch, &probe.tensors)?;
        let made = onnx::int8::to_int8(file.bytes, &ranges)?;
        Ok(task.int8.get_or_init(|| made))
    }

    /// Chooses the fastest provider that agrees with f32. The first call measures all providers; later calls use that order.
    fn choose(
        &self,
        task: &Task<'_>,
        plain: Box<dyn Runner>,
        truth: &CanaryOutput,
    ) -> Result<(Provider, Box<dyn Runner>), LoadError> {
        let ranking = self.ranking.lock().clone();
        // The order for models of varying shapes differs from that of other models, so it is measured each time.
        if ranking.is_empty() || varies(task.file.layout) {
            return self.measure_and_choose(task, plain, truth);
        }
        for provider in ranking
            .into_iter()
            .take_while(|&provider| provider != Provider::Cpu)
        {
            match self
                .candidate(provider, task, truth)
                .and_then(|candidate| candidate.checked(&self.settings))
            {
                Ok(candidate) => return Ok((provider, candidate.runner)),
                Err(error) => {
                    tracing::warn!(version = task.file.version, %provider, error = %service::chain(&error), "trying the next provider")
                }
            }
        }
        Ok((Provider::Cpu, plain))
    }

    fn measure_and_choose(
        &self,
        task: &Task<'_>,
        plain: Box<dyn Runner>,
        truth: &CanaryOutput,
    ) -> Result<(Provider, Box<dyn Runner>), LoadError> {
        let mut candidates = vec![Candidate::plain(plain)];
        for provider in Provider::ALL
            .into_iter()
            .filter(|&provider| provider != Provider::Cpu && provider.is_measured())
        {
            match self.candidate(provider, task, truth) {
                Ok(candidate) => candidates.push(candidate),
                Err(error) => {
                    tracing::info!(%provider, error = %service::chain(&error), "provider not measured")
                }
            }
        }
        if candidates.len() > 1 {
            self.measure(&mut candidates, task.file.layout)?;
        }
        candidates.sort_by_key(|candidate| candidate.time);
        if !varies(task.file.layout) {
            *self.ranking.lock() = candidates.iter().map(|candidate| candidate.provider).collect();
        }
        // The plain provider is among them and always agrees.
        let mut refused = None;
        for candidate in candidates {
            match candidate.checked(&self.settings) {
                Ok(chosen) => {
                    tracing::info!(provider = %chosen.provider, "provider chosen");
                    return Ok((chosen.provider, chosen.runner));
                }
                Err(error) => {
                    tracing::warn!(version = task.file.version, error = %service::chain(&error), "trying the next provider");
                    refused = Some(error);
                }
            }
        }
        Err(refused.unwrap_or_else(|| RunError("no provider was measured".into()).into()))
    }

    /// Times batches of the largest size, all candidates in turn, and logs the results.
    fn measure(&self, candidates: &mut [Candidate], layout: &RowLayout) -> Result<(), RunError> {
        let size = self.buckets.largest();
        let batch = canary::batch(layout, size);
        for candidate in candidates.iter_mut() {
            candidate.runner.run(batch.clone())?;
        }
        for _ in 0..ROUNDS {
            for candidate in candidates.iter_mut() {
                let (began, mut runs) = (Instant::now(), 0);
                while runs == 0 || began.elapsed() < ROUND {
                    candidate.runner.run(batch.clone())?;
                    runs += 1;
                }
                candidate.time = candidate.time.min(began.elapsed() / runs);
            }
        }
        for candidate in candidates {
            let rate = size as f64 / candidate.time.as_secs_f64();
            tracing::info!(
                provider = %candidate.provider,
                positions_per_second = rate.round() as u64,
                batch = size,
                prior_distance = format_args!("{:.5}", candidate.distance.prior),
                value_distance = format_args!("{:.5}", candidate.distance.value),
                "provider measured"
            );
        }
        Ok(())
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

/// True if rows differ in length, so that the inputs have many shapes.
fn varies(layout: &RowLayout) -> bool {
    layout.row_len().is_none()
}

/// Returns the layout of the tiny network that tries a provider out.
fn tiny_layout() -> RowLayout {
    RowLayout {
        game: "none".into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            entries: 4,
            planes: 2,
            sparse: vec![0, 1],
            constants: Vec::new(),
            ones: Vec::new(),
        }),
        actions: 8,
        mirrored_actions: false,
        policy_head: games::PolicyHead::Dense,
    }
}
