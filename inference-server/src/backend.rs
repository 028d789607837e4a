//! What can run a model: ONNX Runtime's providers in the settings that were measured to be best.

use std::fmt;

use ort::{
    environment::Environment,
    ep::{
        self, ArbitrarilyConfigurableExecutionProvider as _, ExecutionProvider as _,
        ExecutionProviderDispatch,
    },
    session::{Session, builder::SessionBuilder},
};
use service::config::Provider;

/// A provider in one precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// ONNX Runtime's default CPU provider, f32: the one the others are compared with.
    Cpu,
    /// OpenVINO on the CPU, f32.
    OpenvinoF32,
    /// OpenVINO on the CPU, bf16: eight times as fast where the CPU has AMX units.
    OpenvinoBf16,
    /// An NVIDIA GPU, f32.
    Cuda,
}

/// A provider that cannot be had here.
#[derive(Debug, thiserror::Error)]
#[error("the provider {backend} cannot be had here: {reason}")]
pub struct BackendError {
    /// Which.
    pub backend: Backend,
    /// Why not.
    pub reason: String,
}

/// How far a backend may be from plain f32, on average over the positions of the canary batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Total variation distance of the priors, in [0, 1].
    pub prior: f32,
    /// Difference of the values, in [0, 2].
    pub value: f32,
}

impl Backend {
    /// All of them, the plainest first.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::OpenvinoF32, Self::OpenvinoBf16, Self::Cuda];

    /// The backend a configuration asks for; `None` for `auto`.
    pub fn asked_for(provider: Provider) -> Option<Self> {
        match provider {
            Provider::Auto => None,
            Provider::Cpu => Some(Self::Cpu),
            Provider::OpenvinoF32 => Some(Self::OpenvinoF32),
            Provider::OpenvinoBf16 => Some(Self::OpenvinoBf16),
            Provider::Cuda => Some(Self::Cuda),
        }
    }

    /// Its name in configuration, replies and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OpenvinoF32 => "openvino-f32",
            Self::OpenvinoBf16 => "openvino-bf16",
            Self::Cuda => "cuda",
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
            Self::Cuda => Bound {
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
    /// [`BackendError`] saying what is missing.
    pub fn check(self) -> Result<(), BackendError> {
        let missing = |reason: &str| {
            Err(BackendError {
                backend: self,
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
            Self::Cuda if !has(ep::CUDA::is_available()) => missing(
                "this onnx runtime was built without CUDA (name one that has it in inference.runtime)",
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
            Self::Cpu | Self::Cuda => Vec::new(),
        }
    }

    /// Whether batches are padded up to a few sizes. The default CPU provider takes any size at the same speed, so that
    /// padding would cost what it adds; the others choose kernels, or compile, for each shape they see.
    pub fn pads(self) -> bool {
        match self {
            Self::Cpu => false,
            Self::OpenvinoF32 | Self::OpenvinoBf16 | Self::Cuda => true,
        }
    }

    /// Loads a model whose inputs have new shapes in nearly every batch.
    ///
    /// # Errors
    /// [`BackendError`] where the provider cannot be had, or is not made for that.
    pub fn load_for_varying_shapes(
        self,
        environment: &Environment,
        threads: usize,
        file: &[u8],
    ) -> Result<Session, BackendError> {
        self.check()?;
        let refused = |reason: String| BackendError {
            backend: self,
            reason,
        };
        if matches!(self, Self::OpenvinoF32 | Self::OpenvinoBf16) {
            return Err(refused(
                "OpenVINO compiles a model anew for each shape, and clans come in ever new ones".into(),
            ));
        }
        let load = || -> ort::Result<Session> {
            // A plan of the memory is kept for each shape that was ever seen: without end, here.
            let mut builder = self.builder(environment, threads)?.with_memory_pattern(false)?;
            builder.commit_from_memory(file)
        };
        load().map_err(|error| refused(first_line(&error.to_string())))
    }

    /// Loads a model for batches of any size, or of one size only: `fixed` is what the model calls its free side, and that
    /// size.
    ///
    /// # Errors
    /// [`BackendError`] where the provider cannot be had, or does not take this model.
    pub fn load(
        self,
        environment: &Environment,
        threads: usize,
        file: &[u8],
        fixed: Option<(&str, usize)>,
    ) -> Result<Session, BackendError> {
        self.check()?;
        let refused = |error: ort::Error| BackendError {
            backend: self,
            reason: first_line(&error.to_string()),
        };
        let mut builder = self.builder(environment, threads).map_err(refused)?;
        if let Some((side, size)) = fixed {
            builder = builder
                .with_dimension_override(side, size as i64)
                .map_err(|error| refused(error.into()))?;
        }
        builder.commit_from_memory(file).map_err(refused)
    }

    fn builder(self, environment: &Environment, threads: usize) -> ort::Result<SessionBuilder> {
        let mut builder = Session::builder(environment)?
            .with_intra_threads(threads)?
            .with_inter_threads(1)?
            // Idle threads that spin take the cores of actors.
            .with_intra_op_spinning(false)?;
        if let Some(provider) = self.provider(threads) {
            builder = builder.with_execution_providers([provider.error_on_failure()])?;
        }
        if matches!(self, Self::OpenvinoF32 | Self::OpenvinoBf16) {
            // A node that OpenVINO does not take would silently run elsewhere, in another precision.
            builder = builder.with_disable_cpu_fallback()?;
        }
        Ok(builder)
    }

    fn provider(self, threads: usize) -> Option<ExecutionProviderDispatch> {
        match self {
            Self::Cpu => None,
            Self::OpenvinoF32 => Some(openvino("f32", threads)),
            Self::OpenvinoBf16 => Some(openvino("bf16", threads)),
            Self::Cuda => Some(
                ep::CUDA::default()
                    .with_conv_algorithm_search(ep::cuda::ConvAlgorithmSearch::Exhaustive)
                    .build(),
            ),
        }
    }
}

impl fmt::Display for Backend {
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
