//! Identifies the running program, for records of games.

use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

/// Identifies this program: its version and the first six bytes of the SHA-256 of its file.
pub fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let version = env!("CARGO_PKG_VERSION");
        // The link of the process leads to the running program even if its file was replaced since.
        match std::fs::read("/proc/self/exe") {
            Ok(program) => {
                let digest = Sha256::digest(&program);
                let digits: String = digest[..6].iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{version}+{digits}")
            }
            Err(_) => version.to_owned(),
        }
    })
}
