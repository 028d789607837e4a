//! Opening a volume after any interruption: whole games are kept, lost games are named and recorded.
//!
//! Games that the index does not know are read once each. A game that was acknowledged and cannot be read is recorded in
//! the volume as lost, so that it is reported once; the damaged bytes stay where they are. Frames of a commit that was
//! interrupted before its acknowledgement are passed over: their sequence numbers are recorded as lost too, without
//! being counted, so that they are not given out again.

use std::{collections::BTreeSet, io, path::Path, sync::Arc};

use crate::{
    error::{OpenError, VolumeError},
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
}

/// A game that was acknowledged and cannot be read any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Sequence number.
    pub sequence: u64,
    /// Game id, if a name survived.
    pub id: Option<Id>,
}

/// An opened volume.
#[derive(Debug)]
pub struct Recovered {
    /// The volume.
    pub volume: Volume,
    /// Whole games, ascending by sequence number.
    pub survivors: Vec<Survivor>,
    /// Losses discovered by this opening.
    pub losses: Vec<Loss>,
    /// Deleted games, ascending by sequence number.
    pub deleted: Vec<(u64, Id)>,
    /// The expected ledger, merged with the volume's.
    pub ledger: Ledger,
    /// True if the index's contents were used instead of a scan.
    pub is_from_index: bool,
}

/// Contents of a volume as its index recorded them.
#[derive(Debug, Default)]
pub struct Indexed {
    /// Places of the games.
    pub known: Known,
    /// The games that are neither lost nor deleted, ascending.
    pub survivors: Vec<Survivor>,
}

/// Opens the volume in `folder` whose first sequence number is `first`.
///
/// `end` is one beyond its last sequence number if it is sealed; otherwise the ledger says up to which
/// number games were acknowledged.
///
/// # Errors
/// [`OpenError`] if the file system fails, or the volume is in the format of an older build.
pub fn open(
    files: &Arc<dyn Files>,
    folder: &Path,
    first: u64,
    end: Option<u64>,
    ledger: Ledger,
    indexed: Option<Indexed>,
) -> Result<Recovered, OpenError> {
    finish_rebuild(files.as_ref(), folder)?;
    if files.exists(&folder.join(SLED_FILE)) && !files.exists(&folder.join(volume::FILE)) {
        return Err(OpenError::SledVolume {
            folder: folder.into(),
        });
    }
    let failed = |source| OpenError::Volume {
        folder: folder.into(),
        source,
    };
    let (known, survivors) = match indexed {
        Some(indexed) => (Some(indexed.known), indexed.survivors),
        None => (None, Vec::new()),
    };
    let (volume, is_from_index) = Volume::open(files, folder, first, known).map_err(failed)?;
    let mut ledger = match volume.ledger() {
        Some(inside) => ledger.merged(inside),
        None => ledger,
    };
    let acknowledged = end.unwrap_or(ledger.next_sequence).max(first);
    let survivors = if is_from_index { survivors } else { Vec::new() };
    let survey = survey(&volume, first..acknowledged, survivors);

    let mut lost: Vec<(u64, Option<Id>)> = survey
        .losses
        .iter()
        .map(|loss| (loss.sequence, loss.id))
        .collect();
    let before = ledger.next_sequence;
    if end.is_none() && volume.next() > acknowledged {
        lost.extend((acknowledged..volume.next()).map(|sequence| (sequence, None)));
        ledger.next_sequence = volume.next();
    }
    ledger.damaged_games += survey.losses.len() as u64;
    let commit = Commit {
        entries: &[],
        lost: &lost,
        deleted: &[],
        ledger: &ledger,
    };
    let recorded = match lost.is_empty() {
        true => Ok(()),
        false => volume.commit(commit),
    };
    let volume = match recorded {
        Ok(()) => volume,
        // No game is lost, and there is no room to record the numbers that are passed over: their frames are cut off.
        Err(VolumeError::Full) if survey.losses.is_empty() => {
            drop(volume);
            ledger.next_sequence = before;
            truncate(files.as_ref(), folder, acknowledged).map_err(OpenError::io(folder))?;
            Volume::open(files, folder, first, None).map_err(failed)?.0
        }
        Err(source) => return Err(failed(source)),
    };
    Ok(Recovered {
        volume,
        survivors: survey.survivors,
        losses: survey.losses,
        deleted: survey.deleted,
        ledger,
        is_from_index,
    })
}

/// Result of a look at every game of a volume.
#[derive(Default)]
struct Survey {
    survivors: Vec<Survivor>,
    deleted: Vec<(u64, Id)>,
    losses: Vec<Loss>,
}

/// Sorts the sequence numbers of a volume into whole, deleted and lost games. Games in `trusted` are not read.
fn survey(volume: &Volume, sequences: std::ops::Range<u64>, trusted: Vec<Survivor>) -> Survey {
    let mut survey = Survey::default();
    let mut trusted = trusted.into_iter().peekable();
    for sequence in sequences {
        let trusted = trusted.next_if(|survivor| survivor.sequence == sequence);
        if volume.deleted(sequence) {
            // A deleted game without a name is not recognised when it is sent again; nothing else follows.
            survey
                .deleted
                .extend(volume.name(sequence).map(|id| (sequence, id)));
            continue;
        }
        // Also if it can be read: it was not acknowledged before its number was given up.
        if volume.lost(sequence).is_some() {
            continue;
        }
        let found = trusted.or_else(|| survivor(sequence, &volume.read(sequence).ok()?));
        match found {
            Some(survivor) => survey.survivors.push(survivor),
            None => survey.losses.push(Loss {
                sequence,
                id: volume.name(sequence),
            }),
        }
    }
    survey
}

fn survivor(sequence: u64, record: &[u8]) -> Option<Survivor> {
    let summary = record::summary(record).ok()?;
    Some(Survivor {
        sequence,
        id: summary.id,
        trainable: summary.trainable,
        bytes: record.len() as u32,
    })
}

/// Truncates a volume durably at the first frame numbered `next` or higher. The process that wrote it was
/// interrupted in that commit, so nothing behind it was acknowledged either.
fn truncate(files: &dyn Files, folder: &Path, next: u64) -> io::Result<()> {
    let path = folder.join(volume::FILE);
    let bytes = files.read(&path)?;
    let mut done = 0;
    for at in memchr::memmem::find_iter(&bytes, b"Mn") {
        let rest = &bytes[at..];
        let (sequence, length) = match (frame::decode_part(rest), frame::decode_name(rest)) {
            // Bytes inside a whole frame are no frame.
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
        // The old volume was moved away only once the new one was complete.
        files.rename(&rebuilt, folder).map_err(OpenError::io(folder))
    }
}

/// Removes the folder of a retired volume in two steps, so that it is there whole or not at all: half of one would be
/// taken for a damaged volume.
///
/// # Errors
/// The file system's error.
pub fn remove(files: &dyn Files, folder: &Path) -> io::Result<()> {
    let retired = folder.with_extension(RETIRED);
    files.rename(folder, &retired)?;
    files.remove_folder(&retired)
}

/// Returns the first sequence numbers of the volumes in `folder`; finishes interrupted removals.
///
/// # Errors
/// The file system's error.
pub fn firsts(files: &dyn Files, folder: &Path) -> io::Result<BTreeSet<u64>> {
    files.create_folder(folder)?;
    let mut firsts = BTreeSet::new();
    for entry in files.list(folder)? {
        let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
        if entry.path.extension().is_some_and(|ending| ending == RETIRED) {
            files.remove_folder(&entry.path)?;
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

/// Extension of a volume's folder while it is removed.
const RETIRED: &str = "retired";
