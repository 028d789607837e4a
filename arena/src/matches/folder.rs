//! What is kept of a match: [`MatchFolder`].
//!
//! | file | what it is |
//! |---|---|
//! | `match.json` | the [`Plan`] |
//! | `games.jsonl` | one [`GameRecord`] a line, in the order in which games ended; a line is written at once or not at all, but for the last one of a process that was killed in the middle of writing |
//! | `lock` | held by the one process that plays it |

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use games::Game;

use super::{plan::Plan, record::GameRecord};

const PLAN: &str = "match.json";
const GAMES: &str = "games.jsonl";
const LOCK: &str = "lock";

/// A folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The file system.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process plays it.
    #[error("another process plays the match in {0}")]
    Locked(PathBuf),
    /// It holds another match.
    #[error(
        "{0} holds another match (players, seed, openings or rules differ); name another folder, or remove it"
    )]
    Another(PathBuf),
    /// A file that is not what was written.
    #[error("{path}{}: {reason}", .line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: Option<usize>,
        /// What is wrong with it.
        reason: String,
    },
}

/// A match's folder while this process plays it.
#[derive(Debug)]
pub struct MatchFolder {
    path: PathBuf,
    games: File,
    /// Bytes of whole lines.
    length: u64,
    records: BTreeMap<u64, GameRecord>,
    _lock: File,
}

impl MatchFolder {
    /// Opens the folder of a match of `G`, or makes it. The games of a match that was interrupted are read and replayed;
    /// half a line at the end, of a process that was killed while writing it, is removed.
    ///
    /// # Errors
    /// [`FolderError`]
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
                let begun: Plan = serde_json::from_slice(&bytes).map_err(|error| FolderError::Damaged {
                    path: plan_file.clone(),
                    line: None,
                    reason: error.to_string(),
                })?;
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

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The games that are over, by their number. Those beyond the plan's pairs are among them.
    pub fn records(&self) -> &BTreeMap<u64, GameRecord> {
        &self.records
    }

    /// Keeps a game; one whose number is known already is not counted again.
    ///
    /// # Errors
    /// [`FolderError::Io`]; the game is not kept then, and others may be.
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
        // What was written of a line when the disk was full must not begin the next one.
        self.games.set_len(self.length).map_err(io)?;
        // One call: nothing of it is there, or all of it, unless the process is killed within the call.
        self.games.write_all(&line).map_err(io)?;
        self.length += line.len() as u64;
        self.records.insert(record.game, record);
        Ok(())
    }

    /// Writes a file of the folder whole.
    ///
    /// # Errors
    /// [`FolderError::Io`]
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, FolderError> {
        let path = self.path.join(name);
        let draft = self.path.join(format!("{name}.draft"));
        fs::write(&draft, text)
            .and_then(|()| fs::rename(&draft, &path))
            .map_err(|source| FolderError::Io {
                path: path.clone(),
                source,
            })?;
        Ok(path)
    }

    /// Waits until what was written would survive a loss of power.
    ///
    /// # Errors
    /// [`FolderError::Io`]
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

fn write_plan(path: &Path, plan: &Plan) -> io::Result<()> {
    let draft = path.with_extension("draft");
    let mut file = File::create(&draft)?;
    file.write_all(&serde_json::to_vec_pretty(plan)?)?;
    file.sync_all()?;
    fs::rename(draft, path)
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
            return Err(damaged(format!("game {} is one of other players", record.game)));
        }
        record.replay::<G>(rules).map_err(damaged)?;
        records.insert(record.game, record);
    }
    Ok((records, whole as u64))
}
