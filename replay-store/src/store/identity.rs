//! Identity of a store's folder (`store.json`), and the lock that excludes a second process.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    error::OpenError,
    log::files::{Files, LockGuard},
};

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
    /// Name of the store's folder in an archive. Drawn at random when the store is first opened with an archive, so that stores do not
    /// share names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_name: Option<String>,
}

impl Identity {
    /// For a store without games.
    pub fn new(game: &str, options: u32) -> Self {
        Self {
            format: FORMAT,
            game: game.into(),
            options,
            row_length: None,
            archive_name: None,
        }
    }

    /// Writes it whole or not at all, durably.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn save(&self, files: &dyn Files, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        files.replace(&folder.join(FILE), &text)
    }
}

const FILE: &str = "store.json";
const LOCK: &str = "lock";

/// A folder that is this process's alone while this lives.
#[derive(Debug)]
pub struct Claim {
    _lock: Box<dyn LockGuard>,
}

/// Claims a store's folder, makes it where there is none, and reads what it is for.
///
/// # Errors
/// [`OpenError`] where it is in use, holds something else, or another game.
pub fn claim(
    files: &dyn Files,
    folder: &Path,
    game: &str,
    options: u32,
) -> Result<(Claim, Identity), OpenError> {
    files.create_folder(folder).map_err(OpenError::io(folder))?;
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        files.sync_folder(parent).map_err(OpenError::io(parent))?;
    }
    let file = folder.join(FILE);
    let entries = files.list(folder).map_err(OpenError::io(folder))?;
    let is_empty = entries.iter().all(|entry| {
        [LOCK, FILE, "store.new"]
            .iter()
            .any(|known| entry.path.file_name().is_some_and(|name| name == *known))
    });
    let is_store = files.exists(&file);
    if !is_empty && !is_store {
        return Err(OpenError::Foreign {
            folder: folder.into(),
        });
    }
    let lock_path = folder.join(LOCK);
    let lock = files.lock(&lock_path).map_err(OpenError::io(&lock_path))?;
    let lock = lock.ok_or_else(|| OpenError::InUse {
        folder: folder.into(),
    })?;
    let identity = if is_store {
        read(files, &file)?
    } else {
        let identity = Identity::new(game, options);
        identity.save(files, folder).map_err(OpenError::io(&file))?;
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

fn read(files: &dyn Files, file: &PathBuf) -> Result<Identity, OpenError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }

    let damaged = |problem: serde_json::Error| OpenError::Identity {
        file: file.clone(),
        problem: problem.to_string(),
    };
    let text = files.read(file).map_err(OpenError::io(file))?;
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::log::files::Real;

    fn claim(folder: &Path, game: &str, options: u32) -> Result<(Claim, Identity), OpenError> {
        super::claim(&Real, folder, game, options)
    }

    #[test]
    fn a_folder_is_one_stores_and_one_games() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("replay");
        let (first, mut identity) = claim(&path, "chess", 0).unwrap();
        let error = claim(&path, "chess", 0).unwrap_err();
        assert!(matches!(error, OpenError::InUse { .. }), "{error}");
        identity.row_length = Some(42);
        identity.save(&Real, &path).unwrap();
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
