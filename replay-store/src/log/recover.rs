//! Opening a volume after any interruption: whole games are kept, and lost games are named and recorded.
//!
//! A volume is first read without any change ([`read`]). It is mended ([`Found::mend`]) only after all volumes of the store could be
//! read, so that a store is left unchanged if a newer build wrote to one of its volumes.
//!
//! Each game that the index does not know is read once. A game that was acknowledged and cannot be read is recorded in the volume as
//! lost, so that the loss is reported once; the damaged bytes stay where they are. Frames of a commit that was interrupted before its
//! acknowledgement are ignored. Their sequence numbers are also recorded as lost, so that they are not used again, but they are not
//! counted as losses.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    damage::Loss,
    error::{OpenError, VolumeError},
    formats::Formats,
    log::{
        files::Files,
        frame::{self, Id},
        ledger::Ledger,
        volume::{self, Commit, Known, Volume},
    },
    record,
};

/// File name of a sled database, the volume format of builds before 0.2.
const SLED_FILE: &str = "db";

/// A game that was found whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Sequence number.
    pub sequence: u64,
    /// Game id.
    pub id: Id,
    /// Positions with visit counts.
    pub trainable: u32,
    /// Bytes of the record.
    pub bytes: u32,
    /// Id of the game that this one replaces, if any.
    pub replaces: Option<Id>,
}

/// A volume that was read. Nothing is changed on the disk before [`Found::mend`].
#[derive(Debug)]
pub struct Found {
    /// The volume.
    pub volume: Volume,
    /// Whole games, ascending by sequence number.
    pub survivors: Vec<Survivor>,
    /// Acknowledged games that cannot be read and are not recorded as lost yet.
    pub losses: Vec<Loss>,
    /// Deleted games, ascending by sequence number.
    pub deleted: Vec<(u64, Id)>,
    /// True if the index's contents were used instead of a scan.
    pub is_from_index: bool,
    /// Sequence numbers of an interrupted commit, which was never acknowledged.
    passed_over: std::ops::Range<u64>,
    /// Folder of the volume, which is opened for writing later.
    folder: PathBuf,
}

/// Contents of a volume as its index recorded them.
#[derive(Debug, Default)]
pub struct Indexed {
    /// Places of the games.
    pub known: Known,
    /// Games that are neither lost nor deleted, ascending by sequence number.
    pub survivors: Vec<Survivor>,
}

/// Returns the folder that contains a volume: `folder`, or the rebuilt copy beside it that a crash of an older build left.
fn place(files: &dyn Files, folder: &Path) -> PathBuf {
    let rebuilt = folder.with_extension("rebuild");
    if !files.exists(folder) && files.exists(&rebuilt) {
        rebuilt
    } else {
        folder.into()
    }
}

fn failed(folder: &Path) -> impl FnOnce(VolumeError) -> OpenError {
    let path = folder.to_path_buf();
    |source| match source {
        VolumeError::Newer(found) => OpenError::Newer { path, found },
        source => OpenError::Volume { folder: path, source },
    }
}

/// Checks, without an index, that no newer build wrote the end of the volume in `folder`.
///
/// # Errors
/// [`OpenError::Newer`], [`OpenError::SledVolume`], or the file system's error.
pub fn check(files: &dyn Files, folder: &Path, formats: &Formats) -> Result<(), OpenError> {
    let folder = place(files, folder);
    if files.exists(&folder.join(SLED_FILE)) && !files.exists(&folder.join(volume::FILE)) {
        return Err(OpenError::SledVolume { folder });
    }
    volume::check_end(files, &folder, formats).map_err(failed(&folder))
}

/// Reads the volume in `folder` whose first sequence number is `first`, and changes nothing. `ledger` is merged with the ledger in the
/// volume.
///
/// `end` is one more than the last sequence number of a sealed volume. If it is `None`, the ledger gives the last acknowledged game.
///
/// # Errors
/// [`OpenError`] if the file system fails, or a newer build wrote to the volume.
pub fn read(
    files: &Arc<dyn Files>,
    folder: &Path,
    (first, end): (u64, Option<u64>),
    ledger: &mut Ledger,
    indexed: Option<Indexed>,
    formats: &Formats,
) -> Result<Found, OpenError> {
    let (known, survivors) = match indexed {
        Some(indexed) => (Some(indexed.known), indexed.survivors),
        None => (None, Vec::new()),
    };
    let present = place(files.as_ref(), folder);
    let (volume, is_from_index) =
        Volume::read_only(files, &present, first, known, formats.frames).map_err(failed(folder))?;
    if let Some(inside) = volume.ledger() {
        *ledger = ledger.merged(inside);
    }
    let acknowledged = end.unwrap_or(ledger.next_sequence).max(first);
    let survivors = if is_from_index { survivors } else { Vec::new() };
    let survey = survey(&volume, first..acknowledged, survivors, formats.records)
        .map_err(VolumeError::Newer)
        .map_err(failed(folder))?;
    let passed_over = match end {
        None => acknowledged..volume.next(),
        Some(_) => 0..0,
    };
    Ok(Found {
        volume,
        survivors: survey.survivors,
        losses: survey.losses,
        deleted: survey.deleted,
        is_from_index,
        passed_over,
        folder: folder.into(),
    })
}

impl Found {
    /// Opens the volume for writing, and records its losses and the sequence numbers of an interrupted commit. `ledger` is that of the
    /// store.
    ///
    /// # Errors
    /// [`OpenError`] if the file system fails.
    pub fn mend(&mut self, files: &Arc<dyn Files>, ledger: &mut Ledger) -> Result<(), OpenError> {
        finish_rebuild(files.as_ref(), &self.folder)?;
        self.volume
            .make_writable(files.as_ref(), &self.folder)
            .map_err(failed(&self.folder))?;
        let losses = self.losses.iter().map(|loss| (loss.sequence, loss.id));
        let passed_over = self.passed_over.clone().map(|sequence| (sequence, None));
        let lost: Vec<(u64, Option<Id>)> = losses.chain(passed_over).collect();
        if lost.is_empty() {
            return Ok(());
        }
        let mut mended = *ledger;
        mended.damaged_games += self.losses.len() as u64;
        mended.next_sequence = mended.next_sequence.max(self.passed_over.end);
        let commit = Commit {
            entries: &[],
            lost: &lost,
            deleted: &[],
            ledger: &mended,
        };
        match self.volume.commit(commit) {
            Ok(()) => *ledger = mended,
            // No game is lost, and there is no space to record the sequence numbers of the interrupted commit, so its frames are cut off.
            Err(VolumeError::Full) if self.losses.is_empty() => {
                let acknowledged = self.passed_over.start;
                truncate(files.as_ref(), &self.folder, acknowledged).map_err(OpenError::io(&self.folder))?;
                let reopened = Volume::open(files, &self.folder, self.volume.first(), None);
                (self.volume, _) = reopened.map_err(failed(&self.folder))?;
            }
            Err(source) => return Err(failed(&self.folder)(source)),
        }
        Ok(())
    }
}

/// Result of the check of every game of a volume.
#[derive(Default)]
struct Survey {
    survivors: Vec<Survivor>,
    deleted: Vec<(u64, Id)>,
    losses: Vec<Loss>,
}

/// Sorts the sequence numbers of a volume into whole, deleted and lost games. Games in `trusted` are not read. `versions` are
/// the versions of records that the build reads.
///
/// # Errors
/// The version of an intact record that a newer build wrote.
fn survey(
    volume: &Volume,
    sequences: std::ops::Range<u64>,
    trusted: Vec<Survivor>,
    versions: &[u8],
) -> Result<Survey, String> {
    let mut survey = Survey::default();
    let mut trusted = trusted.into_iter().peekable();
    for sequence in sequences {
        let trusted = trusted.next_if(|survivor| survivor.sequence == sequence);
        if volume.deleted(sequence) {
            // A deleted game without a name is not recognised when it is sent again. There is no other consequence.
            survey
                .deleted
                .extend(volume.name(sequence).map(|id| (sequence, id)));
            continue;
        }
        // This holds even if the game can be read, because it was not acknowledged before its number was recorded as lost.
        if volume.lost(sequence).is_some() {
            continue;
        }
        let found = match trusted {
            Some(trusted) => Some(trusted),
            None => match volume.read(sequence) {
                Ok(record) => match record.first() {
                    Some(version) if !versions.contains(version) => {
                        return Err(format!("record version {version}"));
                    }
                    _ => survivor(sequence, &record),
                },
                Err(_) => None,
            },
        };
        match found {
            Some(survivor) => survey.survivors.push(survivor),
            None => survey.losses.push(Loss {
                sequence,
                id: volume.name(sequence),
            }),
        }
    }
    Ok(survey)
}

fn survivor(sequence: u64, record: &[u8]) -> Option<Survivor> {
    let summary = record::summary(record).ok()?;
    Some(Survivor {
        sequence,
        id: summary.id,
        trainable: summary.trainable,
        bytes: record.len() as u32,
        replaces: summary.replaces(),
    })
}

/// Truncates a volume durably at the first frame numbered `next` or higher. The process that wrote this frame was interrupted during the
/// commit, so nothing after it was acknowledged either.
fn truncate(files: &dyn Files, folder: &Path, next: u64) -> io::Result<()> {
    let path = folder.join(volume::FILE);
    let bytes = files.read(&path)?;
    let mut done = 0;
    for at in memchr::memmem::find_iter(&bytes, b"Mn") {
        let rest = &bytes[at..];
        let (sequence, length) = match (frame::decode_part(rest), frame::decode_name(rest)) {
            // Bytes inside a whole frame cannot begin another frame.
            _ if at < done => continue,
            (Some((part, length)), _) => (part.sequence, length),
            (None, Some((sequence, _))) => (sequence, frame::NAME_BYTES),
            (None, None) => continue,
        };
        if sequence >= next {
            let file = files.open(&path, false)?;
            file.set_len(at as u64)?;
            return file.sync();
        }
        done = at + length;
    }
    Ok(())
}

/// Completes or removes a rebuilt copy that a crash of an older build left beside the volume.
fn finish_rebuild(files: &dyn Files, folder: &Path) -> Result<(), OpenError> {
    let rebuilt = folder.with_extension("rebuild");
    if !files.exists(&rebuilt) {
        return Ok(());
    }
    if files.exists(folder) {
        files.remove_folder(&rebuilt).map_err(OpenError::io(&rebuilt))
    } else {
        // The old volume was moved away only after the new one was complete.
        files.rename(&rebuilt, folder).map_err(OpenError::io(folder))
    }
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
        if is_retired(&entry.path) {
            continue;
        }
        // A volume whose rebuild was interrupted at its last step has only this name.
        let number = name.strip_suffix(".rebuild").unwrap_or(&name);
        match number.parse::<u64>() {
            Ok(first) => {
                firsts.insert(first);
            }
            Err(_) => tracing::warn!(name = %name, "ignoring a file that is no volume"),
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
