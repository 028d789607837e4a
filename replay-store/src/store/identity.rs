//! Identity of a store's folder (`store.json`), and the lock that excludes a second process.

use std::{io, path::Path};

use games::{erased::AnyGame, registry};
use serde::{Deserialize, Serialize};

use crate::{
    error::OpenError,
    log::files::{Files, LockGuard},
    settings::Settings,
};

/// Version of `store.json`. It is the version of the whole folder: a change of any frame or file raises it, so that an older build refuses
/// the folder at once.
const VERSION: u32 = 1;

/// The game and representation of all positions in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Version of the folder.
    pub version: u32,
    /// The game's name, with the size of the board if there are several.
    pub game: String,
    /// The representation options of its rows.
    pub options: u32,
    /// Name of the store's folder in an archive. Drawn at random when the store is first opened with an archive, so that stores do not
    /// share names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    archive_name: Option<String>,
}

impl Identity {
    /// Returns the identity of a store without games.
    pub fn new(game: &str, options: u32) -> Self {
        Self {
            version: VERSION,
            game: game.into(),
            options,
            archive_name: None,
        }
    }

    /// Returns the name of the store in an archive, which is drawn and saved first if there is none.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn archive_name(&mut self, files: &dyn Files, folder: &Path) -> io::Result<String> {
        if let Some(name) = &self.archive_name {
            return Ok(name.clone());
        }
        let name = format!("store-{:016x}", rand::random::<u64>());
        self.archive_name = Some(name.clone());
        self.save(files, folder)?;
        Ok(name)
    }

    /// Writes the identity atomically and durably.
    fn save(&self, files: &dyn Files, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        files.replace(&folder.join(FILE), &text)
    }
}

const FILE: &str = "store.json";
/// File in a store's folder that a process locks while it has the store open.
pub const LOCK: &str = "lock";

/// Lock of a folder, released when it is dropped. A store that is open for reading may have none.
pub type Claim = Option<LockGuard>;

/// Locks a store's folder for writing, creates it if it does not exist, and reads its identity.
///
/// # Errors
/// [`OpenError`] if the folder is in use, or holds something else, another game or a newer format. Nothing is changed then.
pub fn claim(files: &dyn Files, settings: &Settings) -> Result<(Claim, Identity), OpenError> {
    let folder = settings.folder.as_path();
    let file = folder.join(FILE);
    let is_store = files.exists(&file);
    if is_store {
        read(files, settings)?;
    } else if files.exists(folder) {
        let entries = files.list(folder).map_err(OpenError::io(folder))?;
        let is_known = |name: &std::ffi::OsStr| [LOCK, FILE, "store.new"].iter().any(|known| name == *known);
        if !entries
            .iter()
            .all(|entry| entry.path.file_name().is_some_and(is_known))
        {
            return Err(OpenError::Refused(format!(
                "{} holds files but no replay store; choose an empty folder",
                folder.display()
            )));
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
        read(files, settings)?
    } else {
        let identity = Identity::new(&settings.game, settings.options);
        identity.save(files, folder).map_err(OpenError::io(&file))?;
        identity
    };
    Ok((Some(lock), identity))
}

/// Locks the folder of an existing store against writers, and checks its identity. A folder without a lock file, for example a
/// copy, is not locked.
///
/// # Errors
/// [`OpenError`] as for [`claim`], and if there is no store.
pub fn claim_to_read(files: &dyn Files, settings: &Settings) -> Result<Claim, OpenError> {
    let folder = settings.folder.as_path();
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
    read(files, settings)?;
    Ok(lock)
}

/// Reads the identity of the store in the folder.
fn read(files: &dyn Files, settings: &Settings) -> Result<Identity, OpenError> {
    #[derive(Deserialize)]
    struct Versions {
        version: Option<u32>,
        /// Version in the folders of builds before release 0.1.
        format: Option<u32>,
    }

    let file = settings.folder.join(FILE);
    let folder = settings.folder.display();
    let damaged = |problem: serde_json::Error| {
        OpenError::Refused(format!(
            "{} is damaged ({problem}); restore it, or move the folder away to start afresh",
            file.display()
        ))
    };
    let text = files.read(&file).map_err(OpenError::io(&file))?;
    match serde_json::from_slice(&text).map_err(damaged)? {
        Versions {
            version: Some(VERSION),
            ..
        } => {}
        Versions {
            version: None,
            format: Some(_),
        } => {
            return Err(OpenError::Refused(format!(
                "{folder} was written by a build before release 0.1, whose formats this build does not read; nothing was changed. \
                 Begin a new run, or use the build that wrote it"
            )));
        }
        Versions { version, .. } => {
            let found = version.map_or_else(|| "no version".into(), |version| format!("version {version}"));
            return Err(OpenError::Newer { path: file, found });
        }
    }
    let identity: Identity = serde_json::from_slice(&text).map_err(damaged)?;
    // Stores of older versions have no size in their names. Their boards have the usual size.
    let title = |game: &str| registry::find(game).map_or_else(|_| game.to_owned(), AnyGame::title);
    if (title(&identity.game), identity.options) != (title(&settings.game), settings.options) {
        return Err(OpenError::Refused(format!(
            "{folder} holds games of {} (options {}), this run plays {} (options {}); choose another folder for this run",
            identity.game, identity.options, settings.game, settings.options
        )));
    }
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::log::files::Real;

    fn claim(folder: &Path, game: &str, options: u32) -> Result<(Claim, Identity), OpenError> {
        let mut settings = Settings::from_config(&config::RunConfig::default());
        (settings.folder, settings.game, settings.options) = (folder.into(), game.into(), options);
        super::claim(&Real, &settings)
    }

    #[test]
    fn a_folder_is_one_stores_and_one_games() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("replay");
        let (first, mut identity) = claim(&path, "chess", 0).unwrap();
        let error = claim(&path, "chess", 0).unwrap_err();
        assert!(matches!(error, OpenError::InUse { .. }), "{error}");
        let name = identity.archive_name(&Real, &path).unwrap();
        assert_eq!(identity.archive_name(&Real, &path).unwrap(), name);
        drop(first);
        let error = claim(&path, "othello", 0).unwrap_err();
        assert!(error.to_string().contains("chess"), "{error}");
        assert_eq!(claim(&path, "chess", 0).unwrap().1, identity);
    }

    #[test]
    fn foreign_damaged_earlier_and_newer_folders_are_named_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join("thesis.tex"), "years of work").unwrap();
        let error = claim(path, "chess", 0).unwrap_err();
        assert!(error.to_string().contains("no replay store"), "{error}");
        assert_eq!(fs::read_dir(path).unwrap().count(), 1);
        fs::write(path.join(FILE), "{\"format\":").unwrap();
        let error = claim(path, "chess", 0).unwrap_err();
        assert!(error.to_string().contains("is damaged (EOF"), "{error}");
        fs::write(path.join(FILE), "{\"version\":4,\"shards\":3}").unwrap();
        let error = claim(path, "chess", 0).unwrap_err();
        assert!(matches!(error, OpenError::Newer { .. }), "{error}");
        assert!(error.to_string().contains("version 4"), "{error}");
        fs::write(path.join(FILE), "{\"format\":3,\"game\":\"chess\",\"options\":0}").unwrap();
        let error = claim(path, "chess", 0).unwrap_err();
        assert!(error.to_string().contains("before release 0.1"), "{error}");
        assert_eq!(fs::read_dir(path).unwrap().count(), 2, "no lock file is made");
    }
}
