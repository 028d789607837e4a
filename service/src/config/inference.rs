//! `[inference]`: the inference server.

use std::path::PathBuf;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{ConfigError, load::require};

/// Settings of one inference server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct InferenceConfig {
    /// Address the service listens on, and where actors find it.
    pub address: String,
    /// Address of the Prometheus metrics page; empty: none.
    pub metrics: String,
    /// What runs the model: `cpu`, `openvino-f32`, `openvino-bf16`, `cuda`, or `auto`, which measures what the machine has
    /// and takes the fastest that agrees with f32.
    pub provider: Provider,
    /// Threads the provider may use for one batch, 1 to 256.
    pub threads: usize,
    /// Largest batch given to the device, in positions, 1 to 65536.
    pub max_batch: usize,
    /// Longest time a lone request waits for company while the device is idle, in microseconds. 0: none.
    pub max_wait_us: u64,
    /// Batches are padded up to the next of these sizes; the largest must be `max_batch`. Empty: chosen.
    pub batch_sizes: Vec<usize>,
    /// Positions that may wait, at least max_batch; beyond it requests are refused (RESOURCE_EXHAUSTED).
    pub max_queue: usize,
    /// Positions a single request may hold. At least 1.
    pub max_request: usize,
    /// The label that answers a request which names no model.
    pub default_model: String,
    /// `libonnxruntime.so`; empty: the one that `ORT_DYLIB_PATH` names, or the one fetched at set-up.
    pub runtime: PathBuf,
    /// Seconds that requests in flight are given when the process is asked to stop.
    pub drain_seconds: u64,
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
}

impl Default for InferenceConfig {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:50051".into(),
            metrics: String::new(),
            provider: Provider::Auto,
            threads: 1,
            max_batch: 128,
            max_wait_us: 0,
            batch_sizes: Vec::new(),
            max_queue: 16_384,
            max_request: 4_096,
            default_model: "latest".into(),
            runtime: PathBuf::new(),
            drain_seconds: 10,
        }
    }
}

impl InferenceConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        require(
            (1..=256).contains(&self.threads),
            "inference.threads",
            "must be between 1 and 256",
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
            self.max_request >= 1,
            "inference.max_request",
            "must be at least 1",
        )?;
        require(
            !self.default_model.is_empty(),
            "inference.default_model",
            "must not be empty",
        )?;
        let sizes = &self.batch_sizes;
        require(
            sizes.is_empty() || (sizes.is_sorted() && sizes[0] >= 1 && sizes.last() == Some(&self.max_batch)),
            "inference.batch_sizes",
            "must be ascending and end with inference.max_batch",
        )
    }
}
