//! From a model's file to a model that is ready: loaded by the provider, checked, warmed.

use std::time::{Duration, Instant};

use games::RowLayout;
use ort::environment::Environment;
use parking_lot::Mutex;

use crate::{
    backend::{Backend, BackendError, Bound},
    buckets::Buckets,
    canary::{self, Distance, Opinion},
    model::{Model, ModelInfo},
    runner::{RunError, Runner as _},
    session::{ModelError, SessionRunner},
};

/// Rounds of the measurement; the best counts, so that other work on the machine does not.
const ROUNDS: usize = 3;
/// Shortest time of one round.
const ROUND: Duration = Duration::from_millis(60);

/// A model that is not served.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The provider cannot be had, or does not take the model.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The file is no such model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model cannot be executed.
    #[error("a first batch failed: {0}")]
    Run(#[from] RunError),
    /// The provider computes something else than plain f32.
    #[error(
        "{backend} is too far from f32: priors {:.5} (at most {}), values {:.5} (at most {})",
        distance.prior, bound.prior, distance.value, bound.value
    )]
    Differs {
        /// The provider.
        backend: Backend,
        /// How far it is.
        distance: Distance,
        /// How far it may be.
        bound: Bound,
    },
}

/// A file to be loaded.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// The ONNX file.
    pub bytes: &'a [u8],
    /// Its checkpoint's version.
    pub version: &'a str,
    /// Its training step.
    pub step: u64,
    /// What its rows mean.
    pub layout: &'a RowLayout,
}

/// Loads models.
#[derive(Debug)]
pub struct Loader {
    environment: Environment,
    threads: usize,
    buckets: Buckets,
    asked_for: Option<Backend>,
    /// With `auto`: the providers that this machine has, the fastest first, once they have been measured.
    ranking: Mutex<Vec<Backend>>,
}

/// A provider's runner.
struct Candidate {
    backend: Backend,
    runner: SessionRunner,
    distance: Distance,
    /// Best time for a largest batch.
    time: Duration,
}

impl Candidate {
    /// The plain CPU provider, with which the others are compared.
    fn plain(runner: SessionRunner) -> Self {
        Self {
            backend: Backend::Cpu,
            runner,
            distance: Distance {
                prior: 0.0,
                value: 0.0,
            },
            time: Duration::MAX,
        }
    }

    /// Itself, if it agrees with f32.
    fn checked(self) -> Result<Self, LoadError> {
        let bound = self.backend.bound();
        if self.distance.is_within(bound) {
            return Ok(self);
        }
        Err(LoadError::Differs {
            backend: self.backend,
            distance: self.distance,
            bound,
        })
    }
}

impl Loader {
    /// A loader for the provider `asked_for`, or (`None`) for the fastest that agrees with f32.
    ///
    /// # Errors
    /// [`BackendError`] where the provider asked for cannot run a small network here.
    pub fn new(
        environment: Environment,
        threads: usize,
        buckets: Buckets,
        asked_for: Option<Backend>,
    ) -> Result<Self, LoadError> {
        let loader = Self {
            environment,
            threads,
            buckets,
            asked_for,
            ranking: Mutex::new(Vec::new()),
        };
        if let Some(backend) = asked_for {
            loader.try_out(backend)?;
        }
        Ok(loader)
    }

    /// Loads, checks and warms a model. Takes from a tenth of a second to some seconds; call it where that harms nobody.
    ///
    /// # Errors
    /// [`LoadError`]; nothing is left behind.
    pub fn load(&self, file: File<'_>) -> Result<Model, LoadError> {
        let (plain, truth) = self.plain(file)?;
        let (backend, runner) = match self.asked_for {
            Some(Backend::Cpu) => (Backend::Cpu, plain),
            Some(backend) => (backend, self.candidate(backend, file, &truth)?.checked()?.runner),
            None => self.choose(file, plain, &truth)?,
        };
        let runner = self.warmed(runner, file.layout)?;
        let info = ModelInfo {
            version: file.version.to_owned(),
            step: file.step,
            layout: file.layout.clone(),
            provider: backend.name(),
        };
        Ok(Model::new(info, self.buckets.clone(), Box::new(runner)))
    }

    /// Runs a network of a few weights on `backend`, so that a provider that is not there is known at start.
    fn try_out(&self, backend: Backend) -> Result<(), LoadError> {
        let layout = tiny_layout();
        let shape = onnx::TowerShape::new(&layout, 1, 8);
        let weights = onnx::TowerWeights::random(&layout, &shape, 1);
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
        let (_, truth) = self.plain(file)?;
        self.candidate(backend, file, &truth)?.checked().map(drop)
    }

    /// The model on the plain CPU provider, and what it says about the canary batch.
    fn plain(&self, file: File<'_>) -> Result<(SessionRunner, Opinion), LoadError> {
        let session = Backend::Cpu.load(&self.environment, self.threads, file.bytes, None)?;
        let mut runner = SessionRunner::new(session, file.layout)?;
        let truth = opinion(&mut runner, file.layout)?;
        Ok((runner, truth))
    }

    /// The model on `backend`, and how far that is from `truth`.
    fn candidate(&self, backend: Backend, file: File<'_>, truth: &Opinion) -> Result<Candidate, LoadError> {
        let load = |size| backend.load(&self.environment, self.threads, file.bytes, size);
        let mut runner = SessionRunner::new(load(None)?, file.layout)?;
        for size in backend.fixed_sizes(self.buckets.sizes()) {
            runner.add_fixed(size, load(Some(size))?);
        }
        let distance = truth.distance(&opinion(&mut runner, file.layout)?);
        Ok(Candidate {
            backend,
            runner,
            distance,
            time: Duration::MAX,
        })
    }

    /// The fastest provider that agrees with f32: by measurement the first time, in the order found then ever after.
    fn choose(
        &self,
        file: File<'_>,
        plain: SessionRunner,
        truth: &Opinion,
    ) -> Result<(Backend, SessionRunner), LoadError> {
        let ranking = self.ranking.lock().clone();
        if ranking.is_empty() {
            return self.measure_and_choose(file, plain, truth);
        }
        for backend in ranking.into_iter().take_while(|&backend| backend != Backend::Cpu) {
            match self.candidate(backend, file, truth).and_then(Candidate::checked) {
                Ok(candidate) => return Ok((backend, candidate.runner)),
                Err(error) => {
                    tracing::warn!(version = file.version, %backend, "the next provider is taken: {error}")
                }
            }
        }
        Ok((Backend::Cpu, plain))
    }

    fn measure_and_choose(
        &self,
        file: File<'_>,
        plain: SessionRunner,
        truth: &Opinion,
    ) -> Result<(Backend, SessionRunner), LoadError> {
        let mut candidates = vec![Candidate::plain(plain)];
        for backend in Backend::ALL
            .into_iter()
            .filter(|&backend| backend != Backend::Cpu)
        {
            match self.candidate(backend, file, truth) {
                Ok(candidate) => candidates.push(candidate),
                Err(error) => tracing::info!(%backend, "not measured: {error}"),
            }
        }
        self.measure(&mut candidates, file.layout)?;
        candidates.sort_by_key(|candidate| candidate.time);
        *self.ranking.lock() = candidates.iter().map(|candidate| candidate.backend).collect();
        // The plain one is among them and agrees with itself.
        let mut refused = None;
        for candidate in candidates {
            match candidate.checked() {
                Ok(chosen) => {
                    tracing::info!(provider = %chosen.backend, "chosen");
                    return Ok((chosen.backend, chosen.runner));
                }
                Err(error) => {
                    tracing::warn!(version = file.version, "the next provider is taken: {error}");
                    refused = Some(error);
                }
            }
        }
        Err(refused.unwrap_or_else(|| RunError("no provider was measured".into()).into()))
    }

    /// Times largest batches, all candidates in turn, and says what it found.
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
                provider = %candidate.backend,
                positions_per_second = rate.round() as u64,
                batch = size,
                prior_distance = format_args!("{:.5}", candidate.distance.prior),
                value_distance = format_args!("{:.5}", candidate.distance.value),
                "measured"
            );
        }
        Ok(())
    }

    /// Runs one batch of every size, so that no request is the first of its shape.
    fn warmed(&self, mut runner: SessionRunner, layout: &RowLayout) -> Result<SessionRunner, RunError> {
        for &size in self.buckets.sizes() {
            runner.run(canary::batch(layout, size))?;
        }
        Ok(runner)
    }
}

fn opinion(runner: &mut SessionRunner, layout: &RowLayout) -> Result<Opinion, RunError> {
    let outputs = runner.run(canary::batch(layout, canary::ROWS))?;
    Opinion::new(outputs.as_ref(), layout)
}

fn tiny_layout() -> RowLayout {
    RowLayout {
        game: "none".into(),
        options: 0,
        entries: 4,
        planes: 2,
        sparse: vec![0, 1],
        constants: Vec::new(),
        ones: Vec::new(),
        actions: 8,
        mirrored_actions: false,
    }
}
