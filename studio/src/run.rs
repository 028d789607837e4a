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
    /// True if the roles run elsewhere, e.g. in containers, so that the folder has figures alone.
    pub is_elsewhere: bool,
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
    #[error("{} is not the configuration of a run", file.display())]
    Config {
        /// The file.
        file: PathBuf,
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
        let file = path.join("run.toml");
        let config = config::load(&file).map_err(|source| RunError::Config { file, source })?;
        let is_elsewhere = launcher::run::folder::is_followed(&path);
        // The folder of a run elsewhere is the studio's own.
        let named = path.file_name().filter(|_| !is_elsewhere);
        let name = named.map_or_else(
            || config.game.name.clone(),
            |name| name.to_string_lossy().into_owned(),
        );
        Ok(Self {
            is_elsewhere,
            folder: path,
            name,
            config,
        })
    }
}
