//! Reads the name of an execution provider from an argument.

use config::Provider;

/// Reads a provider's name as `inference.provider` in `run.toml` spells it.
///
/// # Errors
/// The list of names.
pub fn read(name: &str) -> Result<Provider, String> {
    serde_json::from_value(name.into())
        .map_err(|_| "one of auto, cpu, openvino-f32, openvino-bf16, cuda, tensorrt".into())
}
