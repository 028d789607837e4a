//! Abilities of ONNX Runtime's execution providers, and the settings that measured best.

use std::path::PathBuf;

use config::{InferenceConfig, Provider};
use onnx::{legal::LEGAL, model::ROWS};
use ort::{
    environment::Environment,
    ep::{
        self, ArbitrarilyConfigurableExecutionProvider as _, ExecutionProvider as _,
        ExecutionProviderDispatch,
    },
    session::{Session, builder::SessionBuilder},
};

use crate::canary::Distance;

/// Largest distance between two evaluations of a network in f32. In bf16 a network is 30 times as far from f32.
const SAME: f32 = 1e-5;

/// Number of legal actions that few positions exceed.
const USUAL_LEGAL: usize = 64;

/// Settings that apply to every provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSettings {
    /// Threads that compute one batch on the CPU, at least one.
    pub threads: usize,
    /// Number of batches that the CPU computes at the same time, each with a session of its own; 0: the loader measures how
    /// many are fastest. A GPU computes one batch at a time.
    pub sessions: usize,
    /// Index of the GPU, from 0.
    pub device: u32,
    /// True to convert models to half precision.
    pub fp16: bool,
    /// Folder for TensorRT's engines. Empty: engines are not kept.
    pub engine_cache: PathBuf,
    /// True to bind batches to memory and let the model pick the legal logits on the CPU too. That gains nothing there,
    /// but tests run the code path of a GPU.
    pub bind_always: bool,
}

impl From<usize> for ProviderSettings {
    /// Makes settings for the CPU: one batch at a time, computed by this number of threads.
    fn from(threads: usize) -> Self {
        Self {
            threads,
            sessions: 1,
            device: 0,
            fp16: false,
            engine_cache: PathBuf::new(),
            bind_always: false,
        }
    }
}

impl From<&InferenceConfig> for ProviderSettings {
    /// Takes the settings of `[inference]` in the configuration.
    fn from(config: &InferenceConfig) -> Self {
        Self {
            threads: 1,
            sessions: config.threads,
            device: config.device,
            fp16: config.fp16,
            engine_cache: config.engine_cache.clone(),
            bind_always: false,
        }
    }
}

/// Shapes of a model's inputs, for providers that must know them before they compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shapes {
    /// Largest batch.
    pub batch: usize,
    /// Length of a row. `None` for a model that takes planes.
    pub row: Option<usize>,
    /// Number of actions, the largest number of legal actions.
    pub actions: usize,
}

/// Error: a provider is not available, or does not take a model.
#[derive(Debug, thiserror::Error)]
#[error("the provider {provider} cannot be used here: {reason}")]
pub struct ProviderError {
    /// The provider.
    pub provider: Provider,
    /// Reason.
    pub reason: String,
}

/// Returns the name in replies and metrics, with the precision if models are converted to half precision.
pub fn name_with(provider: Provider, settings: &ProviderSettings) -> &'static str {
    match (provider, settings.fp16) {
        (Provider::Cpu, true) => "cpu-fp16",
        (Provider::Cuda, true) => "cuda-fp16",
        (Provider::Tensorrt, true) => "tensorrt-fp16",
        _ => provider.name(),
    }
}

/// Returns the largest allowed distance of a provider's outputs from f32 ([`Distance`]), for priors and for values. bf16 has 8 bits of
/// mantissa, and a GPU's convolutions may use TF32 (10 bits). Both stay below 0.01, which a search does not notice. Half precision
/// (`fp16`) has 11 bits, so the bound of a GPU applies. With 8-bit integers, trained networks are 0.004 to 0.023 off. A broken
/// provider is off by tenths.
pub fn bound(provider: Provider, fp16: bool) -> f32 {
    match provider {
        _ if fp16 => 0.01,
        Provider::Auto | Provider::Cpu | Provider::OpenvinoF32 => 1e-3,
        Provider::Cuda | Provider::Tensorrt => 0.01,
        Provider::OpenvinoBf16 => 0.03,
        Provider::CpuInt8 => 0.05,
    }
}

/// Checks that a provider with these outputs computes in its own precision. On a CPU without bf16 units OpenVINO computes in f32.
///
/// # Errors
/// [`ProviderError`] if the outputs are those of f32.
pub fn check_precision(provider: Provider, distance: Distance) -> Result<(), ProviderError> {
    match provider {
        Provider::OpenvinoBf16 if distance.is_within(SAME) => Err(ProviderError {
            provider,
            reason: "this CPU has no bf16 units: OpenVINO computes in f32".into(),
        }),
        _ => Ok(()),
    }
}

/// Checks that this machine and the loaded runtime have the provider.
///
/// # Errors
/// [`ProviderError`] that names what is missing.
pub fn check(provider: Provider) -> Result<(), ProviderError> {
    let missing = |reason: &str| {
        Err(ProviderError {
            provider,
            reason: reason.into(),
        })
    };
    let has = |answer: ort::Result<bool>| answer.unwrap_or(false);
    match provider {
        Provider::Auto | Provider::Cpu | Provider::CpuInt8 => Ok(()),
        Provider::OpenvinoF32 | Provider::OpenvinoBf16 if !has(ep::OpenVINO::is_available()) => missing(
            "this onnx runtime was built without OpenVINO (scripts/fetch_libraries.py fetches one that has it)",
        ),
        Provider::Cuda | Provider::Tensorrt if !has(ep::CUDA::is_available()) => {
            missing("this onnx runtime was built without CUDA (name one that has it in ORT_DYLIB_PATH)")
        }
        Provider::Tensorrt if !has(ep::TensorRT::is_available()) => {
            missing("this onnx runtime was built without TensorRT (name one that has it in ORT_DYLIB_PATH)")
        }
        _ => Ok(()),
    }
}

/// Returns the batch sizes, out of `sizes` (ascending), that have a session of their own. OpenVINO gains 6–9 % that way
/// at a constant size and 20 % with alternating sizes. Each costs loading time and a copy of the weights, so only
/// the sizes of busy times have one. With CUDA all have one: a session whose batches change in size plans its convolutions
/// anew each time, which took 18 to 36 ms on an H200, as long as ten batches.
pub fn fixed_sizes(provider: Provider, sizes: &[usize]) -> Vec<usize> {
    let largest = sizes.last().copied().unwrap_or_default();
    match provider {
        Provider::OpenvinoF32 | Provider::OpenvinoBf16 => sizes
            .iter()
            .copied()
            .filter(|&size| size == largest || 2 * size == largest)
            .collect(),
        Provider::Cuda => sizes.to_vec(),
        Provider::Auto | Provider::Cpu | Provider::CpuInt8 | Provider::Tensorrt => Vec::new(),
    }
}

/// True if batches are padded to a few sizes. The default CPU provider takes any size at the same speed, so padding
/// would only cost time. The others choose kernels, or compile, for each shape.
pub fn pads(provider: Provider) -> bool {
    !matches!(provider, Provider::Auto | Provider::Cpu | Provider::CpuInt8)
}

/// Loads a model whose inputs have a new shape in nearly every batch.
///
/// # Errors
/// [`ProviderError`] if the provider is not available or compiles a model for each shape.
pub fn load_for_varying_shapes(
    provider: Provider,
    environment: &Environment,
    settings: &ProviderSettings,
    file: &[u8],
) -> Result<Session, ProviderError> {
    check(provider)?;
    let refused = |reason: String| ProviderError { provider, reason };
    if provider == Provider::CpuInt8 {
        return Err(refused("8-bit integers are for networks over planes".into()));
    }
    if matches!(
        provider,
        Provider::OpenvinoF32 | Provider::OpenvinoBf16 | Provider::Tensorrt
    ) {
        return Err(refused(
            "it compiles a model anew for each shape, and these inputs have ever new shapes".into(),
        ));
    }
    let load = || -> ort::Result<Session> {
        // Memory patterns would be kept for every shape ever seen.
        let mut builder = builder(provider, environment, settings, None)?.with_memory_pattern(false)?;
        builder.commit_from_memory(file)
    };
    load().map_err(|error| refused(first_line(&error.to_string())))
}

/// Loads a model for batches of any size up to `shapes.batch`. `fixed` names the model's batch dimension and the only
/// size to compile for.
///
/// # Errors
/// [`ProviderError`] if the provider is not available or does not take the model.
pub fn load(
    provider: Provider,
    environment: &Environment,
    settings: &ProviderSettings,
    file: &[u8],
    shapes: Option<Shapes>,
    fixed: Option<(&str, usize)>,
) -> Result<Session, ProviderError> {
    check(provider)?;
    let load = |takes_all: bool| -> ort::Result<Session> {
        let mut builder = builder(provider, environment, settings, shapes)?;
        if takes_all {
            // A node that the provider does not take must not silently run elsewhere.
            builder = builder.with_disable_cpu_fallback()?;
        }
        if let Some((side, size)) = fixed {
            builder = builder.with_dimension_override(side, size as i64)?;
        }
        builder.commit_from_memory(file)
    };
    let loaded = match provider {
        Provider::Auto | Provider::Cpu | Provider::CpuInt8 => load(false),
        Provider::OpenvinoF32 | Provider::OpenvinoBf16 => load(true),
        // Nodes that compute shapes may run on the CPU: that gives a warning, not an error.
        Provider::Cuda | Provider::Tensorrt => load(true).or_else(|error| {
            let session = load(false)?;
            let reason = first_line(&error.to_string());
            tracing::warn!(%provider, reason, "parts of the model run on the CPU");
            Ok(session)
        }),
    };
    loaded.map_err(|error| ProviderError {
        provider,
        reason: first_line(&error.to_string()),
    })
}

fn builder(
    provider: Provider,
    environment: &Environment,
    settings: &ProviderSettings,
    shapes: Option<Shapes>,
) -> ort::Result<SessionBuilder> {
    let builder = Session::builder(environment)?
        .with_intra_threads(settings.threads)?
        .with_inter_threads(1)?
        // Idle threads that spin take the cores of actors.
        .with_intra_op_spinning(false)?;
    // The preferred one is first.
    let providers = match provider {
        Provider::Auto | Provider::Cpu | Provider::CpuInt8 => return Ok(builder),
        Provider::OpenvinoF32 => vec![openvino("f32", settings.threads)],
        Provider::OpenvinoBf16 => vec![openvino("bf16", settings.threads)],
        Provider::Cuda => vec![cuda(settings)],
        Provider::Tensorrt => vec![tensorrt(settings, shapes), cuda(settings)],
    };
    let strict = providers
        .into_iter()
        .map(ExecutionProviderDispatch::error_on_failure);
    Ok(builder.with_execution_providers(strict.collect::<Vec<_>>())?)
}

fn openvino(precision: &str, threads: usize) -> ExecutionProviderDispatch {
    let settings = serde_json::json!({"CPU": {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads.to_string(),
        "NUM_STREAMS": "1",
        "ENABLE_CPU_PINNING": "NO",
    }});
    ep::OpenVINO::default()
        .with_device_type("CPU")
        .with_arbitrary_config("load_config", settings)
        .build()
}

fn cuda(settings: &ProviderSettings) -> ExecutionProviderDispatch {
    ep::CUDA::default()
        .with_device_id(settings.device as i32)
        // A search that tries all algorithms finds none that is faster, and each model takes longer to load.
        .with_conv_algorithm_search(ep::cuda::ConvAlgorithmSearch::Heuristic)
        .with_prefer_nhwc(true)
        .build()
}

fn tensorrt(settings: &ProviderSettings, shapes: Option<Shapes>) -> ExecutionProviderDispatch {
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
        // Without these profiles a new engine is built whenever a batch is larger than all before.
        provider = provider
            .with_profile_min_shapes(least)
            .with_profile_opt_shapes(usual)
            .with_profile_max_shapes(most);
    }
    provider.build()
}

impl Shapes {
    /// Returns the smallest, usual and largest shapes of the inputs in the syntax of TensorRT's provider. `None` for a
    /// model that takes planes, since its input may have any name.
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

/// Returns the first line of a message, at most 400 characters. ONNX Runtime's messages can be pages long.
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
    fn tensorrt_gets_the_smallest_usual_and_largest_shapes() {
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
