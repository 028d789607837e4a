//! [`Run`]: folder, name and configuration of the run that is shown.

use std::path::{Path, PathBuf};

use config::RunConfig;

/// The run that is shown.
#[derive(Clone, Debug)]
pub struct Run {
    /// Folder of the run, absolute.
    pub folder: PathBuf,
    /// Name for people: the last part of the folder's path.
    pub name: String,
    /// Configuration of the run.
    pub config: RunConfig,
}

/// Error: a folder is not that of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no such folder.
    #[error("there is no folder {}; `minuet up` makes a run, and --run names it", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder has no configuration that can be used.
    #[error("{} is not the folder of a run", folder.display())]
    Config {
        /// The folder.
        folder: PathBuf,
        /// Cause.
        source: config::ConfigError,
    },
}

impl Run {
    /// Reads the configuration of the run in `folder`.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn open(folder: &Path) -> Result<Self, RunError> {
        let path = std::fs::canonicalize(folder).map_err(|_| RunError::Missing {
            folder: folder.into(),
        })?;
        let config = config::load(&path.join("run.toml")).map_err(|source| RunError::Config {
            folder: path.clone(),
            source,
        })?;
        let name = path.file_name().map_or_else(
            || config.game.name.clone(),
            |name| name.to_string_lossy().into_owned(),
        );
        Ok(Self {
            folder: path,
            name,
            config,
        })
    }
}
