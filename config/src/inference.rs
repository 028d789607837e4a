//! `[inference]`: the inference server.

use std::path::{Path, PathBuf};

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{ConfigError, load::require};

/// Settings of one inference server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct InferenceConfig {
    /// Where actors find the service, and the address it listens on.
    pub address: String,
    /// Address it listens on where that is another one, e.g. "0.0.0.0:50051" in a container; empty: `address`.
    pub listen: String,
    /// Address of the Prometheus metrics page; empty: none.
    pub metrics: String,
    /// Address of a health service in plaintext beside the service's own, for probes that know no TLS; empty: none.
    pub health: String,
    /// Largest message taken, in MiB, 1 to 1024.
    pub max_message_mib: usize,
    /// What runs the model: `cpu`, `openvino-f32`, `openvino-bf16`, `cuda`, `tensorrt`, or `auto`, which measures what the
    /// machine has (but for TensorRT, which takes minutes to build its engines) and takes the fastest that agrees with f32.
    pub provider: Provider,
    /// Which GPU, from 0. A process uses one: start as many as there are.
    pub device: u32,
    /// Whether models are converted to half precision as they are loaded. Needs a provider that is named, and not
    /// OpenVINO's, which has bf16 of its own. Fast on GPUs; on `cpu` it only shows what the rounding does.
    pub fp16: bool,
    /// Folder that TensorRT keeps its engines in, so that they are built once for each model and kind of GPU; empty: none.
    pub engine_cache: PathBuf,
    /// Threads the provider may use for one batch, 1 to 256.
    pub threads: usize,
    /// Largest batch given to the device, in positions, 1 to 65536.
    pub max_batch: usize,
    /// Longest time a lone request waits for company while the device is idle, in microseconds. 0: none.
    pub max_wait_us: u64,
    /// Positions that may wait, at least max_batch; beyond it requests are refused (RESOURCE_EXHAUSTED). An eighth of them is for play
    /// alone.
    pub max_queue: usize,
    /// Positions a single request may hold, at least 1; one that could never wait is refused as well (INVALID_ARGUMENT).
    pub max_request: usize,
    /// The label that answers a request which names no model.
    pub default_model: String,
    /// Other stores of models, each as "name=folder or URL": "chess=../chess/checkpoints" serves `chess/latest`,
    /// `chess/best` and so on. Folders are relative to the run's folder.
    pub sources: Vec<String>,
    /// Folder of models made elsewhere, each an ONNX file with a description, `name.toml`, beside it; empty: none.
    pub models: PathBuf,
    /// Whether a request may cause a model to be loaded that is not.
    pub load_on_demand: bool,
    /// Memory for models beside the default one, and that one, in MiB; what was used longest ago is unloaded. At least 1.
    pub memory_mib: u64,
    /// Memory for evaluations that are remembered for all clients, in MiB; 0 remembers none. (Actors have a cache too.)
    pub cache_mib: u64,
    /// `libonnxruntime.so`; empty: the one that `ORT_DYLIB_PATH` names, or the one fetched at set-up.
    pub runtime: PathBuf,
}

/// What runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Measured at start.
    Auto,
    /// ONNX Runtime's default CPU provider, f32.
    Cpu,
    /// OpenVINO on the CPU, f32.
    OpenvinoF32,
    /// OpenVINO on the CPU, bf16 (fast with AMX units).
    OpenvinoBf16,
    /// An NVIDIA GPU; an error where there is none.
    Cuda,
    /// The same by TensorRT; an error where either is missing.
    Tensorrt,
}

impl Default for InferenceConfig {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:50051".into(),
            listen: String::new(),
            metrics: String::new(),
            health: String::new(),
            max_message_mib: 16,
            provider: Provider::Auto,
            device: 0,
            fp16: false,
            engine_cache: PathBuf::new(),
            threads: 1,
            max_batch: 128,
            max_wait_us: 0,
            max_queue: 16_384,
            max_request: 4_096,
            default_model: "latest".into(),
            sources: Vec::new(),
            models: PathBuf::new(),
            load_on_demand: true,
            memory_mib: 2048,
            cache_mib: 64,
            runtime: PathBuf::new(),
        }
    }
}

impl InferenceConfig {
    /// The address to listen on.
    pub fn listen_address(&self) -> &str {
        super::load::first_given(&self.listen, &self.address)
    }

    /// The names and locations of [`InferenceConfig::sources`].
    pub fn named_sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.sources.iter().filter_map(|source| source.split_once('='));
        pairs.map(|(name, location)| (name.trim(), location.trim()))
    }

    /// Makes relative folders relative to `folder`.
    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        for path in [&mut self.models, &mut self.engine_cache] {
            if !path.as_os_str().is_empty() {
                *path = folder.join(&*path);
            }
        }
        for source in &mut self.sources {
            if let Some((name, location)) = source.split_once('=')
                && !location.contains("://")
            {
                *source = format!("{}={}", name.trim(), folder.join(location.trim()).display());
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        require(
            (1..=256).contains(&self.threads),
            "inference.threads",
            "must be between 1 and 256",
        )?;
        require(
            !self.fp16 || matches!(self.provider, Provider::Cpu | Provider::Cuda | Provider::Tensorrt),
            "inference.fp16",
            "needs inference.provider to be cuda, tensorrt or cpu",
        )?;
        require(
            (1..=65_536).contains(&self.max_batch),
            "inference.max_batch",
            "must be between 1 and 65536",
        )?;
        require(
            self.max_queue >= self.max_batch,
            "inference.max_queue",
            "must be at least inference.max_batch",
        )?;
        require(
            (1..=1024).contains(&self.max_message_mib),
            "inference.max_message_mib",
            "must be between 1 and 1024",
        )?;
        require(
            self.max_request >= 1,
            "inference.max_request",
            "must be at least 1",
        )?;
        require(
            !self.default_model.is_empty(),
            "inference.default_model",
            "must not be empty",
        )?;
        require(self.memory_mib >= 1, "inference.memory_mib", "must be at least 1")?;
        require(
            self.sources.iter().all(|source| source.contains('=')),
            "inference.sources",
            "must be a list of \"name=folder or URL\"",
        )
    }
}
