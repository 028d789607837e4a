//! One file in a session of one provider, in its precision, compared with the file itself in f32 on the CPU.

use std::{borrow::Cow, cell::OnceCell, time::Duration};

use config::Provider;
use games::{PlaneStack, RowForm, RowLayout};

use crate::{
    batch::Runner,
    canary::{self, CanaryOutput, Distance},
    file::ModelFile,
    loader::{LoadError, Loader},
    provider::{self, ProviderSettings, Shapes},
    session::{Contract, SessionRunner, expanded::ExpandedRunner},
};

/// A file to load, and the names of its inputs and outputs.
#[derive(Debug)]
pub(super) struct Task<'a> {
    pub(super) file: &'a ModelFile,
    pub(super) contract: &'a Contract,
    /// SHA-256 of the file, in hexadecimal.
    pub(super) digest: &'a str,
    /// The file with convolutions in 8-bit integers, once a session needed it.
    pub(super) int8: OnceCell<Vec<u8>>,
}

impl<'a> Task<'a> {
    pub(super) fn new(file: &'a ModelFile, contract: &'a Contract, digest: &'a str) -> Self {
        Self {
            file,
            contract,
            digest,
            int8: OnceCell::new(),
        }
    }
}

/// A model loaded by one provider.
pub(super) struct Candidate {
    pub(super) provider: Provider,
    pub(super) runner: Box<dyn Runner>,
    pub(super) distance: Distance,
    /// Best time for a batch of the largest size.
    pub(super) time: Duration,
}

impl Candidate {
    /// Returns the plain CPU provider, the reference for the others.
    pub(super) fn plain(runner: Box<dyn Runner>) -> Self {
        Self {
            provider: Provider::Cpu,
            runner,
            distance: Distance::NONE,
            time: Duration::MAX,
        }
    }

    /// Returns the candidate if it agrees with f32.
    pub(super) fn checked(self, settings: &ProviderSettings) -> Result<Self, LoadError> {
        let bound = provider::bound(self.provider, settings.fp16);
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
    /// Runs a tiny network with random weights on a provider, so that one that is missing, or does not compute in its own precision, is
    /// found at start. The outputs of a run's first network show neither: they are 0.
    pub(super) fn try_out(&self, provider: Provider) -> Result<(), LoadError> {
        let metadata = onnx::Metadata {
            layout: tiny_layout(),
            step: 0,
        };
        let bytes = onnx::random::model(&metadata, 1, 8, 1)
            .map_err(LoadError::of_conversion("the provider's test"))?;
        let file = ModelFile {
            bytes: bytes.into(),
            version: String::new(),
            step: 0,
            layout: metadata.layout,
            search: None,
        };
        let contract = Contract::default();
        let task = &Task::new(&file, &contract, "");
        let (_, truth) = self.plain(task)?;
        let candidate = self.candidate(provider, task, &truth)?;
        provider::check_precision(provider, candidate.distance)?;
        candidate.checked(&self.settings).map(drop)
    }

    /// Loads the model with the plain CPU provider and runs the canary batch.
    pub(super) fn plain(&self, task: &Task<'_>) -> Result<(Box<dyn Runner>, CanaryOutput), LoadError> {
        // The reference is the file itself, in its own precision.
        let settings = ProviderSettings::from(self.settings.threads);
        let mut runner = self.runner(Provider::Cpu, task, &settings)?;
        let truth = canary::run(runner.as_mut(), &task.file.layout, canary::ROWS, false)?;
        Ok((runner, truth))
    }

    /// Loads the model with `provider` and measures its distance from `truth`.
    pub(super) fn candidate(
        &self,
        provider: Provider,
        task: &Task<'_>,
        truth: &CanaryOutput,
    ) -> Result<Candidate, LoadError> {
        let mut runner = self.runner(provider, task, &self.settings)?;
        let (layout, mut distance) = (&task.file.layout, Distance::NONE);
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
    pub(super) fn runner(
        &self,
        provider: Provider,
        task: &Task<'_>,
        settings: &ProviderSettings,
    ) -> Result<Box<dyn Runner>, LoadError> {
        let Task { file, contract, .. } = task;
        let mut bytes = Cow::Borrowed(&file.bytes[..]);
        if settings.fp16 {
            let failed =
                LoadError::of_conversion("inference.fp16: the model cannot be converted to half precision");
            bytes = onnx::half::to_half(&bytes).map_err(failed)?.into();
        }
        if varies(&file.layout) {
            let session = provider::load_for_varying_shapes(provider, &self.environment, settings, &bytes)?;
            return Ok(Box::new(ExpandedRunner::new(session, &file.layout)?));
        }
        if provider == Provider::CpuInt8 {
            bytes = Cow::Borrowed(self.int8(task)?);
        }
        let is_bound = provider.is_gpu() || settings.bind_always;
        if is_bound {
            let failed = LoadError::of_conversion("the model cannot pick the legal logits");
            bytes = onnx::legal::with_legal_logits(&bytes, &contract.policy)
                .map_err(failed)?
                .into();
        }
        let shapes = self.shapes(task);
        let load = |fixed| provider::load(provider, &self.environment, settings, &bytes, Some(shapes), fixed);
        let mut runner = SessionRunner::new(load(None)?, &file.layout, contract)?;
        if is_bound {
            runner.bind(provider.is_gpu().then_some(settings.device))?;
        }
        if let Some(side) = runner.batch_symbol() {
            for size in self.fixed_sizes(provider) {
                runner.add_fixed(size, load(Some((&side, size)))?);
            }
        }
        Ok(Box::new(runner))
    }

    pub(super) fn shapes(&self, task: &Task<'_>) -> Shapes {
        let layout = &task.file.layout;
        Shapes {
            batch: self.buckets.largest(),
            row: task.contract.input.is_none().then(|| layout.row_len()).flatten(),
            actions: layout.actions as usize,
        }
    }
}

/// True if rows differ in length, so that the inputs have many shapes.
pub(super) fn varies(layout: &RowLayout) -> bool {
    layout.row_len().is_none()
}

/// Returns the layout of the tiny network that tries a provider out.
fn tiny_layout() -> RowLayout {
    RowLayout {
        game: "none".into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            height: 8,
            width: 8,
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
