//! The folder of a run, and its lock: [`RunFolder`].
//!
//! | path | contents | owner |
//! |---|---|---|
//! | `run.toml` | the run's configuration, commented | yours |
//! | `lock` | locked by the one `minuet up` that works here | `minuet up` |
//! | `processes.json` | the role processes that were started last | `minuet up` |
//! | `choices.json` | settings that were chosen by measurement on this machine | `minuet up` |
//! | `addresses.json` | addresses of the services while the run is at work | `minuet up` |
//! | `up/` | events, and figures over time ([`crate::up::journal`]) | `minuet up` |
//! | `logs/<process>.log` | a role's log, bounded; `.log.1` is the part before | each role |
//! | `spool/<actor>/` | finished games that the store has not acknowledged | the actor |
//! | `replay/` | the stored games | the replay store |
//! | `learner/` | the learner's own files | the learner |
//! | `checkpoints/` | the published networks | the learner |
//! | `rating/` | matches between checkpoints, and their ratings | the rating |

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use config::{self, ConfigError, Override, RunConfig};

use super::game;

/// Name of the configuration file in a run's folder.
pub const CONFIG: &str = "run.toml";
/// First line of `run.toml` in the folder of a run that is followed.
const FOLLOWED: &str =
    "# The settings of a run elsewhere, written at each start of `minuet studio --follow`.\n";

/// Error: a folder cannot be used for this run.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The file system failed.
    #[error("cannot use {path}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Another process works in the folder.
    #[error("another `minuet up`{} works in {folder}; stop it first, or name another folder with --run",
        holder.as_ref().map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Locked {
        /// The run's folder.
        folder: PathBuf,
        /// Number of the process that works here, if known.
        holder: Option<String>,
    },
    /// The folder holds a run of another game.
    #[error("{folder} is a run of {found}, not of {wanted}; name another folder with --run")]
    OtherGame {
        /// The run's folder.
        folder: PathBuf,
        /// The folder's game.
        found: String,
        /// The requested game.
        wanted: String,
    },
    /// The folder holds a run of its own.
    #[error(
        "{folder} is a run on this machine, not the record of one elsewhere; name another folder with --run"
    )]
    NotFollowed {
        /// The folder.
        folder: PathBuf,
    },
    /// The configuration cannot be used.
    #[error("cannot use {path}")]
    Config {
        /// The configuration file.
        path: PathBuf,
        /// Cause.
        source: ConfigError,
    },
}

/// A run's folder while this process works in it.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    created: bool,
    /// The operating system releases the lock when the process ends, in whatever way.
    _lock: File,
}

impl RunFolder {
    /// Locks the folder of a run, which is made if there is none. A new run gets a `run.toml` with the defaults of `game` and with
    /// `overrides`. An existing run must be of `game`, if a game is named.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn open(path: &Path, game: Option<&str>, overrides: &[Override]) -> Result<Self, FolderError> {
        Self::open_with(path, game, || new_run(game, overrides))
    }

    /// Locks the folder of a run like [`RunFolder::open`]. A new run gets a `run.toml` with the configuration that `new` returns.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn open_with(
        path: &Path,
        game: Option<&str>,
        new: impl FnOnce() -> Result<RunConfig, ConfigError>,
    ) -> Result<Self, FolderError> {
        let (path, lock) = locked(path)?;
        let file = path.join(CONFIG);
        let created = !file.try_exists().map_err(io(&file))?;
        if created {
            let config = new().map_err(|source| FolderError::Config {
                path: file.clone(),
                source,
            })?;
            durable::write(&file, game::template(&config).as_bytes()).map_err(io(&file))?;
        }
        let folder = Self {
            path,
            created,
            _lock: lock,
        };
        let found = folder.load(&[])?.game.name;
        match game {
            Some(wanted) if wanted != found => Err(FolderError::OtherGame {
                folder: folder.path,
                found,
                wanted: wanted.into(),
            }),
            _ => Ok(folder),
        }
    }

    /// Locks the folder in which the figures of a run elsewhere are kept, which is made if there is none. Its `run.toml` has the settings
    /// of `file`, that of the run's roles, with `overrides`.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn follow(path: &Path, file: &Path, overrides: &[Override]) -> Result<Self, FolderError> {
        // Folders in the copy must not be relative to another place.
        let config = load(&fs::canonicalize(file).map_err(io(file))?, overrides)?;
        let (path, lock) = locked(path)?;
        let file = path.join(CONFIG);
        let created = match fs::read_to_string(&file) {
            Ok(known) if !known.starts_with(FOLLOWED) => {
                return Err(FolderError::NotFollowed { folder: path });
            }
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(io(&file)(error)),
        };
        let text = format!("{FOLLOWED}{}", game::template(&config));
        durable::write(&file, text.as_bytes()).map_err(io(&file))?;
        Ok(Self {
            path,
            created,
            _lock: lock,
        })
    }

    /// Absolute path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if the run is new: this call has written its `run.toml`.
    pub fn is_new(&self) -> bool {
        self.created
    }

    /// Path of the run's `run.toml`.
    pub fn config_file(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    /// Path of a process's log.
    pub fn log(&self, process: &str) -> PathBuf {
        log_file(&self.path, process)
    }

    /// Reads the run's configuration, with `overrides` in place of its own values.
    ///
    /// # Errors
    /// [`FolderError::Config`].
    pub fn load(&self, overrides: &[Override]) -> Result<RunConfig, FolderError> {
        load(&self.config_file(), overrides)
    }
}

fn load(file: &Path, overrides: &[Override]) -> Result<RunConfig, FolderError> {
    config::load_with(Some(file), overrides)
        .and_then(|config| {
            game::check(&config.game)?;
            Ok(config)
        })
        .map_err(|source| FolderError::Config {
            path: file.into(),
            source,
        })
}

/// Returns the configuration of a new run: the defaults of `game`, with `overrides`.
///
/// # Errors
/// [`ConfigError`] naming the game or the key.
pub fn new_run(game: Option<&str>, overrides: &[Override]) -> Result<RunConfig, ConfigError> {
    let mut config = RunConfig::default();
    config.game = game::defaults(game.unwrap_or(&config.game.name))?;
    let settings = [&game::settings(&config.game.name)?, overrides].concat();
    config::parse_with(&config::template(&config), &settings)
}

/// True if the configuration in the folder of a run is that of a run elsewhere, which is followed.
pub fn is_followed(run: &Path) -> bool {
    fs::read_to_string(run.join(CONFIG)).is_ok_and(|text| text.starts_with(FOLLOWED))
}

pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError::Io { path, source }
}

/// Makes and locks a folder; returns its absolute path and the lock.
fn locked(path: &Path) -> Result<(PathBuf, File), FolderError> {
    for folder in [path.to_owned(), path.join("logs")] {
        fs::create_dir_all(&folder).map_err(io(&folder))?;
    }
    let path = fs::canonicalize(path).map_err(io(path))?;
    let lock = lock(&path)?;
    Ok((path, lock))
}

fn lock(folder: &Path) -> Result<File, FolderError> {
    let path = folder.join("lock");
    let io = |source| FolderError::Io {
        path: path.clone(),
        source,
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(source)) => return Err(io(source)),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            return Err(FolderError::Locked {
                folder: folder.into(),
                holder: Some(holder.trim().to_owned()).filter(|pid| !pid.is_empty()),
            });
        }
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(io)?;
    Ok(file)
}

/// Returns the path of a process's log in the folder of a run.
pub fn log_file(run: &Path, process: &str) -> PathBuf {
    run.join("logs").join(format!("{process}.log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(texts: &[&str]) -> Vec<Override> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_new_run_gets_a_commented_file_with_the_given_settings() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("runs/first");
        let folder = RunFolder::open(&path, None, &overrides(&["search.visits=33"])).unwrap();
        assert!(folder.is_new());
        let text = fs::read_to_string(folder.config_file()).unwrap();
        assert!(text.contains("# Visits for each decision"), "{text}");
        assert_eq!(folder.load(&[]).unwrap().search.visits, 33);
        drop(folder);

        let again = RunFolder::open(&path, None, &overrides(&["search.visits=44"])).unwrap();
        assert!(!again.is_new());
        assert_eq!(
            again.load(&[]).unwrap().search.visits,
            33,
            "the file is not changed"
        );
        assert_eq!(fs::read_to_string(again.config_file()).unwrap(), text);
    }

    #[test]
    fn a_run_of_another_game_and_an_unknown_key_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        drop(RunFolder::open(parent.path(), None, &[]).unwrap());
        let error = RunFolder::open(parent.path(), Some("chess"), &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("is a run of paco-sako, not of chess"), "{error}");

        fs::write(parent.path().join("run.toml"), "[search]\nvisit = 3").unwrap();
        let error = RunFolder::open(parent.path(), None, &[]).unwrap_err();
        let error = format!("{:#}", anyhow::Error::from(error));
        assert!(error.contains("run.toml: unknown key `search.visit`"), "{error}");
    }

    #[test]
    fn a_run_elsewhere_has_a_copy_of_its_configuration_and_never_replaces_a_run_on_this_machine() {
        let parent = tempfile::tempdir().unwrap();
        let config = parent.path().join("elsewhere.toml");
        let followed = parent.path().join("followed");
        for visits in [33, 44] {
            fs::write(&config, format!("[search]\nvisits = {visits}\n")).unwrap();
            let folder = RunFolder::follow(&followed, &config, &overrides(&["run.seed=7"])).unwrap();
            let found = folder.load(&[]).unwrap();
            assert_eq!((found.search.visits, found.run.seed), (visits, 7));
            assert!(is_followed(&followed));
        }
        let own = parent.path().join("own");
        drop(RunFolder::open(&own, None, &[]).unwrap());
        let before = fs::read(own.join(CONFIG)).unwrap();
        let refused = RunFolder::follow(&own, &config, &[]).unwrap_err();
        assert!(refused.to_string().contains("a run on this machine"), "{refused}");
        assert_eq!(fs::read(own.join(CONFIG)).unwrap(), before);
        assert!(!is_followed(&own));
    }

    #[test]
    fn a_folder_admits_one_process_and_a_failed_start_leaves_no_run() {
        let parent = tempfile::tempdir().unwrap();
        let refused = RunFolder::open(parent.path(), None, &overrides(&["search.visits=0"])).unwrap_err();
        assert!(format!("{:#}", anyhow::Error::from(refused)).contains("`search.visits` must be at least 1"));
        assert!(!parent.path().join("run.toml").exists());

        let first = RunFolder::open(parent.path(), None, &[]).unwrap();
        let error = RunFolder::open(parent.path(), None, &[]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("(process {})", std::process::id())),
            "{error}"
        );
        drop(first);
        assert!(RunFolder::open(parent.path(), None, &[]).is_ok());
    }
}
