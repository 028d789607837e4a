//! Opening a volume that may have been through anything: what is whole is kept, what is lost is named.
//!
//! Every game is read once. Where all are there, that is all. Where one is missing or damaged, or the
//! database fails, the raw files are searched ([`crate::log::salvage`]) and the volume is built anew beside
//! the old one from all that is whole; the losses are written into it, so that they are reported once. The old
//! folder is kept under `damaged/`, the last one only.
//!
//! A database's files are searched before sled opens them: opening may cut off what follows a torn place, and
//! numbers that an unacknowledged batch left behind must not be given out again. A log has seen all of its file when it is open.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    error::OpenError,
    log::files::Files,
    log::frame::{self, Id},
    log::ledger::Ledger,
    log::salvage::Salvage,
    log::volume::{Commit, Engine, Entry, Volume, VolumeError, engine_of, log},
    record,
    window::held_out::HeldOut,
};

/// Bytes of one batch while a volume is built anew.
const REBUILD_BATCH: usize = 1 << 20;

/// A game that was found whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Its sequence number.
    pub sequence: u64,
    /// Its id.
    pub id: Id,
    /// Its trainable positions.
    pub trainable: u32,
    /// Bytes of its record.
    pub bytes: u32,
}

/// A game that was acknowledged and is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Its sequence number.
    pub sequence: u64,
    /// Its id, where a name survived.
    pub id: Option<Id>,
}

/// A volume, opened.
#[derive(Debug)]
pub struct Recovered {
    /// The volume, whole (again).
    pub volume: Volume,
    /// Its games, ascending.
    pub survivors: Vec<Survivor>,
    /// What was lost, found out just now.
    pub losses: Vec<Loss>,
    /// Why it had to be built anew; `None` where it had not.
    pub rebuilt: Option<String>,
    /// Games of it that were deleted, ascending: they are known, and not there.
    pub deleted: Vec<(u64, Id)>,
    /// The ledger that was expected, with what the volume knows better.
    pub ledger: Ledger,
}

/// What stands in the way of taking a volume as it is.
struct Trouble {
    sequence: u64,
    reason: String,
}

/// Where a volume lies, and how it is made where it must be.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// The disk.
    pub files: &'a Arc<dyn Files>,
    /// The volume's folder.
    pub folder: &'a Path,
    /// Where the last damaged volume is kept.
    pub damaged: &'a Path,
    /// What a new volume is.
    pub engine: Engine,
    /// Which games are kept from training.
    pub held_out: HeldOut,
}

/// Opens the volume on `ground` whose first sequence number is `first`.
///
/// `end` is one beyond its last sequence number where it is sealed. Where it is not, the ledger says up to which
/// number games were acknowledged.
///
/// # Errors
/// [`OpenError`] where the file system fails, or the volume cannot be built anew.
pub fn open(
    ground: Ground<'_>,
    first: u64,
    end: Option<u64>,
    ledger: Ledger,
) -> Result<Recovered, OpenError> {
    let Ground {
        files,
        folder,
        engine,
        ..
    } = ground;
    finish_rebuild(files.as_ref(), folder)?;
    let scan = || Salvage::scan(files.as_ref(), folder, first).map_err(OpenError::io(folder));
    let salvage = match engine_of(files.as_ref(), folder) {
        Some(Engine::Log) => None,
        _ if !files.exists(folder) => Some(Salvage::default()),
        _ => Some(scan()?),
    };
    let opened = Volume::open(files, folder, first, engine);
    let ledger = match opened.as_ref().ok().and_then(Volume::ledger) {
        Some(inside) => ledger.merged(inside),
        None => ledger,
    };
    let acknowledged = end.unwrap_or(ledger.next_sequence).max(first);
    let mut survey = Survey::default();
    let reason = match opened {
        Ok(volume) => {
            survey.look(&volume, first..acknowledged);
            match survey.troubles.first() {
                None => {
                    let seen = match (&volume, &salvage) {
                        (_, Some(salvage)) => salvage.end(),
                        (Volume::Log(log), None) => log.end(),
                        (Volume::Database(_), None) => 0,
                    };
                    return as_it_is(ground, volume, survey, end.is_none().then_some(seen), ledger);
                }
                Some(trouble) => format!("game {} is {}", trouble.sequence, trouble.reason),
            }
        }
        // That is no damage, and to build it anew would take more room still.
        Err(source @ VolumeError::Full) => {
            return Err(OpenError::Volume {
                folder: folder.into(),
                source,
            });
        }
        Err(error) => error.to_string(),
    };
    let salvage = match salvage {
        Some(salvage) => salvage,
        None => scan()?,
    };
    let range = Range {
        first,
        acknowledged,
        end: end.unwrap_or(acknowledged.max(salvage.end())),
    };
    rebuild(ground, &range, ledger, survey, &salvage, reason)
}

/// Takes a volume without trouble. What an unacknowledged batch left in its files, up to the number `seen`, is passed
/// over; `None` where the volume is sealed. Saying so in the volume takes a little room: where there is none, what was left is cut off instead.
fn as_it_is(
    ground: Ground<'_>,
    mut volume: Volume,
    survey: Survey,
    seen: Option<u64>,
    mut ledger: Ledger,
) -> Result<Recovered, OpenError> {
    if let Some(seen) = seen.filter(|&seen| seen > ledger.next_sequence) {
        let gaps: Vec<(u64, Option<Id>)> = (ledger.next_sequence..seen)
            .map(|sequence| (sequence, None))
            .collect();
        let beyond = Ledger {
            next_sequence: seen,
            ..ledger
        };
        let commit = Commit {
            entries: &[],
            lost: &gaps,
            deleted: &[],
            ledger: &beyond,
        };
        let failed = |source| OpenError::Volume {
            folder: ground.folder.into(),
            source,
        };
        match volume.commit(commit) {
            Ok(()) => ledger = beyond,
            Err(VolumeError::Full) => {
                let first = volume.first();
                drop(volume);
                cut_off(ground, ledger.next_sequence).map_err(OpenError::io(ground.folder))?;
                volume = Volume::open(ground.files, ground.folder, first, ground.engine).map_err(failed)?;
            }
            Err(source) => return Err(failed(source)),
        }
    }
    Ok(Recovered {
        volume,
        survivors: survey.survivors,
        deleted: survey.deleted,
        losses: Vec::new(),
        rebuilt: None,
        ledger,
    })
}

/// Cuts a log off, durably, where the first frame of a game stands that was never acknowledged: one numbered `next` or higher. Whoever wrote it was
/// interrupted in that batch, so nothing behind it was acknowledged either.
fn cut_off(ground: Ground<'_>, next: u64) -> io::Result<()> {
    let path = ground.folder.join(log::FILE);
    let bytes = ground.files.read(&path)?;
    let mut done = 0;
    for at in memchr::memmem::find_iter(&bytes, b"Mn") {
        let rest = &bytes[at..];
        let (sequence, length) = match (frame::part(rest), frame::named(rest)) {
            // What lies inside a whole frame is no frame.
            _ if at < done => continue,
            (Some((part, length)), _) => (part.sequence, length),
            (None, Some((sequence, _))) => (sequence, frame::NAME_BYTES),
            (None, None) => continue,
        };
        if sequence >= next {
            let file = ground.files.open(&path, false)?;
            file.set_len(at as u64)?;
            return file.sync();
        }
        done = at + length;
    }
    Ok(())
}

/// The numbers of a volume: those from `acknowledged` on may stand for games that nobody was told of.
struct Range {
    first: u64,
    acknowledged: u64,
    end: u64,
}

/// What reading every game of a volume found.
#[derive(Default)]
struct Survey {
    survivors: Vec<Survivor>,
    deleted: Vec<(u64, Id)>,
    known: Vec<(u64, Option<Id>)>,
    names: Vec<(u64, Id)>,
    /// Numbers of deleted games.
    passed_over: Vec<u64>,
    troubles: Vec<Trouble>,
    records: Vec<(u64, Vec<u8>)>,
}

impl Survey {
    fn look(&mut self, volume: &Volume, sequences: std::ops::Range<u64>) {
        for sequence in sequences {
            if volume.deleted(sequence) {
                let id = volume.name(sequence);
                // A deleted game whose name is damaged may be sent again; that is all.
                self.deleted.extend(id.map(|id| (sequence, id)));
                self.passed_over.push(sequence);
                continue;
            }
            // Also where it can be read: nobody was told of it when its number was given up.
            if let Some(id) = volume.lost(sequence) {
                self.known.push((sequence, id));
                continue;
            }
            let reason = match volume.read(sequence) {
                Ok(record) => match survivor(sequence, &record) {
                    Some(survivor) => {
                        self.survivors.push(survivor);
                        continue;
                    }
                    None => "not a record of this build".into(),
                },
                Err(error) => error.to_string(),
            };
            if let Some(id) = volume.name(sequence) {
                self.names.push((sequence, id));
            }
            self.troubles.push(Trouble { sequence, reason });
        }
        if !self.troubles.is_empty() {
            // The volume is given up after this, so its good games are taken along.
            for survivor in &self.survivors {
                if let Ok(record) = volume.read(survivor.sequence) {
                    self.records.push((survivor.sequence, record));
                }
            }
        }
    }
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

fn rebuild_folder(folder: &Path) -> PathBuf {
    folder.with_extension("rebuild")
}

/// Completes or clears away a rebuild that a crash interrupted.
fn finish_rebuild(files: &dyn Files, folder: &Path) -> Result<(), OpenError> {
    let rebuild = rebuild_folder(folder);
    if !files.exists(&rebuild) {
        return Ok(());
    }
    if files.exists(folder) {
        files.remove_folder(&rebuild).map_err(OpenError::io(&rebuild))
    } else {
        // The old volume is moved away only when the new one is complete.
        files.rename(&rebuild, folder).map_err(OpenError::io(folder))
    }
}

fn rebuild(
    ground: Ground<'_>,
    range: &Range,
    mut ledger: Ledger,
    survey: Survey,
    salvage: &Salvage,
    reason: String,
) -> Result<Recovered, OpenError> {
    let Ground { files, folder, .. } = ground;
    let building = rebuild_folder(folder);
    let failed = |source: VolumeError| OpenError::Volume {
        folder: building.clone(),
        source,
    };
    let mut survivors = Vec::new();
    let mut losses = Vec::new();
    let mut lost = survey.known;
    {
        let volume = Volume::open(files, &building, range.first, ground.engine).map_err(failed)?;
        let mut kept = survey.records.into_iter().peekable();
        let mut batch = Vec::new();
        let mut batched = 0;
        for sequence in range.first..range.end {
            if survey.passed_over.binary_search(&sequence).is_ok() {
                // A deleted game leaves no more than its number and its name.
                let named = survey.deleted.iter().find(|(deleted, _)| *deleted == sequence);
                lost.push((sequence, named.map(|(_, id)| *id)));
                continue;
            }
            let is_known_lost = lost.iter().any(|(known, _)| *known == sequence);
            let found = kept
                .next_if(|(kept, _)| *kept == sequence)
                .map(|(_, record)| record)
                .or_else(|| salvage.record(sequence).filter(|_| !is_known_lost))
                .and_then(|record| Some((survivor(sequence, &record)?, record)));
            if let Some((survivor, record)) = found {
                if sequence >= range.acknowledged {
                    ledger.games_inserted += 1;
                    let uses = ground.held_out.uses(&survivor.id, survivor.trainable);
                    ledger.positions_inserted += u64::from(uses.trainable);
                }
                batched += record.len();
                batch.push(Entry {
                    sequence,
                    id: survivor.id,
                    record,
                });
                survivors.push(survivor);
            } else if sequence >= range.acknowledged {
                lost.push((sequence, None));
            } else if !is_known_lost {
                let named = survey.names.iter().find(|(named, _)| *named == sequence);
                losses.push(Loss {
                    sequence,
                    id: named.map(|(_, id)| *id).or_else(|| salvage.name(sequence)),
                });
            }
            if batched >= REBUILD_BATCH {
                put(&volume, &batch, &[], &ledger).map_err(failed)?;
                batch.clear();
                batched = 0;
            }
        }
        lost.extend(losses.iter().map(|loss| (loss.sequence, loss.id)));
        ledger.next_sequence = ledger.next_sequence.max(range.end);
        ledger.damaged_games += losses.len() as u64;
        put(&volume, &batch, &lost, &ledger).map_err(failed)?;
    }
    replace(ground, &building)?;
    Ok(Recovered {
        volume: Volume::open(files, folder, range.first, ground.engine).map_err(failed)?,
        survivors,
        deleted: survey.deleted,
        losses,
        rebuilt: Some(reason),
        ledger,
    })
}

/// Puts the new volume in the old one's place; the old one goes to `damaged`, which keeps one.
fn replace(ground: Ground<'_>, building: &Path) -> Result<(), OpenError> {
    let Ground {
        files,
        folder,
        damaged,
        ..
    } = ground;
    if files.exists(damaged) {
        files.remove_folder(damaged).map_err(OpenError::io(damaged))?;
    }
    files.create_folder(damaged).map_err(OpenError::io(damaged))?;
    let aside = damaged.join(folder.file_name().unwrap_or_default());
    let parent = folder.parent().unwrap_or(folder);
    if files.exists(folder) {
        files.rename(folder, &aside).map_err(OpenError::io(&aside))?;
    }
    files.rename(building, folder).map_err(OpenError::io(folder))?;
    files.sync_folder(parent).map_err(OpenError::io(parent))
}

fn put(
    volume: &Volume,
    entries: &[Entry],
    lost: &[(u64, Option<Id>)],
    ledger: &Ledger,
) -> Result<(), VolumeError> {
    volume.commit(Commit {
        entries,
        lost,
        deleted: &[],
        ledger,
    })
}
