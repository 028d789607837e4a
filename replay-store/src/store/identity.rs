//! Identity of a store's folder (`store.json`), and the lock that excludes a second process.

use std::{io, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    error::OpenError,
    log::files::{Files, LockGuard},
};

/// Version of `store.json` that this build writes. It stands for the whole folder: a change of any frame or file raises it, so that an
/// older build refuses the folder at once. Version 1 has frames whose checksums do not cover the magic. Version 2 has records without
/// search results.
const FORMAT: u32 = 3;

/// Versions of `store.json` that this build reads.
pub const FORMATS: &[u32] = &[1, 2, FORMAT];

/// The game and representation of all positions in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Version of the folder's format.
    pub format: u32,
    /// The game's name.
    pub game: String,
    /// The representation options of its rows.
    pub options: u32,
    /// Row length, which earlier builds took from the first game. Rows are checked against the game's row layout.
    #[serde(default, rename = "row_length", skip_serializing)]
    _row_length: Option<u32>,
    /// Name of the store's folder in an archive. Drawn at random when the store is first opened with an archive, so that stores do not
    /// share names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_name: Option<String>,
}

impl Identity {
    /// Returns the identity of a store without games.
    pub fn new(game: &str, options: u32) -> Self {
        Self {
            format: FORMAT,
            game: game.into(),
            options,
            _row_length: None,
            archive_name: None,
        }
    }

    /// Raises the format to the version that this build writes. Returns true if the version was older.
    pub fn upgrade(&mut self) -> bool {
        std::mem::replace(&mut self.format, FORMAT) < FORMAT
    }

    /// Writes the identity atomically and durably.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn save(&self, files: &dyn Files, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        files.replace(&folder.join(FILE), &text)
    }
}

const FILE: &str = "store.json";
const LOCK: &str = "lock";

/// Lock of a folder, released when it is dropped.
#[derive(Debug)]
pub struct Claim {
    _lock: Option<Box<dyn LockGuard>>,
}

/// The store that a folder is expected to contain.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Name of the game.
    pub game: &'a str,
    /// Representation options of the rows.
    pub options: u32,
    /// Versions of `store.json` that the build reads.
    pub formats: &'a [u32],
}

/// Locks a store's folder for writing, creates it if it does not exist, and reads its identity.
///
/// # Errors
/// [`OpenError`] if the folder is in use, or holds something else, another game or a newer format. Nothing is changed then.
pub fn claim(files: &dyn Files, folder: &Path, wanted: Wanted<'_>) -> Result<(Claim, Identity), OpenError> {
    let file = folder.join(FILE);
    let is_store = files.exists(&file);
    if is_store {
        read(files, folder, wanted)?;
    } else if files.exists(folder) {
        let entries = files.list(folder).map_err(OpenError::io(folder))?;
        let is_known = |name: &std::ffi::OsStr| [LOCK, FILE, "store.new"].iter().any(|known| name == *known);
        if !entries
            .iter()
            .all(|entry| entry.path.file_name().is_some_and(is_known))
        {
            return Err(OpenError::Foreign {
                folder: folder.into(),
            });
        }
    }
    files.create_folder(folder).map_err(OpenError::io(folder))?;
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        files.sync_folder(parent).map_err(OpenError::io(parent))?;
    }
    let lock_path = folder.join(LOCK);
    let lock = files.lock(&lock_path).map_err(OpenError::io(&lock_path))?;
    let lock = lock.ok_or_else(|| OpenError::InUse {
        folder: folder.into(),
    })?;
    let identity = if is_store {
        read(files, folder, wanted)?
    } else {
        let identity = Identity::new(wanted.game, wanted.options);
        identity.save(files, folder).map_err(OpenError::io(&file))?;
        identity
    };
    Ok((Claim { _lock: Some(lock) }, identity))
}

/// Locks the folder of an existing store against writers, and reads its identity. A folder without a lock file, for example a
/// copy, is not locked.
///
/// # Errors
/// [`OpenError`] as for [`claim`], and if there is no store.
pub fn claim_to_read(
    files: &dyn Files,
    folder: &Path,
    wanted: Wanted<'_>,
) -> Result<(Claim, Identity), OpenError> {
    let lock_path = folder.join(LOCK);
    let lock = match files.exists(&lock_path) {
        true => Some(
            files
                .lock_to_read(&lock_path)
                .map_err(OpenError::io(&lock_path))?
                .ok_or_else(|| OpenError::InUse {
                    folder: folder.into(),
                })?,
        ),
        false => None,
    };
    let identity = read(files, folder, wanted)?;
    Ok((Claim { _lock: lock }, identity))
}

/// Reads the identity of the store in `folder`.
fn read(files: &dyn Files, folder: &Path, wanted: Wanted<'_>) -> Result<Identity, OpenError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }

    let file = folder.join(FILE);
    let damaged = |problem: serde_json::Error| OpenError::Identity {
        file: file.clone(),
        problem: problem.to_string(),
    };
    let text = files.read(&file).map_err(OpenError::io(&file))?;
    let Format { format } = serde_json::from_slice(&text).map_err(damaged)?;
    if !wanted.formats.contains(&format) {
        return Err(OpenError::Newer {
            path: file.clone(),
            found: format!("format {format}"),
        });
    }
    let identity: Identity = serde_json::from_slice(&text).map_err(damaged)?;
    if (identity.game.as_str(), identity.options) != (wanted.game, wanted.options) {
        return Err(OpenError::OtherGame {
            folder: folder.into(),
            stored: format!("{} (options {})", identity.game, identity.options),
            asked: format!("{} (options {})", wanted.game, wanted.options),
        });
    }
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::log::files::Real;

    fn claim(folder: &Path, game: &str, options: u32) -> Result<(Claim, Identity), OpenError> {
        let wanted = Wanted {
            game,
            options,
            formats: FORMATS,
        };
        super::claim(&Real, folder, wanted)
    }

    #[test]
    fn a_folder_is_one_stores_and_one_games() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("replay");
        let (first, mut identity) = claim(&path, "chess", 0).unwrap();
        let error = claim(&path, "chess", 0).unwrap_err();
        assert!(matches!(error, OpenError::InUse { .. }), "{error}");
        identity.archive_name = Some("store-1".into());
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
        fs::write(path.join(FILE), "{\"format\":4,\"shards\":3}").unwrap();
        let error = claim(path, "chess", 0).unwrap_err();
        assert!(matches!(error, OpenError::Newer { .. }), "{error}");
        assert!(error.to_string().contains("format 4"), "{error}");
        assert_eq!(fs::read_dir(path).unwrap().count(), 2, "no lock file is made");
    }
}
