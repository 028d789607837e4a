//! The folder of a run, and its lock: [`RunFolder`].
//!
//! | path | contents | owner |
//! |---|---|---|
//! | `run.toml` | the run's configuration, commented | yours |
//! | `game.json` | the description of a game from outside | `minuet up` |
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
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use config::{self, ConfigError, Override, RunConfig};

use super::{description, game};

/// Name of the configuration file in a run's folder.
pub const CONFIG: &str = "run.toml";
/// Files and folders that a run writes. A folder with one of these and without settings is not that of a new run.
const OF_A_RUN: [&str; 3] = ["replay/store.json", "checkpoints/versions", "choices.json"];
/// Longest time for which programs that look at a run's lock keep it busy.
const LOOKS: Duration = Duration::from_secs(5);
/// First line of `run.toml` in the folder of a run that is followed.
const FOLLOWED: &str =
    "# The settings of a run elsewhere, written at each start of `minuet studio --follow`.\n";

/// A run's folder while this process works in it.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    created: bool,
    /// Sentence about the game that is to be told.
    note: Option<String>,
    /// The operating system releases the lock when the process ends, in whatever way.
    _lock: File,
}

impl RunFolder {
    /// Locks the folder of a run, which is made if there is none. A new run gets a `run.toml` with the defaults of `game` and with
    /// `overrides`. An existing run must be of `game`, if a game is named.
    ///
    /// # Errors
    /// The folder cannot be used for this run; the text says why.
    pub fn open(path: &Path, game: Option<&str>, overrides: &[Override]) -> anyhow::Result<Self> {
        Self::open_with(path, game, || new_run(game, overrides))
    }

    /// Locks the folder of a run like [`RunFolder::open`]. A new run gets a `run.toml` with the configuration that `new` returns.
    ///
    /// # Errors
    /// The folder cannot be used for this run; the text says why.
    pub fn open_with(
        path: &Path,
        game: Option<&str>,
        new: impl FnOnce() -> Result<RunConfig, ConfigError>,
    ) -> anyhow::Result<Self> {
        let (path, lock) = locked(path)?;
        let file = path.join(CONFIG);
        let created = !file.try_exists().with_context(cannot_use(&file))?;
        if created || is_blank(&file) {
            let found: Vec<&str> = OF_A_RUN
                .into_iter()
                .filter(|name| path.join(name).exists())
                .collect();
            ensure!(
                found.is_empty(),
                "{} has {} of a run, but its {CONFIG} is {}; restore that file, or name another folder with --run",
                path.display(),
                found.join(", "),
                if created { "missing" } else { "empty" }
            );
        }
        if created {
            let mut config = new().with_context(cannot_use(&file))?;
            description::add(&path, &mut config.game)?;
            durable::write(&file, game::template(&config).as_bytes()).with_context(cannot_use(&file))?;
        }
        let text = fs::read_to_string(&file).with_context(cannot_use(&file))?;
        let mut found = config::parse(&text).with_context(cannot_use(&file))?;
        if let Some(wanted) = game.filter(|wanted| !game::is_of(&found.game, wanted)) {
            bail!(
                "{} is a run of {}, not of {wanted}; name another folder with --run",
                path.display(),
                found.game.title()
            );
        }
        found.resolve_paths(&path);
        let folder = Self {
            note: description::renew(&found.game)?,
            path,
            created,
            _lock: lock,
        };
        folder.load(&[])?;
        Ok(folder)
    }

    /// Locks the folder in which the figures of a run elsewhere are kept, which is made if there is none. Its `run.toml` has the settings
    /// of `file`, that of the run's roles, with `overrides`.
    ///
    /// # Errors
    /// The folder cannot be used for this run; the text says why.
    pub fn follow(path: &Path, file: &Path, overrides: &[Override]) -> anyhow::Result<Self> {
        // Folders in the copy must not be relative to another place.
        let config = load(&fs::canonicalize(file).with_context(cannot_use(file))?, overrides)?;
        let (path, lock) = locked(path)?;
        let file = path.join(CONFIG);
        let created = match fs::read_to_string(&file) {
            Ok(known) if !known.starts_with(FOLLOWED) => {
                bail!(
                    "{} is a run on this machine, not the record of one elsewhere; name another folder with --run",
                    path.display()
                );
            }
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error).with_context(cannot_use(&file)),
        };
        let text = format!("{FOLLOWED}{}", game::template(&config));
        durable::write(&file, text.as_bytes()).with_context(cannot_use(&file))?;
        Ok(Self {
            path,
            created,
            note: None,
            _lock: lock,
        })
    }

    /// Returns a sentence that is to be told: that the text of the game's rules is not that of the last start.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
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
    /// [`ConfigError`] with the name of the file.
    pub fn load(&self, overrides: &[Override]) -> anyhow::Result<RunConfig> {
        load(&self.config_file(), overrides)
    }
}

fn load(file: &Path, overrides: &[Override]) -> anyhow::Result<RunConfig> {
    let config = config::load_with(Some(file), overrides).with_context(cannot_use(file))?;
    game::check(&config.game).with_context(cannot_use(file))?;
    Ok(config)
}

/// Returns the configuration of a new run: the settings of `game`, with `overrides`.
///
/// # Errors
/// [`ConfigError`] naming the game or the key.
pub fn new_run(game: Option<&str>, overrides: &[Override]) -> Result<RunConfig, ConfigError> {
    let mut config = RunConfig::default();
    config.game = game::defaults(game.unwrap_or(&config.game.name))?;
    let written = config::template(&config);
    // The size of the board is one of the rules, which may be among the overrides.
    let of_game = |single: &&Override| single.key().starts_with("game.");
    let of_game: Vec<Override> = overrides.iter().filter(of_game).cloned().collect();
    let game = config::parse_with(&written, &of_game)?.game;
    let settings = [&game::settings(&game)?, overrides].concat();
    let config = config::parse_with(&written, &settings)?;
    game::check(&config.game)?;
    Ok(config)
}

/// True if a file has nothing but white space.
fn is_blank(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.trim().is_empty())
}

/// True if the configuration in the folder of a run is that of a run elsewhere, which is followed.
pub fn is_followed(run: &Path) -> bool {
    fs::read_to_string(run.join(CONFIG)).is_ok_and(|text| text.starts_with(FOLLOWED))
}

/// Returns the first part of an error about a file or folder.
fn cannot_use(path: &Path) -> impl Fn() -> String {
    move || format!("cannot use {}", path.display())
}

/// Makes and locks a folder; returns its absolute path and the lock.
fn locked(path: &Path) -> anyhow::Result<(PathBuf, File)> {
    for folder in [path.to_owned(), path.join("logs")] {
        fs::create_dir_all(&folder).with_context(cannot_use(&folder))?;
    }
    let path = fs::canonicalize(path).with_context(cannot_use(path))?;
    // The settings of the roles hold the path as text.
    ensure!(
        path.to_str().is_some(),
        "the path of the folder {} is not UTF-8; name another one",
        path.display()
    );
    let lock = lock(&path)?;
    Ok((path, lock))
}

fn lock(folder: &Path) -> anyhow::Result<File> {
    let path = folder.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .with_context(cannot_use(&path))?;
    match exclusive(&file) {
        Ok(()) => {}
        Err(TryLockError::Error(source)) => return Err(source).with_context(cannot_use(&path)),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            let holder = match holder.trim() {
                "" => String::new(),
                pid => format!(" (process {pid})"),
            };
            bail!(
                "another `minuet up`{holder} works in {}; stop it first, or name another folder with --run",
                folder.display()
            );
        }
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .with_context(cannot_use(&path))?;
    Ok(file)
}

/// Locks a file. Programs that look whether a run is at work lock it together, for a moment, which is waited out.
fn exclusive(file: &File) -> Result<(), TryLockError> {
    let deadline = Instant::now() + LOOKS;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {}
            locked => return locked,
        }
        // Another `minuet up` keeps its lock.
        file.try_lock_shared()?;
        file.unlock().map_err(TryLockError::Error)?;
        thread::sleep(Duration::from_millis(1));
    }
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
        let error = format!("{error:#}");
        assert!(error.contains("run.toml: unknown key `search.visit`"), "{error}");
    }

    #[test]
    fn rules_that_are_not_possible_make_no_new_run() {
        let parent = tempfile::tempdir().unwrap();
        for rule in ["komi=7.25", "komi=nan", "komi=\"7\"", "size=1", "comi=7.5"] {
            let rule = overrides(&[&format!("game.rules.{rule}")]);
            let error = RunFolder::open(parent.path(), Some("go:5"), &rule).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains("`game.rules`"), "{error}");
            assert!(!parent.path().join(CONFIG).exists());
        }
        drop(RunFolder::open(parent.path(), Some("go:5"), &[]).unwrap());
    }

    #[test]
    fn a_run_without_settings_is_not_a_new_run() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("run");
        drop(RunFolder::open(&path, Some("connect-four"), &[]).unwrap());
        fs::create_dir(path.join("replay")).unwrap();
        fs::write(path.join(OF_A_RUN[0]), "{}").unwrap();
        let refused = |is: &str| {
            let error = RunFolder::open(&path, None, &[]).unwrap_err().to_string();
            let expected = format!("has replay/store.json of a run, but its run.toml is {is}");
            assert!(error.contains(&expected), "{error}");
        };
        fs::write(path.join(CONFIG), "\n").unwrap();
        refused("empty");
        fs::remove_file(path.join(CONFIG)).unwrap();
        refused("missing");
        // Folders alone are for example those of other disks.
        fs::remove_file(path.join(OF_A_RUN[0])).unwrap();
        assert!(RunFolder::open(&path, None, &[]).unwrap().is_new());
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
        assert!(format!("{refused:#}").contains("`search.visits` must be at least 1"));
        assert!(!parent.path().join("run.toml").exists());

        let first = RunFolder::open(parent.path(), None, &[]).unwrap();
        let error = RunFolder::open(parent.path(), None, &[]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("(process {})", std::process::id())),
            "{error}"
        );
        drop(first);
        // Somebody looks whether the run is at work.
        let look = File::open(parent.path().join("lock")).unwrap();
        look.try_lock_shared().unwrap();
        let looking = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(look);
        });
        assert!(RunFolder::open(parent.path(), None, &[]).is_ok());
        looking.join().unwrap();
    }
}
