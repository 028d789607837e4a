//! What can run a model: ONNX Runtime's providers in the settings that were measured to be best.

use std::{fmt, path::PathBuf};

use config::InferenceConfig;
use onnx::{legal::LEGAL, model::ROWS};
use ort::{
    environment::Environment,
    ep::{
        self, ArbitrarilyConfigurableExecutionProvider as _, ExecutionProvider as _,
        ExecutionProviderDispatch,
    },
    session::{Session, builder::SessionBuilder},
};

/// Legal actions that few positions exceed.
const USUAL_LEGAL: usize = 64;

/// A provider in one precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// ONNX Runtime's default CPU provider, f32: the one the others are compared with.
    Cpu,
    /// OpenVINO on the CPU, f32.
    OpenvinoF32,
    /// OpenVINO on the CPU, bf16: eight times as fast where the CPU has AMX units.
    OpenvinoBf16,
    /// An NVIDIA GPU, f32.
    Cuda,
    /// The same, compiled by TensorRT; what that does not take runs as with [`Provider::Cuda`].
    Tensorrt,
}

/// How models are run, whatever runs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Threads for one batch, where the CPU computes.
    pub threads: usize,
    /// Which GPU, from 0.
    pub device: u32,
    /// Whether models are converted to half precision.
    pub fp16: bool,
    /// Folder for TensorRT's engines; empty: none are kept.
    pub engine_cache: PathBuf,
    /// Whether batches are bound to memory, and legal logits picked by the model, on the CPU's providers too, which gains
    /// nothing there: the same code runs then as with a GPU.
    pub bind_always: bool,
}

impl From<usize> for Settings {
    /// On the CPU, with so many threads.
    fn from(threads: usize) -> Self {
        Self {
            threads,
            ..Self::default()
        }
    }
}

impl From<&InferenceConfig> for Settings {
    /// What a server is configured with.
    fn from(config: &InferenceConfig) -> Self {
        Self {
            threads: config.threads,
            device: config.device,
            fp16: config.fp16,
            engine_cache: config.engine_cache.clone(),
            bind_always: false,
        }
    }
}

/// What a model for a stack of planes is given, for providers that must know before they compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shapes {
    /// Largest batch.
    pub batch: usize,
    /// Length of a row; `None` for a model that takes planes.
    pub row: Option<usize>,
    /// Actions, and so the most that can be legal.
    pub actions: usize,
}

/// A provider that cannot be had here.
#[derive(Debug, thiserror::Error)]
#[error("the provider {provider} cannot be had here: {reason}")]
pub struct ProviderError {
    /// Which.
    pub provider: Provider,
    /// Why not.
    pub reason: String,
}

/// How far a provider may be from plain f32, on average over the positions of the canary batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Total variation distance of the priors, in [0, 1].
    pub prior: f32,
    /// Difference of the values, in [0, 2].
    pub value: f32,
}

impl Provider {
    /// All of them, the plainest first.
    pub const ALL: [Self; 5] = [
        Self::Cpu,
        Self::OpenvinoF32,
        Self::OpenvinoBf16,
        Self::Cuda,
        Self::Tensorrt,
    ];

    /// The provider a configuration asks for; `None` for `auto`.
    pub fn asked_for(provider: config::Provider) -> Option<Self> {
        match provider {
            config::Provider::Auto => None,
            config::Provider::Cpu => Some(Self::Cpu),
            config::Provider::OpenvinoF32 => Some(Self::OpenvinoF32),
            config::Provider::OpenvinoBf16 => Some(Self::OpenvinoBf16),
            config::Provider::Cuda => Some(Self::Cuda),
            config::Provider::Tensorrt => Some(Self::Tensorrt),
        }
    }

    /// Its name in configuration, replies and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OpenvinoF32 => "openvino-f32",
            Self::OpenvinoBf16 => "openvino-bf16",
            Self::Cuda => "cuda",
            Self::Tensorrt => "tensorrt",
        }
    }

    /// The same where models are converted to half precision.
    pub fn name_with(self, settings: &Settings) -> &'static str {
        match (self, settings.fp16) {
            (Self::Cpu, true) => "cpu-fp16",
            (Self::Cuda, true) => "cuda-fp16",
            (Self::Tensorrt, true) => "tensorrt-fp16",
            _ => self.name(),
        }
    }

    /// Whether it computes on a GPU.
    pub fn is_gpu(self) -> bool {
        matches!(self, Self::Cuda | Self::Tensorrt)
    }

    /// Whether `auto` measures it. TensorRT builds engines for minutes, so it must be asked for.
    pub fn is_measured(self) -> bool {
        self != Self::Tensorrt
    }

    /// The same where models are converted to half precision, which has 11 bits as TF32 has, wherever it is computed.
    pub fn bound_with(self, settings: &Settings) -> Bound {
        match settings.fp16 {
            true => Self::Cuda.bound(),
            false => self.bound(),
        }
    }

    /// How far it may be from plain f32. bf16 has 8 bits of mantissa, and the GPU's convolutions may use TF32 (10 bits):
    /// both stay below a hundredth, which a search does not notice. A broken provider is off by tenths.
    pub fn bound(self) -> Bound {
        match self {
            Self::Cpu | Self::OpenvinoF32 => Bound {
                prior: 1e-3,
                value: 1e-3,
            },
            Self::Cuda | Self::Tensorrt => Bound {
                prior: 0.01,
                value: 0.01,
            },
            Self::OpenvinoBf16 => Bound {
                prior: 0.03,
                value: 0.03,
            },
        }
    }

    /// Whether this machine and this runtime have it.
    ///
    /// # Errors
    /// [`ProviderError`] saying what is missing.
    pub fn check(self) -> Result<(), ProviderError> {
        let missing = |reason: &str| {
            Err(ProviderError {
                provider: self,
                reason: reason.into(),
            })
        };
        let has = |answer: ort::Result<bool>| answer.unwrap_or(false);
        match self {
            Self::Cpu => Ok(()),
            Self::OpenvinoF32 | Self::OpenvinoBf16 if !has(ep::OpenVINO::is_available()) => missing(
                "this onnx runtime was built without OpenVINO (scripts/fetch_libraries.py fetches one that has it)",
            ),
            Self::OpenvinoBf16 if !has_bf16_units() => {
                missing("this CPU has no bf16 units (avx512_bf16), it would compute in f32")
            }
            Self::Cuda | Self::Tensorrt if !has(ep::CUDA::is_available()) => missing(
                "this onnx runtime was built without CUDA (name one that has it in inference.runtime)",
            ),
            Self::Tensorrt if !has(ep::TensorRT::is_available()) => missing(
                "this onnx runtime was built without TensorRT (name one that has it in inference.runtime)",
            ),
            _ => Ok(()),
        }
    }

    /// Of these batch sizes (ascending) those for which the model is compiled apart. OpenVINO gains 6–9 % that way at a
    /// constant size and 20 % where sizes alternate; each costs its time to load and a copy of the weights, so it is
    /// done for the sizes that busy times have.
    pub fn fixed_sizes(self, sizes: &[usize]) -> Vec<usize> {
        let largest = sizes.last().copied().unwrap_or_default();
        match self {
            Self::OpenvinoF32 | Self::OpenvinoBf16 => sizes
                .iter()
                .copied()
                .filter(|&size| size == largest || 2 * size == largest)
                .collect(),
            Self::Cpu | Self::Cuda | Self::Tensorrt => Vec::new(),
        }
    }

    /// Whether batches are padded up to a few sizes. The default CPU provider takes any size at the same speed, so that
    /// padding would cost what it adds; the others choose kernels, or compile, for each shape they see.
    pub fn pads(self) -> bool {
        match self {
            Self::Cpu => false,
            Self::OpenvinoF32 | Self::OpenvinoBf16 | Self::Cuda | Self::Tensorrt => true,
        }
    }

    /// Loads a model whose inputs have new shapes in nearly every batch.
    ///
    /// # Errors
    /// [`ProviderError`] where the provider cannot be had, or is not made for that.
    pub fn load_for_varying_shapes(
        self,
        environment: &Environment,
        settings: &Settings,
        file: &[u8],
    ) -> Result<Session, ProviderError> {
        self.check()?;
        let refused = |reason: String| ProviderError {
            provider: self,
            reason,
        };
        if matches!(self, Self::OpenvinoF32 | Self::OpenvinoBf16 | Self::Tensorrt) {
            return Err(refused(
                "it compiles a model anew for each shape, and clans come in ever new ones".into(),
            ));
        }
        let load = || -> ort::Result<Session> {
            // A plan of the memory is kept for each shape that was ever seen: without end, here.
            let mut builder = self
                .builder(environment, settings, None)?
                .with_memory_pattern(false)?;
            builder.commit_from_memory(file)
        };
        load().map_err(|error| refused(first_line(&error.to_string())))
    }

    /// Loads a model for batches of any size up to those of `shapes`, or of one size only: `fixed` is what the model calls its
    /// free side, and that size.
    ///
    /// # Errors
    /// [`ProviderError`] where the provider cannot be had, or does not take this model.
    pub fn load(
        self,
        environment: &Environment,
        settings: &Settings,
        file: &[u8],
        shapes: Option<Shapes>,
        fixed: Option<(&str, usize)>,
    ) -> Result<Session, ProviderError> {
        self.check()?;
        let load = |takes_all: bool| -> ort::Result<Session> {
            let mut builder = self.builder(environment, settings, shapes)?;
            if takes_all {
                // A node that the provider does not take would silently run elsewhere, slower or in another precision.
                builder = builder.with_disable_cpu_fallback()?;
            }
            if let Some((side, size)) = fixed {
                builder = builder.with_dimension_override(side, size as i64)?;
            }
            builder.commit_from_memory(file)
        };
        let loaded = match self {
            Self::Cpu => load(false),
            Self::OpenvinoF32 | Self::OpenvinoBf16 => load(true),
            // What computes shapes may be put on the CPU even where the GPU could do it: that is said, and no error.
            Self::Cuda | Self::Tensorrt => load(true).or_else(|error| {
                let session = load(false)?;
                let reason = first_line(&error.to_string());
                tracing::warn!(provider = %self, reason, "parts of the model run on the CPU");
                Ok(session)
            }),
        };
        loaded.map_err(|error| ProviderError {
            provider: self,
            reason: first_line(&error.to_string()),
        })
    }

    fn builder(
        self,
        environment: &Environment,
        settings: &Settings,
        shapes: Option<Shapes>,
    ) -> ort::Result<SessionBuilder> {
        let mut builder = Session::builder(environment)?
            .with_intra_threads(settings.threads)?
            .with_inter_threads(1)?
            // Idle threads that spin take the cores of actors.
            .with_intra_op_spinning(false)?;
        let providers: Vec<ExecutionProviderDispatch> = self
            .providers(settings, shapes)
            .into_iter()
            .map(ExecutionProviderDispatch::error_on_failure)
            .collect();
        if !providers.is_empty() {
            builder = builder.with_execution_providers(providers)?;
        }
        Ok(builder)
    }

    /// The providers to register, the preferred first.
    fn providers(self, settings: &Settings, shapes: Option<Shapes>) -> Vec<ExecutionProviderDispatch> {
        let threads = settings.threads;
        match self {
            Self::Cpu => Vec::new(),
            Self::OpenvinoF32 => vec![openvino("f32", threads)],
            Self::OpenvinoBf16 => vec![openvino("bf16", threads)],
            Self::Cuda => vec![cuda(settings)],
            Self::Tensorrt => vec![tensorrt(settings, shapes), cuda(settings)],
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

fn openvino(precision: &str, threads: usize) -> ExecutionProviderDispatch {
    let settings = serde_json::json!({"CPU": {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads.to_string(),
        "NUM_STREAMS": "1",
    }});
    ep::OpenVINO::default()
        .with_device_type("CPU")
        .with_arbitrary_config("load_config", settings)
        .build()
}

fn cuda(settings: &Settings) -> ExecutionProviderDispatch {
    ep::CUDA::default()
        .with_device_id(settings.device as i32)
        .with_conv_algorithm_search(ep::cuda::ConvAlgorithmSearch::Exhaustive)
        .build()
}

fn tensorrt(settings: &Settings, shapes: Option<Shapes>) -> ExecutionProviderDispatch {
    let mut provider = ep::TensorRT::default()
        .with_device_id(settings.device as i32)
        .with_fp16(settings.fp16);
    if !settings.engine_cache.as_os_str().is_empty() {
        let folder = settings.engine_cache.display();
        provider = provider
            .with_engine_cache(true)
            .with_engine_cache_path(&folder)
            .with_timing_cache(true)
            .with_timing_cache_path(&folder);
    }
    if let Some([least, usual, most]) = shapes.and_then(Shapes::profile) {
        // Without them an engine is built anew whenever a batch is larger than those before.
        provider = provider
            .with_profile_min_shapes(least)
            .with_profile_opt_shapes(usual)
            .with_profile_max_shapes(most);
    }
    provider.build()
}

impl Shapes {
    /// Smallest, usual and largest shapes of the inputs as TensorRT's provider reads them. `None` for a model that takes
    /// planes, whose input may be called anything.
    fn profile(self) -> Option<[String; 3]> {
        let row = self.row?;
        let of = |batch: usize, legal: usize| format!("{ROWS}:{batch}x{row},{LEGAL}:{batch}x{legal}");
        Some([
            of(1, 1),
            of(self.batch, USUAL_LEGAL.min(self.actions)),
            of(self.batch, self.actions),
        ])
    }
}

/// Whether bf16 is faster than f32 here. AMX units come with this feature too.
fn has_bf16_units() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// ONNX Runtime's messages can be pages long.
pub(crate) fn first_line(message: &str) -> String {
    message
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(400)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensorrt_is_told_every_shape_there_is() {
        let shapes = Shapes {
            batch: 512,
            row: Some(38),
            actions: 132,
        };
        assert_eq!(
            shapes.profile().unwrap(),
            [
                "indices:1x38,legal_actions:1x1",
                "indices:512x38,legal_actions:512x64",
                "indices:512x38,legal_actions:512x132"
            ]
        );
        assert_eq!(Shapes { row: None, ..shapes }.profile(), None);
    }
}
