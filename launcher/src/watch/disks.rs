//! The disks on which a run keeps its files besides the stored games, each once, with their free bytes.

use std::{
    fmt,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use config::RunConfig;
use indicatif::BinaryBytes;
use serde::{Deserialize, Serialize};

/// Free bytes below which such a disk counts as full. The disk of the stored games has a setting for that, `replay.min_free_mib`.
pub const LEAST_FREE: u64 = 64 << 20;

/// A disk that holds a folder of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Content of the folder.
    pub content: String,
    /// Setting that names the folder.
    pub setting: String,
    /// The folder.
    pub folder: PathBuf,
    /// Free bytes.
    pub free_bytes: u64,
}

impl Disk {
    /// True if the disk has less than `least` free bytes.
    pub fn is_full(&self, least: u64) -> bool {
        self.free_bytes < least
    }
}

/// Names the disk, its free bytes, and what to do.
impl fmt::Display for Disk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            content,
            setting,
            folder,
            free_bytes,
        } = self;
        write!(
            out,
            "{} are free on the disk of {} ({content}); free some space there, or move {setting}",
            BinaryBytes(*free_bytes),
            folder.display()
        )
    }
}

/// Returns the disks of a run's folders on this machine. The disk of the stored games is left out, and so is a folder that does not exist.
pub fn disks(config: &RunConfig) -> Vec<Disk> {
    let store = &config.checkpoints.store;
    let checkpoints = match store.split_once("://") {
        None => Some(PathBuf::from(store)),
        Some(("file", path)) => Some(PathBuf::from(path)),
        Some(_) => None,
    };
    let folders = [
        ("checkpoints", "checkpoints.store", checkpoints),
        (
            "finished games of the actors",
            "actor.spool",
            Some(config.actor.spool.clone()),
        ),
        (
            "state of the learner",
            "learner.folder",
            Some(config.learner.folder.clone()),
        ),
    ];
    let mut known: Vec<u64> = device(&config.replay.folder).into_iter().collect();
    let found = folders.into_iter().filter_map(|(content, setting, folder)| {
        let folder = folder?;
        let device = device(&folder).filter(|device| !known.contains(device))?;
        known.push(device);
        Some(Disk {
            content: content.into(),
            setting: setting.into(),
            free_bytes: free_bytes(&folder)?,
            folder,
        })
    });
    found.collect()
}

fn device(folder: &Path) -> Option<u64> {
    folder.metadata().ok().map(|found| found.dev())
}

/// Free bytes of the disk of a folder, which a role may not have made yet.
pub(super) fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = folder
        .ancestors()
        .find_map(|folder| rustix::fs::statvfs(folder).ok())?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use test_support::SmallDisk;

    use super::*;

    #[test]
    fn each_other_disk_is_named_once_with_its_free_bytes() {
        let (Some(checkpoints), Some(spool)) = (SmallDisk::mount(8), SmallDisk::mount(4)) else {
            return;
        };
        let run = tempfile::tempdir().unwrap();
        let mut config = RunConfig::default();
        config.replay.folder = run.path().join("replay");
        config.learner.folder = spool.path().join("learner");
        config.actor.spool = spool.path().join("spool");
        config.checkpoints.store = format!("file://{}", checkpoints.path().display());
        assert_eq!(disks(&config).len(), 1, "the others do not exist yet");
        for folder in [&config.replay.folder, &config.learner.folder, &config.actor.spool] {
            fs::create_dir_all(folder).unwrap();
        }
        let found = disks(&config);
        let settings: Vec<&str> = found.iter().map(|disk| disk.setting.as_str()).collect();
        assert_eq!(settings, ["checkpoints.store", "actor.spool"]);
        assert!((6 << 20..=8 << 20).contains(&found[0].free_bytes), "{found:?}");
        assert!(found[1].free_bytes <= 4 << 20, "{found:?}");
        spool.fill();
        let full = &disks(&config)[1];
        assert!(full.is_full(1 << 20) && !found[0].is_full(1 << 20));
        let text = full.to_string();
        let end = format!(
            "are free on the disk of {} (finished games of the actors); free some space there, or move actor.spool",
            config.actor.spool.display()
        );
        assert!(text.ends_with(&end), "{text}");
        // All on one disk: the store's own figures tell it.
        config.learner.folder = run.path().join("learner");
        config.actor.spool = run.path().join("spool");
        config.checkpoints.store = run.path().to_string_lossy().into_owned();
        assert_eq!(disks(&config), []);
    }
}
