//! `[inference]`: the inference server.

use std::path::{Path, PathBuf};

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{
    ConfigError, Provider,
    error::{at_least, require, within},
};

/// Largest batch of a device that is not known to be a GPU, in positions.
pub(super) const USUAL_BATCH: usize = 128;
/// Largest batch of a GPU, in positions.
const GPU_BATCH: usize = 2048;

/// Settings of one inference server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct InferenceConfig {
    /// Address of the service, host:port: clients connect to it, and the server listens on it.
    pub address: String,
    /// Address that the server listens on, if different from `address`, e.g. "0.0.0.0:50051" in a container; empty: `address`.
    pub listen: String,
    /// Address of the Prometheus metrics page; empty: none.
    pub metrics: String,
    /// Address of an additional health service in plaintext, for probes without TLS; empty: none.
    pub health: String,
    /// Largest size of a message, in MiB, 1 to 1024.
    pub max_message_mib: usize,
    /// Execution provider: `cpu`, `cpu-int8` (convolutions in 8-bit integers), `openvino-f32`, `openvino-bf16`, `cuda`, `tensorrt`,
    /// or `auto`, which measures the providers of the machine and uses the fastest one whose results agree with f32. It leaves out
    /// TensorRT, which takes minutes to build engines.
    pub provider: Provider,
    /// Index of the GPU, from 0. A process uses one GPU: start one process for each.
    pub device: u32,
    /// Convert models to half precision when they are loaded (true or false). Not possible with the providers `auto`,
    /// `cpu-int8`, `openvino-f32` and `openvino-bf16`. Fast on GPUs; on `cpu` only useful to measure the rounding error.
    pub fp16: bool,
    /// Folder for TensorRT's engines, so that each is built once per model and kind of GPU; empty: engines are not kept.
    pub engine_cache: PathBuf,
    /// Threads that evaluate on the CPU, each a batch of its own, at most 256; 0: as many as are fastest, measured with the first network
    /// that is loaded, from one to all cores. `minuet up` keeps the choice with the run.
    pub threads: usize,
    /// Largest batch given to the device, in positions, at most 65536; 0: 2048 with the provider `cuda` or `tensorrt`, else 128. To start a
    /// batch costs a GPU about as much as hundreds of rows.
    pub max_batch: usize,
    /// Maximum number of queued positions, at least max_batch; further requests fail with RESOURCE_EXHAUSTED. An eighth of the
    /// queue is reserved for requests of interactive play.
    pub max_queue: usize,
    /// Maximum number of positions in a request, at least 1. A larger request, or one that the queue could never hold,
    /// fails with INVALID_ARGUMENT.
    pub max_request: usize,
    /// Label of the model for requests that name no model.
    pub default_model: String,
    /// Additional model repositories, each as "name=folder or URL": "chess=../chess/checkpoints" serves `chess/latest`.
    /// Folders are relative to the run's folder.
    pub sources: Vec<String>,
    /// Folder of foreign models, each an ONNX file with a description `name.toml` next to it; empty: none.
    pub models: PathBuf,
    /// More labels and versions that are served, each as a request names it: `best`, `chess/best`, `000000001200-3fa94c21`. The default
    /// model, `actor.model`, `latest` of each source and the foreign models are always served.
    pub also_serve: Vec<String>,
    /// Largest memory of one model, in MiB, at least 1. A larger one is refused, unless it is the run's own default model. Models of other
    /// sources are loaded in a process of their own first, which has this limit.
    pub memory_mib: u64,
    /// Memory of the evaluation cache shared by all clients, in MiB; 0: no cache. (Each actor has a cache of its own too.)
    pub cache_mib: u64,
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
            threads: 0,
            max_batch: 0,
            max_queue: 16_384,
            max_request: 4_096,
            default_model: "latest".into(),
            sources: Vec::new(),
            models: PathBuf::new(),
            also_serve: Vec::new(),
            memory_mib: 2048,
            cache_mib: 64,
        }
    }
}

impl InferenceConfig {
    /// Returns the address to listen on.
    pub fn listen_address(&self) -> &str {
        super::run::first_given(&self.listen, &self.address)
    }

    /// Returns the largest batch given to the device, in positions: what is set, or what suits the provider and fits the queue.
    pub fn largest_batch(&self) -> usize {
        let usual = match self.provider {
            Provider::Cuda | Provider::Tensorrt => GPU_BATCH,
            _ => USUAL_BATCH,
        };
        match self.max_batch {
            0 => usual.min(self.max_queue),
            set => set,
        }
    }

    /// Iterates over the names and locations of [`InferenceConfig::sources`].
    pub fn named_sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.sources.iter().filter_map(|source| source.split_once('='));
        pairs.map(|(name, location)| (name.trim(), location.trim()))
    }

    /// Makes relative folders relative to `folder`.
    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        super::run::resolve_given(folder, [&mut self.models, &mut self.engine_cache]);
        for source in &mut self.sources {
            if let Some((name, location)) = source.split_once('=')
                && !location.contains("://")
            {
                *source = format!("{}={}", name.trim(), folder.join(location.trim()).display());
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("inference.threads", self.threads, 0..=256)?;
        require(
            !self.fp16 || matches!(self.provider, Provider::Cpu | Provider::Cuda | Provider::Tensorrt),
            "inference.fp16",
            "needs inference.provider to be cuda, tensorrt or cpu",
        )?;
        within("inference.max_batch", self.max_batch, 0..=65_536)?;
        require(
            self.max_queue >= self.max_batch.max(1),
            "inference.max_queue",
            "must be at least inference.max_batch",
        )?;
        within("inference.max_message_mib", self.max_message_mib, 1..=1024)?;
        at_least("inference.max_request", self.max_request, 1)?;
        require(
            !self.default_model.is_empty(),
            "inference.default_model",
            "must not be empty",
        )?;
        at_least("inference.memory_mib", self.memory_mib, 1)?;
        require(
            self.sources.iter().all(|source| source.contains('=')),
            "inference.sources",
            "must be a list of \"name=folder or URL\"",
        )
    }
}
