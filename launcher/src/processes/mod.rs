//! The processes of a run: each is started, restarted with a back-off when it dies, logged, and stopped on request.

pub mod groups;
pub mod host;
pub mod list;
pub mod logs;
pub mod supervise;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use service::process;

/// Returns the folder of the roles' binaries: the named one, or that of Minuet's programs.
///
/// # Errors
/// No folder is named, and the operating system does not tell the path of this program.
pub fn binaries(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match named {
        Some(folder) => Ok(folder.into()),
        None => process::programs().context("cannot find the folder of the roles' binaries"),
    }
}
