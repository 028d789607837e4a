//! The folder of a match on disk: [`MatchFolder`].
//!
//! | file | contents |
//! |---|---|
//! | `match.json` | the [`Plan`] |
//! | `games.jsonl` | one [`GameRecord`] per line, in the order in which the games ended; only the last line can be incomplete, if the process was killed while writing it |
//! | `lock` | locked by the process that plays the match |

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use games::Game;
use serde::Deserialize;

use super::{
    plan::{Plan, SCHEMA},
    record::GameRecord,
};

const PLAN: &str = "match.json";
const GAMES: &str = "games.jsonl";
const LOCK: &str = "lock";

/// Error: the folder of a match cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file cannot be read or written.
    #[error("cannot use {path}")]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// Another process plays the match.
    #[error("another process plays the match in {0}")]
    Locked(PathBuf),
    /// The folder holds another match.
    #[error(
        "{0} holds another match (players, seed, openings or rules differ); name another folder, or remove it"
    )]
    Another(PathBuf),
    /// A newer build wrote the folder. Nothing was changed.
    #[error(
        "{path} is of schema {found}, which this build does not know; nothing was changed. \
         Continue the match with the build that began it, or a newer one, or name another folder"
    )]
    Newer {
        /// Path of the plan.
        path: PathBuf,
        /// Schema of the plan.
        found: u64,
    },
    /// A file is damaged.
    #[error("{path}{}: {reason}", .line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: Option<usize>,
        /// Reason.
        reason: String,
    },
}

/// The folder of a match, locked by this process.
#[derive(Debug)]
pub struct MatchFolder {
    path: PathBuf,
    games: File,
    /// Length of all complete lines in bytes.
    length: u64,
    records: BTreeMap<u64, GameRecord>,
    _lock: File,
}

impl MatchFolder {
    /// Opens the folder of a match of `G`, or creates it. Reads and replays the games of an interrupted match. Removes an incomplete
    /// last line, left by a process that was killed while writing it.
    ///
    /// # Errors
    /// [`FolderError`] if the folder is locked, damaged, or holds another match.
    pub fn open<G: Game>(path: &Path, plan: &Plan, rules: &G::Rules) -> Result<Self, FolderError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| FolderError::Io { path, source }
        };
        fs::create_dir_all(path).map_err(io(path))?;
        let lock = lock(path)?;
        let plan_file = path.join(PLAN);
        match fs::read(&plan_file) {
            Ok(bytes) => {
                let begun = read_plan(&plan_file, &bytes)?;
                if !plan.continues(&begun) {
                    return Err(FolderError::Another(path.into()));
                }
                if begun.pairs < plan.pairs {
                    write_plan(&plan_file, plan).map_err(io(&plan_file))?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write_plan(&plan_file, plan).map_err(io(&plan_file))?;
            }
            Err(error) => return Err(io(&plan_file)(error)),
        }
        let games_file = path.join(GAMES);
        let mut games = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&games_file)
            .map_err(io(&games_file))?;
        let (records, length) = read_games::<G>(&mut games, &games_file, plan, rules)?;
        Ok(Self {
            path: path.into(),
            games,
            length,
            records,
            _lock: lock,
        })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The finished games by their number, including games beyond the pairs of the plan.
    pub fn records(&self) -> &BTreeMap<u64, GameRecord> {
        &self.records
    }

    /// Saves a game. A game whose number is known already is ignored.
    ///
    /// # Errors
    /// [`FolderError::Io`] if the game cannot be written. Later games can still be added.
    pub fn add(&mut self, record: GameRecord) -> Result<(), FolderError> {
        if self.records.contains_key(&record.game) {
            return Ok(());
        }
        let io = |source| FolderError::Io {
            path: self.path.join(GAMES),
            source,
        };
        let mut line = serde_json::to_vec(&record).map_err(|error| io(error.into()))?;
        line.push(b'\n');
        // Removes a partial line that a full disk has left.
        self.games.set_len(self.length).map_err(io)?;
        // One call writes the whole line, unless the process is killed within the call.
        self.games.write_all(&line).map_err(io)?;
        self.length += line.len() as u64;
        self.records.insert(record.game, record);
        Ok(())
    }

    /// Writes a file of the folder, so that a reader sees the old content or the new one.
    ///
    /// # Errors
    /// [`FolderError::Io`] if the file cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, FolderError> {
        let path = self.path.join(name);
        durable::write(&path, text.as_bytes()).map_err(|source| FolderError::Io {
            path: path.clone(),
            source,
        })?;
        Ok(path)
    }

    /// Makes all games durable.
    ///
    /// # Errors
    /// [`FolderError::Io`] if the disk fails.
    pub fn sync(&self) -> Result<(), FolderError> {
        self.games.sync_all().map_err(|source| FolderError::Io {
            path: self.path.join(GAMES),
            source,
        })
    }
}

fn lock(folder: &Path) -> Result<File, FolderError> {
    let path = folder.join(LOCK);
    let io = |source| FolderError::Io {
        path: path.clone(),
        source,
    };
    let file = File::create(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FolderError::Locked(folder.into())),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}

/// Parses a plan. The schema, which is that of all files of the folder, is read first.
fn read_plan(path: &Path, bytes: &[u8]) -> Result<Plan, FolderError> {
    #[derive(Deserialize)]
    struct Schema {
        schema: u64,
    }

    let damaged = |error: serde_json::Error| FolderError::Damaged {
        path: path.into(),
        line: None,
        reason: error.to_string(),
    };
    let Schema { schema } = serde_json::from_slice(bytes).map_err(damaged)?;
    if schema != u64::from(SCHEMA) {
        return Err(FolderError::Newer {
            path: path.into(),
            found: schema,
        });
    }
    serde_json::from_slice(bytes).map_err(damaged)
}

fn write_plan(path: &Path, plan: &Plan) -> io::Result<()> {
    durable::write(path, &serde_json::to_vec_pretty(plan)?)
}

fn read_games<G: Game>(
    file: &mut File,
    path: &Path,
    plan: &Plan,
    rules: &G::Rules,
) -> Result<(BTreeMap<u64, GameRecord>, u64), FolderError> {
    let io = |source| FolderError::Io {
        path: path.into(),
        source,
    };
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    file.read_to_end(&mut bytes).map_err(io)?;
    let whole = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    if whole < bytes.len() {
        file.set_len(whole as u64).map_err(io)?;
    }
    let mut records = BTreeMap::new();
    for (line, text) in (1..).zip(bytes[..whole].split(|&byte| byte == b'\n')) {
        if text.is_empty() {
            continue;
        }
        let damaged = |reason: String| FolderError::Damaged {
            path: path.into(),
            line: Some(line),
            reason,
        };
        let record: GameRecord = serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
        let slot = plan.slot(record.game);
        if record.players != slot.players {
            return Err(damaged(format!(
                "game {} has other players than the plan",
                record.game
            )));
        }
        record.replay::<G>(rules).map_err(damaged)?;
        records.insert(record.game, record);
    }
    Ok((records, whole as u64))
}
