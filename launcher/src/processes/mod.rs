//! The processes of a run: each is started, restarted with a back-off when it dies, logged, and stopped on request.

pub mod groups;
pub mod list;
pub mod logs;
pub mod supervise;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Returns the folder of the roles' binaries: the named one, or that of this program.
///
/// # Errors
/// No folder is named, and the operating system does not tell the path of this program.
pub fn binaries(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match named {
        Some(folder) => Ok(folder.into()),
        None => {
            let own = std::env::current_exe().context("cannot find the folder of the roles' binaries")?;
            Ok(own.parent().map(PathBuf::from).unwrap_or_default())
        }
    }
}
