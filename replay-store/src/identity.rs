//! What a store's folder is for: `store.json`, and the lock that keeps a second process out.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::error::OpenError;

/// The folder's format.
const FORMAT: u32 = 1;

/// The one game and representation whose positions a store holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The folder's format.
    pub format: u32,
    /// The game's name.
    pub game: String,
    /// The representation options of its rows.
    pub options: u32,
    /// Values in each row, 0 where rows vary; `None` until the first game fixes it.
    pub row_length: Option<u32>,
}

impl Identity {
    /// For a store without games.
    pub fn new(game: &str, options: u32) -> Self {
        Self {
            format: FORMAT,
            game: game.into(),
            options,
            row_length: None,
        }
    }

    /// Writes it whole or not at all, durably.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        write_whole(&folder.join(FILE), &text)
    }
}

const FILE: &str = "store.json";
const LOCK: &str = "lock";

/// A folder that is this process's alone while this lives.
#[derive(Debug)]
pub struct Claim {
    _lock: File,
}

/// Claims a store's folder, makes it where there is none, and reads what it is for.
///
/// # Errors
/// [`OpenError`] where it is in use, holds something else, or another game.
pub fn claim(folder: &Path, game: &str, options: u32) -> Result<(Claim, Identity), OpenError> {
    fs::create_dir_all(folder).map_err(OpenError::io(folder))?;
    let file = folder.join(FILE);
    let entries = fs::read_dir(folder).map_err(OpenError::io(folder))?;
    let is_empty = entries.flatten().all(|entry| {
        [LOCK, FILE, "store.new"]
            .iter()
            .any(|known| entry.file_name() == *known)
    });
    let is_store = file.exists();
    if !is_empty && !is_store {
        return Err(OpenError::Foreign {
            folder: folder.into(),
        });
    }
    let lock_path = folder.join(LOCK);
    let lock = File::create(&lock_path).map_err(OpenError::io(&lock_path))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(OpenError::InUse {
                folder: folder.into(),
            });
        }
        Err(TryLockError::Error(source)) => {
            return Err(OpenError::Io {
                path: lock_path,
                source,
            });
        }
    }
    let identity = if is_store {
        read(&file)?
    } else {
        let identity = Identity::new(game, options);
        identity.save(folder).map_err(OpenError::io(&file))?;
        identity
    };
    if (identity.game.as_str(), identity.options) != (game, options) {
        return Err(OpenError::OtherGame {
            folder: folder.into(),
            stored: format!("{} (options {})", identity.game, identity.options),
            asked: format!("{game} (options {options})"),
        });
    }
    Ok((Claim { _lock: lock }, identity))
}

fn read(file: &PathBuf) -> Result<Identity, OpenError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }

    let damaged = |problem: serde_json::Error| OpenError::Identity {
        file: file.clone(),
        problem: problem.to_string(),
    };
    let text = fs::read(file).map_err(OpenError::io(file))?;
    let Format { format } = serde_json::from_slice(&text).map_err(damaged)?;
    if format != FORMAT {
        return Err(OpenError::Format {
            file: file.clone(),
            found: format,
            known: FORMAT,
        });
    }
    serde_json::from_slice(&text).map_err(damaged)
}

/// Replaces a file by these bytes: a reader sees the old or the new, whatever happens in between.
///
/// # Errors
/// What the file system reports.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}

/// Makes creations, renames and removals in a folder durable.
///
/// # Errors
/// What the file system reports.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_stores_and_one_games() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("replay");
        let (first, mut identity) = claim(&path, "chess", 0).unwrap();
        let error = claim(&path, "chess", 0).unwrap_err();
        assert!(matches!(error, OpenError::InUse { .. }), "{error}");
        identity.row_length = Some(42);
        identity.save(&path).unwrap();
        drop(first);
        let error = claim(&path, "othello", 0).unwrap_err();
        assert!(error.to_string().contains("chess"), "{error}");
        assert_eq!(claim(&path, "chess", 0).unwrap().1, identity);
    }

    #[test]
    fn foreign_damaged_and_newer_folders_are_named_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join("thesis.tex"), "years of work").unwrap();
        let error = claim(path, "chess", 0).unwrap_err();
        assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
        assert_eq!(fs::read_dir(path).unwrap().count(), 1);
        fs::write(path.join(FILE), "{\"format\":").unwrap();
        let error = claim(path, "chess", 0).unwrap_err();
        assert!(matches!(error, OpenError::Identity { .. }), "{error}");
        fs::write(path.join(FILE), "{\"format\":2,\"shards\":3}").unwrap();
        let error = claim(path, "chess", 0).unwrap_err();
        assert!(matches!(error, OpenError::Format { found: 2, .. }), "{error}");
    }
}
