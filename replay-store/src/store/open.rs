//! Opening a store: locks the folder, reads every volume, finds lost games and fills the window.
//!
//! Everything is read before anything is written, so that a folder is left unchanged if a newer build wrote a part of it.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::{Mutex, RwLock};
use proto::ids::hex;
use service::log_throttle::LogThrottle;
use tokio::sync::{Notify, watch};

use crate::{
    error::{Damage, OpenError},
    exchange::archive_store::ArchiveStore,
    index::Index,
    log::{
        drawn::DrawnBatches,
        files::Files,
        ledger::{Ledger, LedgerRead, LiveLedger, SharedLedger},
        recover::{self, Found},
        volume::Volumes,
    },
    metrics::Metrics,
    record::validate::Validator,
    settings::Settings,
    store::{
        IndexUse,
        identity::{self, Claim},
        shared::{Fill, Shared, StoreState, volume_folder, volumes_folder},
    },
    window::{
        Window,
        cache::Cache,
        catalog::{Catalog, Labels},
        uses_bound::UsesBound,
    },
};

/// A store that is open and has no threads yet.
pub struct Opened {
    /// StoreState that the threads of the store share.
    pub shared: Shared,
    /// Lock of the folder.
    pub claim: Claim,
    /// Contents of the newest volume.
    pub fill: Fill,
    /// Damage that was found by this opening.
    pub damage: Damage,
    /// Archive of sealed volumes, and the name of the store in it; `None` without an archive.
    pub archive: Option<(ArchiveStore, String)>,
}

/// Contents of a store's folder. Nothing was changed to read them.
struct Contents {
    ledger: Ledger,
    ledger_file: LedgerRead,
    drawn: DrawnBatches,
    index: Option<Index>,
    labels: Labels,
    validator: Validator,
    volumes: Vec<Found>,
    damage: Damage,
}

/// Opens the store that `settings` describe, or creates it. If `repairs` is false, a damaged store is refused. `index` says how the index
/// is used.
///
/// # Errors
/// [`OpenError`]. After [`OpenError::Newer`] and [`OpenError::Damaged`] nothing but the index is changed; after other errors some volumes
/// may be repaired.
pub fn open(
    settings: Settings,
    files: Arc<dyn Files>,
    repairs: bool,
    index: IndexUse,
) -> Result<Opened, OpenError> {
    let folder = settings.folder.clone();
    let (claim, mut identity) = identity::claim(files.as_ref(), &settings)?;
    let mut contents = read(&settings, &files, index)?;
    if !repairs && !contents.damage.is_none() {
        return Err(OpenError::Damaged(contents.damage));
    }
    report(&contents);

    let archive = match settings.archive.as_str() {
        "" => None,
        location => {
            let archive_store = ArchiveStore::open(location)?;
            let name = identity.archive_name(files.as_ref(), &folder);
            Some((archive_store, name.map_err(OpenError::io(&folder))?))
        }
    };
    let volumes = volumes_folder(&folder);
    recover::finish_removals(files.as_ref(), &volumes).map_err(OpenError::io(&volumes))?;
    for found in &mut contents.volumes {
        found.repair(files.as_ref(), &mut contents.ledger)?;
        if let Some(index) = &contents.index {
            let new = found
                .survivors
                .partition_point(|row| row.sequence < found.indexed_to);
            index.begin(&found.volume, found.indexed, &found.survivors[new..]);
        }
    }
    let ledger_path = folder.join("ledger");
    let ledger = LiveLedger::open(
        files.as_ref(),
        &ledger_path,
        &contents.ledger_file,
        contents.ledger,
    )
    .map_err(OpenError::io(&ledger_path))?;
    files.sync_folder(&folder).map_err(OpenError::io(&folder))?;
    Ok(assemble(settings, files, contents, ledger, claim, archive))
}

/// Opens an existing store for reading. Nothing on the disk is changed, and damage is not repaired.
///
/// # Errors
/// [`OpenError`]
pub fn open_to_read(settings: Settings, files: Arc<dyn Files>) -> Result<Opened, OpenError> {
    let claim = identity::claim_to_read(files.as_ref(), &settings)?;
    let contents = read(&settings, &files, IndexUse::Absent)?;
    let ledger = LiveLedger::to_read(contents.ledger);
    Ok(assemble(settings, files, contents, ledger, claim, None))
}

/// Reads the whole folder, and changes nothing but the index.
fn read(settings: &Settings, files: &Arc<dyn Files>, index: IndexUse) -> Result<Contents, OpenError> {
    let folder = &settings.folder;
    let validator = Validator::new(&settings.game, settings.options)?;
    let ledger_file = LedgerRead::read(files.as_ref(), &folder.join("ledger"))?;
    let mut ledger = ledger_file.ledger;
    let mut damage = Damage {
        is_ledger_lost: ledger_file.is_damaged,
        ..Damage::default()
    };
    let drawn = DrawnBatches::read(files, &folder.join("drawn"))?;

    let firsts = firsts(files.as_ref(), &volumes_folder(folder), &ledger)?;
    let index = match index {
        IndexUse::Absent => None,
        IndexUse::Anew => open_index(&folder.join("index"), &[]),
        IndexUse::Trusted => open_index(&folder.join("index"), &firsts),
    };
    let mut labels = Labels::default();
    let mut volumes = Vec::with_capacity(firsts.len());
    for (at, &first) in firsts.iter().enumerate() {
        let span = (first, firsts.get(at + 1).copied());
        let path = volume_folder(folder, first);
        let indexed = index.as_ref().and_then(|index| index.load(first, &mut labels));
        let found = recover::read(files.as_ref(), &path, span, &mut ledger, indexed, &mut labels)?;
        damage.losses.extend(&found.losses);
        volumes.push(found);
    }
    Ok(Contents {
        ledger,
        ledger_file,
        drawn,
        index,
        labels,
        validator,
        volumes,
        damage,
    })
}

/// Builds the state of the open store from the contents of the folder.
fn assemble(
    settings: Settings,
    files: Arc<dyn Files>,
    contents: Contents,
    ledger: LiveLedger,
    claim: Claim,
    archive: Option<(ArchiveStore, String)>,
) -> Opened {
    let Contents {
        drawn,
        index,
        labels,
        validator,
        volumes,
        damage,
        ..
    } = contents;
    let all = Volumes::default();
    let mut window = Window::new(settings.window_positions);
    let mut known = HashMap::new();
    let mut catalog = Catalog::new(labels);
    let mut fill = Fill::default();
    for found in volumes {
        fill = Fill::default();
        for row in found.survivors {
            let uses = settings.held_out.split(&row.id, row.trainable);
            fill.positions += u64::from(uses.trainable.max(1));
            fill.bytes += u64::from(row.bytes);
            known.insert(row.id, row.sequence);
            window.push(row.sequence, uses, row.bytes);
            catalog.push(row.sequence, row.listed);
        }
        known.extend(found.deleted.into_iter().map(|(sequence, id)| (id, sequence)));
        all.push(found.volume);
    }
    let positions = window.positions();
    let shared = Shared {
        archived_to: AtomicU64::new(if archive.is_some() { 0 } else { u64::MAX }),
        sealed: Notify::new(),
        files,
        cache: Cache::new(settings.cache_bytes),
        settings,
        validator,
        volumes: all,
        index,
        metrics: Metrics::new(),
        window: RwLock::new(window),
        known_ids: RwLock::new(known),
        catalog: RwLock::new(catalog),
        ledger: SharedLedger::new(ledger),
        drawn: Mutex::new(drawn),
        uses_bound: UsesBound::default(),
        unreadable: Mutex::new(BTreeSet::new()),
        positions: watch::Sender::new(positions),
        state: watch::Sender::new(StoreState::Running),
        room_warning: LogThrottle::default(),
        batch_warning: LogThrottle::default(),
    };
    shared.metrics.damaged.increment(damage.losses.len() as u64);
    shared.report_index();
    shared.metrics.window_changed(&shared.window.read());
    Opened {
        shared,
        claim,
        fill,
        damage,
        archive,
    }
}

/// Opens the index; the store works without one if that fails.
fn open_index(folder: &Path, volumes: &[u64]) -> Option<Index> {
    Index::open(folder, volumes.iter().copied())
        .inspect_err(|error| {
            tracing::error!(folder = %folder.display(), error, "the store works without its index");
        })
        .ok()
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
    for found in contents.volumes.iter().filter(|found| !found.losses.is_empty()) {
        tracing::warn!(
            volume = %found.volume.folder().display(),
            kept = found.survivors.len(),
            lost = found.losses.len(),
            "a volume is damaged"
        );
    }
    for loss in &contents.damage.losses {
        let id = loss.id.map_or_else(|| "unknown".to_owned(), |id| hex(&id));
        tracing::error!(sequence = loss.sequence, id, "an acknowledged game is lost");
    }
}
