//! Names of providers (what runs a network) as people type them: those of `inference.provider` in `run.toml`.

use config::Provider;

/// The names that are offered.
pub const NAMES: [&str; 6] = ["auto", "cpu", "openvino-f32", "openvino-bf16", "cuda", "tensorrt"];

/// Reads a name.
///
/// # Errors
/// What must be written instead.
pub fn read(name: &str) -> Result<Provider, String> {
    serde_json::from_value(name.into()).map_err(|_| format!("one of {}", NAMES.join(", ")))
}

/// Writes a name.
pub fn name(provider: Provider) -> String {
    match serde_json::to_value(provider) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_written() {
        for name in NAMES {
            assert_eq!(super::name(read(name).unwrap()), name);
        }
        assert!(read("abacus").unwrap_err().contains("openvino-bf16"));
    }
}
