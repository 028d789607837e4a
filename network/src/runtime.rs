//! Finding and loading ONNX Runtime, once in a process: the inference server runs models with it, the learner proves its
//! exports with it, and in tests both live in one process, where only one environment is allowed.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ort::{environment::Environment, logging::LogLevel};
use parking_lot::Mutex;

/// What the library is called on Linux.
const LIBRARY: &str = "libonnxruntime.so";
/// Where it is looked for beside the executable: in a clone of the repository (programs, test programs), in an image.
const BESIDE_EXECUTABLE: [&str; 3] = [
    "../../third_party/ort/lib",
    "../../../third_party/ort/lib",
    "../lib",
];
/// The environment variable that names the library.
const VARIABLE: &str = "ORT_DYLIB_PATH";

/// A runtime that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The file that was named is not there.
    #[error("{named_by} names {path}, which is not there")]
    Missing {
        /// Who named it.
        named_by: &'static str,
        /// What it named.
        path: PathBuf,
    },
    /// Nothing was named, and nothing found.
    #[error(
        "no {LIBRARY} found: run scripts/fetch_libraries.py, or name one in inference.runtime or {VARIABLE} (looked in {looked})"
    )]
    NotFound {
        /// The folders looked into.
        looked: String,
    },
    /// The file is no usable runtime.
    #[error("cannot load {path}: {reason}")]
    Load {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A process holds one runtime only.
    #[error("{loaded} is loaded already; {path} cannot be loaded beside it")]
    Another {
        /// The runtime in this process.
        loaded: PathBuf,
        /// The one asked for.
        path: PathBuf,
    },
}

/// ONNX Runtime allows one environment in a process, and forgets it when the last handle is dropped: it is kept here.
static LOADED: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

/// Loads the runtime that `configured` names (empty: the one that `ORT_DYLIB_PATH` names, or else one beside the
/// executable). A second call gives the same environment.
///
/// # Errors
/// [`RuntimeError`] saying how to mend it.
pub fn load(configured: &Path) -> Result<Environment, RuntimeError> {
    let path = find(configured)?;
    let mut loaded = LOADED.lock();
    if let Some((other, environment)) = loaded.as_ref() {
        return if *other == path {
            Ok(environment.clone())
        } else {
            Err(RuntimeError::Another {
                loaded: other.clone(),
                path,
            })
        };
    }
    let refused = |reason: String| RuntimeError::Load {
        path: path.clone(),
        reason,
    };
    let environment = ort::init_from(&path)
        .map_err(|error| refused(error.to_string()))?
        .with_name("minuet")
        .with_telemetry(false)
        .with_logger(Arc::new(log))
        .build()
        .map_err(|error| refused(error.to_string()))?;
    environment.set_log_level(LogLevel::Warning);
    *loaded = Some((path, environment.clone()));
    Ok(environment)
}

/// The library's path, with links resolved: its neighbours are found by it.
fn find(configured: &Path) -> Result<PathBuf, RuntimeError> {
    if !configured.as_os_str().is_empty() {
        return named("inference.runtime", configured);
    }
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return named(VARIABLE, Path::new(&path));
    }
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = executable.parent().unwrap_or(Path::new("."));
    let folders = BESIDE_EXECUTABLE.map(|relative| folder.join(relative));
    folders
        .iter()
        .find_map(|folder| folder.join(LIBRARY).canonicalize().ok())
        .ok_or_else(|| RuntimeError::NotFound {
            looked: folders.map(|folder| folder.display().to_string()).join(", "),
        })
}

fn named(named_by: &'static str, path: &Path) -> Result<PathBuf, RuntimeError> {
    path.canonicalize().map_err(|_| RuntimeError::Missing {
        named_by,
        path: path.into(),
    })
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
    fn a_library_that_is_named_must_be_there() {
        let error = find(Path::new("/nowhere/libonnxruntime.so")).unwrap_err();
        assert!(
            error.to_string().starts_with("inference.runtime names /nowhere"),
            "{error}"
        );
    }
}
