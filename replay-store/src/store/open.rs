//! Opening a store: locks the folder, reads every volume, finds lost games and fills the window.
//!
//! Everything is read before anything is written, so that a folder is left unchanged if a newer build wrote a part of it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};

use crate::{
    damage::Damage,
    error::OpenError,
    exchange::archive_store::ArchiveStore,
    formats::{self, Formats},
    index::Index,
    log::{
        drawn::{DrawnBatches, DrawnError},
        files::{Files, ReadOnly},
        ids::KnownIds,
        ledger::{Ledger, LedgerFile, LedgerRead, LiveLedger, SharedLedger},
        recover::{self, Found},
        volumes::Volumes,
    },
    metrics::Metrics,
    record::validate::Validator,
    settings::Settings,
    store::{
        archived,
        identity::{self, Claim, Identity, Wanted},
        shared::{Fill, Shared, State, volume_folder, volumes_folder},
    },
    window::{Window, cache::Cache, uses_bound::UsesBound},
};

/// A store that is open and has no threads yet.
pub struct Opened {
    /// State that the threads of the store share.
    pub shared: Shared,
    /// Lock of the folder.
    pub claim: Claim,
    /// Identity of the store.
    pub identity: Identity,
    /// Contents of the newest volume.
    pub fill: Fill,
    /// Damage that was found by this opening.
    pub damage: Damage,
    /// Archive of sealed volumes; `None` without an archive.
    pub archive_store: Option<ArchiveStore>,
}

/// Contents of a store's folder. Nothing was changed to read them.
struct Contents {
    ledger: Ledger,
    drawn: DrawnBatches,
    known: KnownIds,
    index: Option<Arc<Index>>,
    validator: Validator,
    volumes: Vec<Found>,
    /// Volumes whose index was made from another log.
    stale: Vec<u64>,
    damage: Damage,
}

/// Opens the store that `settings` describe, or creates it. `formats` are the versions that the build reads. If `mends` is false, a
/// damaged store is refused.
///
/// # Errors
/// [`OpenError`]. After [`OpenError::Newer`] and [`OpenError::Damaged`] nothing is changed; after other errors some volumes may
/// be mended.
pub fn open(
    settings: Settings,
    files: Arc<dyn Files>,
    formats: &Formats,
    mends: bool,
) -> Result<Opened, OpenError> {
    let folder = settings.folder.clone();
    let (claim, mut identity) = identity::claim(files.as_ref(), &folder, wanted(&settings, formats))?;
    let index = || open_index(&settings);
    let mut contents = read(&settings, &files, formats, index)?;
    if !mends && !contents.damage.is_none() {
        return Err(OpenError::Damaged(contents.damage));
    }
    report(&contents);

    let archive_store = match settings.archive.as_str() {
        "" => None,
        location => Some(ArchiveStore::open(location)?),
    };
    let mut is_changed = identity.upgrade();
    if archive_store.is_some() && identity.archive_name.is_none() {
        identity.archive_name = Some(format!("store-{:016x}", rand::random::<u64>()));
        is_changed = true;
    }
    // The identity is written before the first frame, so that from here on an older build refuses the folder.
    if is_changed {
        identity
            .save(files.as_ref(), &folder)
            .map_err(OpenError::io(&folder))?;
    }
    let retired = folder.join("retired");
    contents.known.make_writable().map_err(OpenError::io(&retired))?;
    let volumes = volumes_folder(&folder);
    recover::finish_removals(files.as_ref(), &volumes).map_err(OpenError::io(&volumes))?;
    for found in &mut contents.volumes {
        found.mend(&files, &mut contents.ledger)?;
    }
    if let Some(index) = &contents.index {
        for &first in &contents.stale {
            tracing::warn!(
                volume = first,
                "the index was made from another log and is rebuilt"
            );
            index.reset(first);
        }
        index.sweep();
    }
    let ledger_path = folder.join("ledger");
    let file = LedgerFile::open(files.as_ref(), &ledger_path).map_err(OpenError::io(&ledger_path))?;
    let ledger = LiveLedger::new(file, contents.ledger).map_err(OpenError::io(&ledger_path))?;
    files.sync_folder(&folder).map_err(OpenError::io(&folder))?;
    let archived_to = if archive_store.is_some() { 0 } else { u64::MAX };
    let (shared, fill, damage) = assemble(settings, files, contents, ledger);
    shared
        .archived_to
        .store(archived_to, std::sync::atomic::Ordering::SeqCst);
    Ok(Opened {
        shared,
        claim,
        identity,
        fill,
        damage,
        archive_store,
    })
}

/// Opens an existing store for reading. Nothing on the disk is changed, and damage is not mended. The index is made in memory.
///
/// # Errors
/// [`OpenError`]
pub fn open_to_read(
    settings: Settings,
    files: Arc<dyn Files>,
    formats: &Formats,
) -> Result<Opened, OpenError> {
    let files: Arc<dyn Files> = Arc::new(ReadOnly(files));
    let folder = settings.folder.clone();
    let (claim, identity) = identity::claim_to_read(files.as_ref(), &folder, wanted(&settings, formats))?;
    let contents = read(&settings, &files, formats, || Some(Arc::new(Index::in_memory())))?;
    let ledger_path = folder.join("ledger");
    let file = LedgerFile::open(files.as_ref(), &ledger_path).map_err(OpenError::io(&ledger_path))?;
    let ledger = LiveLedger::to_read(file, contents.ledger);
    let (shared, fill, damage) = assemble(settings, files, contents, ledger);
    Ok(Opened {
        shared,
        claim,
        identity,
        fill,
        damage,
        archive_store: None,
    })
}

fn wanted<'a>(settings: &'a Settings, formats: &Formats) -> Wanted<'a> {
    Wanted {
        game: &settings.game,
        options: settings.options,
        formats: formats.folders,
    }
}

/// Reads the whole folder and changes nothing. `index` opens the index after the check that no newer build has written any file.
fn read(
    settings: &Settings,
    files: &Arc<dyn Files>,
    formats: &Formats,
    index: impl FnOnce() -> Option<Arc<Index>>,
) -> Result<Contents, OpenError> {
    let folder = &settings.folder;
    let validator = Validator::new(&settings.game, settings.options)?;
    let newer = |path: PathBuf, found: String| Err(OpenError::Newer { path, found });
    let ledger_path = folder.join("ledger");
    let found = LedgerFile::read(files.as_ref(), &ledger_path, formats.frames)
        .map_err(OpenError::io(&ledger_path))?;
    let mut damage = Damage::default();
    let mut ledger = match found {
        LedgerRead::Valid(ledger) => ledger,
        LedgerRead::New => Ledger::new(),
        LedgerRead::Damaged => {
            damage.is_ledger_lost = true;
            Ledger::new()
        }
        LedgerRead::Newer(magic) => return newer(ledger_path, format!("frame {}", formats::name(magic))),
    };
    let retired = folder.join("retired");
    let (known, unread) = KnownIds::read(files, &retired, settings.remembered_games, formats.ids)
        .map_err(OpenError::io(&retired))?;
    if let Some((path, magic)) = unread.newer.into_iter().next() {
        return newer(path, format!("ids of format {}", formats::name(magic)));
    }
    damage.id_files = unread.damaged;
    let drawn = folder.join("drawn");
    let drawn = match DrawnBatches::read(files, &drawn, formats.frames) {
        Ok(read) => read,
        Err(DrawnError::Io(error)) => return Err(OpenError::io(drawn)(error)),
        Err(DrawnError::Newer(path, magic)) => return newer(path, format!("frame {}", formats::name(magic))),
    };
    let marker = archived::newer(files.as_ref(), folder, formats.markers).map_err(OpenError::io(folder))?;
    if let Some((path, version)) = marker {
        return newer(path, format!("format {version}"));
    }

    let firsts = firsts(files.as_ref(), &volumes_folder(folder), &ledger)?;
    for &first in &firsts {
        recover::check(files.as_ref(), &volume_folder(folder, first), formats)?;
    }
    let index = index();
    let mut volumes = Vec::with_capacity(firsts.len());
    let mut stale = Vec::new();
    for (at, &first) in firsts.iter().enumerate() {
        let span = (first, firsts.get(at + 1).copied());
        let path = volume_folder(folder, first);
        let indexed = index.as_ref().and_then(|index| index.load(first));
        let is_indexed = indexed.is_some();
        let found = recover::read(files, &path, span, &mut ledger, indexed, formats)?;
        if is_indexed && !found.is_from_index {
            stale.push(first);
        }
        damage.losses.extend(&found.losses);
        volumes.push(found);
    }
    Ok(Contents {
        ledger,
        drawn,
        known,
        index,
        validator,
        volumes,
        stale,
        damage,
    })
}

/// Builds the state of the open store from the contents of the folder.
fn assemble(
    settings: Settings,
    files: Arc<dyn Files>,
    contents: Contents,
    ledger: LiveLedger,
) -> (Shared, Fill, Damage) {
    let Contents {
        drawn,
        mut known,
        index,
        validator,
        volumes,
        damage,
        ..
    } = contents;
    let all = Volumes::default();
    let mut window = Window::new(settings.window_positions);
    let mut fill = Fill::default();
    for found in volumes {
        fill = Fill::default();
        for survivor in &found.survivors {
            let uses = settings.held_out.split(&survivor.id, survivor.trainable);
            fill.positions += u64::from(uses.trainable.max(1));
            fill.bytes += u64::from(survivor.bytes);
            known.insert(survivor.id, survivor.sequence);
            window.push(survivor.sequence, uses, survivor.bytes);
            if let Some(replaced) = survivor.replaces.and_then(|id| known.sequence(&id)) {
                window.exclude(replaced);
            }
        }
        for (sequence, id) in found.deleted {
            known.insert(id, sequence);
        }
        all.push(found.volume);
    }
    let positions = window.positions();
    let shared = Shared {
        archived_to: AtomicU64::new(u64::MAX),
        sealed: Notify::new(),
        files,
        cache: Cache::new(settings.cache_bytes),
        settings,
        validator,
        volumes: Arc::new(all),
        index,
        metrics: Arc::new(Metrics::new()),
        window: RwLock::new(window),
        known_ids: RwLock::new(known),
        ledger: SharedLedger::new(ledger),
        drawn: Mutex::new(drawn),
        uses_bound: UsesBound::default(),
        unreadable: Mutex::new(BTreeSet::new()),
        positions: watch::Sender::new(positions),
        state: watch::Sender::new(State::Running),
        room_warning: Mutex::new(None),
    };
    shared.metrics.damaged(damage.losses.len() as u64);
    shared.report_window(&shared.window.read());
    (shared, fill, damage)
}

/// Opens the index; the store works without one if its folder cannot be created.
fn open_index(settings: &Settings) -> Option<Arc<Index>> {
    let folder = settings.index.as_ref()?;
    match Index::open(folder) {
        Ok(index) => Some(Arc::new(index)),
        Err(error) => {
            tracing::error!(folder = %folder.display(), %error, "the store works without its index");
            None
        }
    }
}

/// Returns the first sequence numbers of the volumes, ascending; at least one.
fn firsts(files: &dyn Files, folder: &Path, ledger: &Ledger) -> Result<Vec<u64>, OpenError> {
    let mut firsts = recover::firsts(files, folder).map_err(OpenError::io(folder))?;
    if firsts.is_empty() {
        if ledger.next_sequence > 1 {
            tracing::error!(
                games = ledger.next_sequence - 1,
                "games were acknowledged, and there is no volume: was the folder `volumes` removed?"
            );
        }
        firsts.insert(ledger.next_sequence);
    }
    Ok(firsts.into_iter().collect())
}

/// Logs the damage of a store that is opened for writing.
fn report(contents: &Contents) {
    if contents.damage.is_ledger_lost {
        tracing::error!(
            "the ledger file is damaged; the counts are taken from the log, and games lost at its end cannot be noticed this time"
        );
    }
    for path in &contents.damage.id_files {
        tracing::error!(file = %path.display(), "ids of retired games cannot be read; those games would be taken for new ones");
    }
    for found in contents.volumes.iter().filter(|found| !found.losses.is_empty()) {
        tracing::warn!(
            volume = %found.volume.folder().display(),
            kept = found.survivors.len(),
            lost = found.losses.len(),
            "a volume is damaged"
        );
    }
    for loss in &contents.damage.losses {
        let id = loss.id.map_or_else(
            || "unknown".to_owned(),
            |id| format!("{:032x}", u128::from_be_bytes(id)),
        );
        tracing::error!(sequence = loss.sequence, id, "an acknowledged game is lost");
    }
}
