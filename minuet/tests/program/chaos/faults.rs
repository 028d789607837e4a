//! Faults that are injected into a run: processes killed and stalled, connections cut, the disk filled, files damaged.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use test_support::SmallDisk;

use super::connections;
use crate::support::run::Run;

/// Free space on a full disk, less than `replay.min_free_mib`.
const LEFT_KIB: u64 = 512;
/// Time for which a disk is full.
const FULL: Duration = Duration::from_secs(2);

const ROLES: [&str; 4] = ["actor-1", "inference-server", "learner", "replay-store"];
const RATING: &str = "rating";

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// `kill -9` of a role.
    Kill(&'static str),
    /// All connections of a role are cut.
    Cut(&'static str),
    /// A role is suspended for a while, so that calls of its peers hang.
    Stall(&'static str),
    /// The store's disk is full for a while.
    FullDisk,
    /// The store is killed, and a bit in a file of stored games is changed before its restart.
    DamagedGames,
    /// A bit of an old checkpoint's model is changed.
    DamagedCheckpoint,
}

/// Counts of injected faults.
#[derive(Debug, Default)]
pub struct FaultCounts {
    injected: BTreeMap<Fault, u32>,
    /// Number of connections that were cut.
    pub cut: usize,
    /// Versions of damaged checkpoints.
    pub damaged_checkpoints: Vec<String>,
    /// Number of volumes of games in which a bit was changed.
    pub damaged_volumes: u32,
}

impl fmt::Display for FaultCounts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} faults injected:", self.injected.values().sum::<u32>())?;
        for (fault, count) in &self.injected {
            write!(to, " {count} × {fault:?},")?;
        }
        write!(to, " {} connections cut", self.cut)
    }
}

impl Fault {
    /// Returns one fault of each kind, for each role.
    pub fn all(can_cut: bool, has_rating: bool) -> Vec<Self> {
        let roles = ROLES.into_iter().chain(has_rating.then_some(RATING));
        let mut all: Vec<Self> = roles.clone().map(Self::Kill).collect();
        all.extend(roles.clone().filter(|_| can_cut).map(Self::Cut));
        all.extend(roles.map(Self::Stall));
        all.extend([Self::DamagedGames, Self::DamagedCheckpoint, Self::FullDisk]);
        all
    }

    /// Injects the fault and waits until it is over. The random `number` determines its details, e.g. the seconds (up to
    /// `longest_stall`) for which a process is suspended.
    pub fn inject(
        self,
        run: &mut Run,
        folder: &Path,
        disk: &SmallDisk,
        longest_stall: u64,
        number: u64,
        counts: &mut FaultCounts,
    ) {
        *counts.injected.entry(self).or_default() += 1;
        match self {
            Self::Kill(role) => {
                run.kill(role);
                run.wait_for("role-ready", |event| event["name"] == role);
            }
            Self::Cut(role) => counts.cut += connections::cut(run.pid(role)),
            Self::Stall(role) => {
                run.signal(role, "STOP");
                thread::sleep(Duration::from_secs(1 + number % longest_stall));
                run.signal(role, "CONT");
            }
            Self::FullDisk => {
                let filler = disk.path().join("filler");
                fill(&filler);
                thread::sleep(FULL);
                fs::remove_file(filler).unwrap();
            }
            Self::DamagedGames => {
                let (store, volumes) = ("replay-store", "replay/volumes");
                // The store must not write while the bit is changed.
                run.signal(store, "STOP");
                if let Some(file) = pick(files(&folder.join(volumes), ""), number >> 1) {
                    flip(&file, number >> 16);
                    counts.damaged_volumes += 1;
                }
                run.kill(store);
                run.wait_for("role-ready", |event| event["name"] == store);
            }
            Self::DamagedCheckpoint => {
                let mut models = files(&folder.join("checkpoints/versions"), "model.onnx");
                models.sort();
                // The newest checkpoints are in use, or will be soon.
                models.truncate(models.len().saturating_sub(3));
                if let Some(model) = pick(models, number) {
                    flip(&model, number >> 16);
                    let version = model.parent().unwrap().file_name().unwrap();
                    counts
                        .damaged_checkpoints
                        .push(version.to_str().unwrap().to_owned());
                }
            }
        }
    }
}

/// Fills the disk except for [`LEFT_KIB`].
fn fill(filler: &Path) {
    let mut file = fs::File::create(filler).unwrap();
    let block = vec![0; 64 << 10];
    while file.write_all(&block).is_ok() {}
    // Frees a little space, so that other processes on the machine can still write.
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(LEFT_KIB << 10)).unwrap();
}

/// Returns all files below a folder that are not empty and whose names have this ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending)
                && entry.metadata().is_ok_and(|file| file.len() > 0)
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn pick(mut from: Vec<PathBuf>, number: u64) -> Option<PathBuf> {
    (!from.is_empty()).then(|| from.swap_remove(number as usize % from.len()))
}

/// Changes one bit of a file.
fn flip(path: &Path, number: u64) {
    let mut file = fs::File::options().read(true).write(true).open(path).unwrap();
    let at = number % file.metadata().unwrap().len();
    let mut byte = [0];
    file.seek(SeekFrom::Start(at)).unwrap();
    file.read_exact(&mut byte).unwrap();
    byte[0] ^= 1 << (number % 8);
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&byte).unwrap();
}
