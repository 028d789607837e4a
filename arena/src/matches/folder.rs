//! The folder of a match on disk: [`MatchFolder`].
//!
//! | file | contents |
//! |---|---|
//! | `match.json` | the [`Plan`] |
//! | `games.jsonl` | one [`GameRecord`] per line, in the order in which the games ended; only the last line can be incomplete, if the process was killed while writing it |
//! | `lock` | locked by the process that plays the match |

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use games::erased::Variant;
use serde::Deserialize;

use super::{
    plan::{Plan, SCHEMA},
    record::{GameRecord, Result as GameResult},
};
use crate::files::{LineFile, cannot_use, lock};

pub(crate) const PLAN: &str = "match.json";
pub(crate) const GAMES: &str = "games.jsonl";

/// The folder of a match, locked by this process.
#[derive(Debug)]
pub struct MatchFolder {
    path: PathBuf,
    games: LineFile,
    records: BTreeMap<u64, GameRecord>,
    _lock: File,
}

impl MatchFolder {
    /// Opens the folder of a match, or creates it. Reads and replays the games of an interrupted match; those that do not count, because
    /// the rules failed, are played again. Removes an incomplete last line, left by a process that was killed while writing it.
    ///
    /// # Errors
    /// The folder is locked, damaged, or holds another match.
    pub fn open(path: &Path, plan: &Plan) -> anyhow::Result<Self> {
        let variant = plan.variant()?;
        let lock = lock(path).with_context(|| cannot_use(path))?;
        let lock = lock.with_context(|| format!("another process plays the match in {}", path.display()))?;
        let plan_file = path.join(PLAN);
        let begun = match fs::read(&plan_file) {
            Ok(bytes) => Some(read_plan(&plan_file, &bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| cannot_use(&plan_file)),
        };
        ensure!(
            begun.as_ref().is_none_or(|begun| plan.continues(begun)),
            "{} holds another match (players, seed, openings or rules differ); name another folder, or remove it",
            path.display()
        );
        if begun.is_none_or(|begun| begun.pairs < plan.pairs) {
            let text = serde_json::to_vec_pretty(plan)?;
            durable::write(&plan_file, &text).with_context(|| cannot_use(&plan_file))?;
        }
        let games_file = path.join(GAMES);
        let (games, lines) = LineFile::open(&games_file).with_context(|| cannot_use(&games_file))?;
        Ok(Self {
            path: path.into(),
            games,
            records: read_games(&lines, &games_file, plan, &*variant)?,
            _lock: lock,
        })
    }

    /// The finished games by their number, including games beyond the pairs of the plan.
    pub fn records(&self) -> &BTreeMap<u64, GameRecord> {
        &self.records
    }

    /// Saves a game. A game whose number is known already is ignored.
    ///
    /// # Errors
    /// The game cannot be written. Later games can still be added.
    pub fn add(&mut self, record: GameRecord) -> anyhow::Result<()> {
        if !self.records.contains_key(&record.game) {
            let appended = self.games.append(&record);
            appended.with_context(|| cannot_use(&self.path.join(GAMES)))?;
            self.records.insert(record.game, record);
        }
        Ok(())
    }

    /// Writes a file of the folder, so that a reader sees the old content or the new one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path.join(name);
        durable::write(&path, text.as_bytes()).with_context(|| cannot_use(&path))?;
        Ok(path)
    }

    /// Makes all games durable.
    ///
    /// # Errors
    /// The disk fails.
    pub fn sync(&self) -> anyhow::Result<()> {
        let synced = self.games.sync();
        synced.with_context(|| cannot_use(&self.path.join(GAMES)))
    }
}

/// Parses a plan. The schema, which is that of all files of the folder, is read first.
fn read_plan(path: &Path, bytes: &[u8]) -> anyhow::Result<Plan> {
    #[derive(Deserialize)]
    struct Schema {
        schema: u64,
    }

    let name = || path.display().to_string();
    let Schema { schema } = serde_json::from_slice(bytes).with_context(name)?;
    ensure!(
        schema == u64::from(SCHEMA),
        "{} is of schema {schema}, which this build does not know; nothing was changed. Continue the match with the build that \
         began it, or name another folder",
        path.display()
    );
    serde_json::from_slice(bytes).with_context(name)
}

fn read_games(
    bytes: &[u8],
    path: &Path,
    plan: &Plan,
    variant: &dyn Variant,
) -> anyhow::Result<BTreeMap<u64, GameRecord>> {
    let mut records = BTreeMap::new();
    for (line, text) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        if text.is_empty() {
            continue;
        }
        let place = || format!("{}, line {line}", path.display());
        let record: GameRecord = serde_json::from_slice(text).with_context(place)?;
        if record.players != plan.slot(record.game).players {
            bail!(
                "{}: game {} has other players than the plan",
                place(),
                record.game
            );
        }
        if record.result == GameResult::Uncounted {
            continue;
        }
        record.replay(variant).with_context(place)?;
        records.insert(record.game, record);
    }
    Ok(records)
}
