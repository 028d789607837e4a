//! A run's folder, and the right to work in it.
//!
//! | path | what it is | whose |
//! |---|---|---|
//! | `run.toml` | the run's configuration, commented | yours |
//! | `lock` | held by the one `minuet up` that works here | `minuet up` |
//! | `processes.json` | the role processes it started last | `minuet up` |
//! | `addresses.json` | where the roles are found while it runs | `minuet up` |
//! | `logs/<process>.log` | what a role wrote, bounded; `.log.1` is the part before | each role |
//! | `spool/<actor>/` | finished games that the store has not acknowledged yet | the actor |
//! | `replay/`, `replay-2/` … | the stored games | each replay store |
//! | `learner/` | the learner's own files | the learner |
//! | `checkpoints/` | the published networks | the learner |
//! | `rating/` | matches between checkpoints, and their ratings | the rating |
//! | `learner-grown/` | a larger network that grows beside the run | `minuet grow` |

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use config::{self, ConfigError, Override, RunConfig};

/// The configuration's name in a run's folder.
pub const CONFIG: &str = "run.toml";

/// A folder that cannot be used for this run.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The file system.
    #[error("cannot use {path}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process works here.
    #[error("another `minuet up`{} works in {folder}; stop it first, or name another folder with --run",
        holder.as_ref().map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Locked {
        /// The run's folder.
        folder: PathBuf,
        /// The process that works here, where it is known.
        holder: Option<String>,
    },
    /// The folder holds a run of another game.
    #[error("{folder} is a run of {found}, not of {wanted}; name another folder with --run")]
    OtherGame {
        /// The run's folder.
        folder: PathBuf,
        /// The folder's game.
        found: String,
        /// The game that was asked for.
        wanted: String,
    },
    /// The configuration cannot be used.
    #[error("cannot use {path}")]
    Config {
        /// The configuration file.
        path: PathBuf,
        /// Why.
        source: ConfigError,
    },
}

/// A run's folder while this process works in it.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    created: bool,
    /// The operating system gives the lock back when the process ends, however it ends.
    _lock: File,
}

impl RunFolder {
    /// Makes `path` a run's folder if it is none, and locks it. A new run gets a `run.toml` with the defaults of
    /// `game` and with `overrides` written into it; a run that is there must be one of `game`, if one is named.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn open(path: &Path, game: Option<&str>, overrides: &[Override]) -> Result<Self, FolderError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| FolderError::Io { path, source }
        };
        for folder in [path.to_owned(), path.join("logs")] {
            fs::create_dir_all(&folder).map_err(io(&folder))?;
        }
        let path = fs::canonicalize(path).map_err(io(path))?;
        let lock = lock(&path)?;
        let file = path.join(CONFIG);
        let created = !file.try_exists().map_err(io(&file))?;
        if created {
            let config = new_run(game, overrides).map_err(|source| FolderError::Config {
                path: file.clone(),
                source,
            })?;
            write_whole(&file, config::template(&config).as_bytes()).map_err(io(&file))?;
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

    /// The folder, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the run is new: its `run.toml` was written now.
    pub fn is_new(&self) -> bool {
        self.created
    }

    /// The run's `run.toml`.
    pub fn config_file(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    /// The log of a process.
    pub fn log(&self, process: &str) -> PathBuf {
        self.path.join("logs").join(format!("{process}.log"))
    }

    /// Reads the run's configuration, with `overrides` in place of its own values.
    ///
    /// # Errors
    /// [`FolderError::Config`].
    pub fn load(&self, overrides: &[Override]) -> Result<RunConfig, FolderError> {
        let path = self.config_file();
        config::load_with(Some(&path), overrides)
            .and_then(|config| {
                super::game::check(&config.game)?;
                super::game::check_rating(&config)?;
                Ok(config)
            })
            .map_err(|source| FolderError::Config { path, source })
    }
}

/// The configuration of a new run: the defaults of `game`, with `overrides`.
///
/// # Errors
/// [`ConfigError`] naming the game or the key.
pub fn new_run(game: Option<&str>, overrides: &[Override]) -> Result<RunConfig, ConfigError> {
    let mut config = RunConfig::default();
    config.game = super::game::defaults(game.unwrap_or(&config.game.name))?;
    super::game::tune(&mut config);
    let config = config::parse_with(&config::template(&config), overrides)?;
    super::game::check_rating(&config)?;
    Ok(config)
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

/// Writes a file so that it is there whole or not at all.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("draft");
    let mut file = File::create(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(texts: &[&str]) -> Vec<Override> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_new_run_gets_a_commented_file_that_keeps_what_was_asked_for() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("runs/first");
        let folder = RunFolder::open(&path, None, &overrides(&["search.visits=33"])).unwrap();
        assert!(folder.is_new());
        let text = fs::read_to_string(folder.config_file()).unwrap();
        assert!(text.contains("# Traversals for each decision"), "{text}");
        assert_eq!(folder.load(&[]).unwrap().search.visits, 33);
        drop(folder);

        let again = RunFolder::open(&path, None, &overrides(&["search.visits=44"])).unwrap();
        assert!(!again.is_new());
        assert_eq!(
            again.load(&[]).unwrap().search.visits,
            33,
            "the file is the owner's"
        );
        assert_eq!(fs::read_to_string(again.config_file()).unwrap(), text);
    }

    #[test]
    fn a_run_of_another_game_and_a_bad_file_are_refused_by_name() {
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
    fn two_never_work_in_one_folder_and_a_failed_start_leaves_no_run() {
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
