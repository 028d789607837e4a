//! Finds and loads the ONNX Runtime library, once in a process. The inference server runs models with it and the learner
//! checks its exports with it. Tests run both in one process, where ONNX Runtime allows only one environment.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use ort::{environment::Environment, logging::LogLevel};
use parking_lot::Mutex;

use crate::shipped::{find_beside, programs};

/// File name of the library on Linux.
const LIBRARY: &str = "libonnxruntime.so";
/// Folders of the library, relative to the executable: for programs and test programs in a clone of the repository, and for a release
/// that was unpacked.
const BESIDE_EXECUTABLE: [&str; 3] = [
    "../../third_party/ort/lib",
    "../../../third_party/ort/lib",
    "../ort/lib",
];
/// Environment variable that names the library.
const VARIABLE: &str = "ORT_DYLIB_PATH";

/// Error: the library cannot be loaded. The text has a hint for its repair.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RuntimeError(String);

/// The environment. ONNX Runtime allows one per process and drops it with its last handle, so it is kept here.
static LOADED: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

/// Loads the library that `ORT_DYLIB_PATH` names, or else the one next to the executable. Later calls return the same environment.
///
/// # Errors
/// [`RuntimeError`] with a hint for its repair.
pub fn load() -> Result<Environment, RuntimeError> {
    let path = find()?;
    let mut loaded = LOADED.lock();
    if let Some((other, environment)) = loaded.as_ref() {
        return if *other == path {
            Ok(environment.clone())
        } else {
            Err(RuntimeError(format!(
                "{} is loaded already; {} cannot be loaded as well",
                other.display(),
                path.display()
            )))
        };
    }
    let refused =
        |error: &dyn std::fmt::Display| RuntimeError(format!("cannot load {}: {error}", path.display()));
    // The loader does not tell why it cannot read a file.
    File::open(&path).map_err(|error| refused(&error))?;
    let environment = ort::init_from(&path)
        .map_err(|error| refused(&error))?
        .with_name("minuet")
        .with_telemetry(false)
        .with_logger(Arc::new(log))
        .build()
        .map_err(|error| refused(&error))?;
    environment.set_log_level(LogLevel::Warning);
    *loaded = Some((path, environment.clone()));
    Ok(environment)
}

/// Returns the path of the library with links resolved, because the loader looks for other libraries next to it.
fn find() -> Result<PathBuf, RuntimeError> {
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return named(Path::new(&path));
    }
    find_beside(&programs(), BESIDE_EXECUTABLE, LIBRARY).map_err(|searched| {
        RuntimeError(match searched.unreadable {
            Some(reason) => {
                format!("cannot read {reason}; give this account the right, or name a file in {VARIABLE}")
            }
            None => format!(
                "no {LIBRARY} found: run `make setup` in a clone, install the package onnxruntime-openvino, or name one in {VARIABLE} \
                 (searched {})",
                searched.folders
            ),
        })
    })
}

fn named(path: &Path) -> Result<PathBuf, RuntimeError> {
    let fault = |error| RuntimeError(format!("{VARIABLE} names {}: {error}", path.display()));
    path.canonicalize().map_err(fault)
}

fn log(level: LogLevel, category: &str, _id: &str, location: &str, message: &str) {
    match level {
        LogLevel::Fatal | LogLevel::Error => tracing::error!(category, location, "onnx runtime: {message}"),
        LogLevel::Warning => tracing::debug!(category, location, "onnx runtime: {message}"),
        LogLevel::Info | LogLevel::Verbose => tracing::trace!(category, location, "onnx runtime: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_library_must_exist() {
        let error = named(Path::new("/nowhere/libonnxruntime.so")).unwrap_err();
        assert!(
            error.to_string().starts_with("ORT_DYLIB_PATH names /nowhere"),
            "{error}"
        );
    }
}
