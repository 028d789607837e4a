//! Opening a volume after any interruption: whole games are kept, and lost games are named and recorded.
//!
//! A volume is first read without any change ([`read`]). It is repaired ([`Found::repair`]) only after all volumes of the store could be
//! read, so that a store is left unchanged if a newer build wrote to one of its volumes.
//!
//! Each game that the index does not know is read once. A game that was acknowledged and cannot be read is recorded in the volume as
//! lost, so that the loss is reported once; the damaged bytes stay where they are. Frames of a commit that was interrupted before its
//! acknowledgement are ignored. Their sequence numbers are also recorded as lost, so that they are not used again, but they are not
//! counted as losses.

use std::{collections::BTreeSet, io, path::Path};

use durable::frame;

use crate::{
    error::{Loss, OpenError, VolumeError},
    log::{
        files::{self, Files},
        frame::{Content, Id},
        ledger::Ledger,
        volume::{self, Commit, Indexed, Row, Volume},
    },
    record,
    window::catalog::Labels,
};

/// A volume that was read. Nothing is changed on the disk before [`Found::repair`].
#[derive(Debug)]
pub struct Found {
    /// The volume.
    pub volume: Volume,
    /// Whole games, ascending by sequence number.
    pub survivors: Vec<Row>,
    /// Acknowledged games that cannot be read and are not recorded as lost yet.
    pub losses: Vec<Loss>,
    /// Deleted games, ascending by sequence number.
    pub deleted: Vec<(u64, Id)>,
    /// Number of games in the index; 0 if it cannot be used.
    pub indexed: u64,
    /// Sequence number below which the index has all games.
    pub indexed_to: u64,
    /// Sequence numbers of an interrupted commit, which was never acknowledged.
    passed_over: std::ops::Range<u64>,
}

fn failed(folder: &Path) -> impl FnOnce(VolumeError) -> OpenError {
    let path = folder.to_path_buf();
    |source| match source {
        VolumeError::Newer(found) => OpenError::Newer { path, found },
        source => OpenError::Volume { folder: path, source },
    }
}

/// Reads the volume in `folder` whose first sequence number is `first`, and changes nothing. `ledger` is merged with the ledger in the
/// volume.
///
/// `end` is one more than the last sequence number of a sealed volume. If it is `None`, the ledger gives the last acknowledged game.
///
/// # Errors
/// [`OpenError`] if the file system fails, or a newer build wrote to the volume.
pub fn read(
    files: &dyn Files,
    folder: &Path,
    (first, end): (u64, Option<u64>),
    ledger: &mut Ledger,
    indexed: Option<Indexed>,
    labels: &mut Labels,
) -> Result<Found, OpenError> {
    let (volume, indexed) = Volume::read_only(files, folder, first, indexed).map_err(failed(folder))?;
    if let Some(inside) = volume.ledger() {
        *ledger = ledger.merged(inside);
    }
    let acknowledged = end.unwrap_or(ledger.next_sequence).max(first);
    let (trusted, indexed_to) = indexed.map_or((Vec::new(), first), |indexed| (indexed.rows, indexed.next));
    let passed_over = match end {
        None => acknowledged..volume.next(),
        Some(_) => 0..0,
    };
    let mut found = Found {
        volume,
        survivors: Vec::new(),
        losses: Vec::new(),
        deleted: Vec::new(),
        indexed: trusted.len() as u64,
        indexed_to,
        passed_over,
    };
    found
        .survey(first..acknowledged, trusted, labels)
        .map_err(failed(folder))?;
    Ok(found)
}

impl Found {
    /// Opens the volume for writing, and records its losses and the sequence numbers of an interrupted commit. `ledger` is that of the
    /// store.
    ///
    /// # Errors
    /// [`OpenError`] if the file system fails.
    pub fn repair(&mut self, files: &dyn Files, ledger: &mut Ledger) -> Result<(), OpenError> {
        let folder = self.volume.folder().to_path_buf();
        let writable = self.volume.make_writable(files).map_err(files::volume_error);
        writable.map_err(failed(&folder))?;
        let losses = self.losses.iter().map(|loss| (loss.sequence, loss.id));
        let passed_over = self.passed_over.clone().map(|sequence| (sequence, None));
        let lost: Vec<(u64, Option<Id>)> = losses.chain(passed_over).collect();
        if lost.is_empty() {
            return Ok(());
        }
        let mut repaired = *ledger;
        repaired.damaged_games += self.losses.len() as u64;
        repaired.next_sequence = repaired.next_sequence.max(self.passed_over.end);
        let commit = Commit {
            entries: &[],
            lost: &lost,
            deleted: &[],
            ledger: &repaired,
        };
        match self.volume.commit(commit) {
            Ok(()) => *ledger = repaired,
            // No game is lost, and there is no space to record the sequence numbers of the interrupted commit, so its frames are cut off.
            Err(VolumeError::Full) if self.losses.is_empty() => {
                truncate(files, &folder, self.passed_over.start).map_err(OpenError::io(&folder))?;
                let reopened = Volume::open(files, &folder, self.volume.first());
                self.volume = reopened.map_err(failed(&folder))?;
            }
            Err(source) => return Err(failed(&folder)(source)),
        }
        Ok(())
    }

    /// Sorts the sequence numbers of the volume into whole, deleted and lost games. Games in `trusted` are not read.
    ///
    /// # Errors
    /// [`VolumeError::Newer`] for an intact record of a version that this build does not know.
    fn survey(
        &mut self,
        sequences: std::ops::Range<u64>,
        trusted: Vec<Row>,
        labels: &mut Labels,
    ) -> Result<(), VolumeError> {
        let volume = &self.volume;
        let mut trusted = trusted.into_iter().peekable();
        for sequence in sequences {
            let trusted = trusted.next_if(|row| row.sequence == sequence);
            if volume.deleted(sequence) {
                // A deleted game without a name is not recognised when it is sent again. There is no other consequence.
                self.deleted
                    .extend(volume.name(sequence).map(|id| (sequence, id)));
                continue;
            }
            // This holds even if the game can be read, because it was not acknowledged before its number was recorded as lost.
            if volume.lost(sequence).is_some() {
                continue;
            }
            let row = match trusted {
                Some(trusted) => Some(trusted),
                None => row(volume, sequence, labels)?,
            };
            match row {
                Some(row) => self.survivors.push(row),
                None => self.losses.push(Loss {
                    sequence,
                    id: volume.name(sequence),
                }),
            }
        }
        Ok(())
    }
}

/// Reads a game. Returns `None` if it cannot be read.
fn row(volume: &Volume, sequence: u64, labels: &mut Labels) -> Result<Option<Row>, VolumeError> {
    let (Ok(record), Some(extent)) = (volume.read(sequence), volume.extent(sequence)) else {
        return Ok(None);
    };
    let summary = match record::summary(&record) {
        Ok(summary) => summary,
        Err(record::DecodeError::Version(version)) => {
            return Err(VolumeError::Newer(format!("record version {version}")));
        }
        Err(_) => return Ok(None),
    };
    Ok(Some(Row {
        sequence,
        id: summary.id,
        extent,
        trainable: summary.trainable,
        bytes: record.len() as u32,
        listed: labels.listed(&summary.game, summary.positions),
    }))
}

/// Truncates a volume durably at the first game or name numbered `next` or higher. The process that wrote this frame was interrupted
/// during the commit, so nothing after it was acknowledged either.
fn truncate(files: &dyn Files, folder: &Path, next: u64) -> io::Result<()> {
    let path = folder.join(volume::FILE);
    let bytes = files.read(&path)?;
    let is_later = |found: &frame::Frame<'_>| match Content::of(found) {
        Some(Content::Game(sequence, _) | Content::Name(sequence, _)) => sequence >= next,
        _ => false,
    };
    let mut later = frame::ranges(&bytes).filter(|(_, found)| found.as_ref().is_ok_and(is_later));
    let Some((range, _)) = later.next() else {
        return Ok(());
    };
    let file = files.open(&path, false)?;
    file.set_len(range.start as u64)?;
    file.sync()
}

/// Removes the folder of a retired volume by a rename and a removal, so that the name of the volume disappears at once. An incomplete
/// folder under that name would be taken for a damaged volume.
///
/// # Errors
/// The file system's error.
pub fn remove(files: &dyn Files, folder: &Path) -> io::Result<()> {
    let retired = folder.with_extension(RETIRED);
    files.rename(folder, &retired)?;
    files.remove_folder(&retired)
}

/// Returns the first sequence numbers of the volumes in `folder`.
///
/// # Errors
/// The file system's error.
pub fn firsts(files: &dyn Files, folder: &Path) -> io::Result<BTreeSet<u64>> {
    let mut firsts = BTreeSet::new();
    if !files.exists(folder) {
        return Ok(firsts);
    }
    for entry in files.list(folder)? {
        let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
        match name.parse::<u64>() {
            Ok(first) => {
                firsts.insert(first);
            }
            Err(_) if is_retired(&entry.path) => {}
            Err(_) => tracing::warn!(name = %name, "ignoring a file that is not a volume"),
        }
    }
    Ok(firsts)
}

/// Finishes interrupted removals of volumes.
///
/// # Errors
/// The file system's error.
pub fn finish_removals(files: &dyn Files, folder: &Path) -> io::Result<()> {
    files.create_folder(folder)?;
    for entry in files.list(folder)? {
        if is_retired(&entry.path) {
            files.remove_folder(&entry.path)?;
        }
    }
    Ok(())
}

fn is_retired(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == RETIRED)
}

/// Extension of the name of a volume's folder while it is being removed.
const RETIRED: &str = "retired";
