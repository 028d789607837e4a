//! Opening a store: claims the folder, opens every volume, names what was lost, fills the window.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};

use crate::{
    error::OpenError,
    exchange::archive_store::ArchiveStore,
    index::Index,
    log::{
        files::Files,
        ids::KnownIds,
        ledger::{Ledger, LedgerFile, LedgerRead, LiveLedger},
        recover::{self, Loss, Recovered},
        volumes::Volumes,
    },
    metrics::Metrics,
    settings::Settings,
    store::{
        identity::{self, Claim, Identity},
        shared::{Fill, Shared, State, volume_folder, volumes_folder},
    },
    window::{Window, cache::Cache, uses_bound::UsesBound},
};

/// An opened store, before anything runs.
pub struct Opened {
    /// State that the threads of the store share.
    pub shared: Shared,
    /// The folder, for as long as this lives.
    pub claim: Claim,
    /// Identity of the store.
    pub identity: Identity,
    /// Contents of the newest volume.
    pub fill: Fill,
    /// Acknowledged games that are gone, found out just now.
    pub losses: Vec<Loss>,
    /// Archive of sealed volumes; `None` without an archive.
    pub archive_store: Option<ArchiveStore>,
}

/// Opens the store that `settings` describe, or makes it.
///
/// # Errors
/// [`OpenError`]; the folder is as it was then, but for volumes that were mended.
pub fn open(settings: Settings, files: Arc<dyn Files>) -> Result<Opened, OpenError> {
    let folder = settings.folder.clone();
    let archive_store = match settings.archive.as_str() {
        "" => None,
        location => Some(ArchiveStore::open(location)?),
    };
    let (claim, mut identity) = identity::claim(files.as_ref(), &folder, &settings.game, settings.options)?;
    if archive_store.is_some() && identity.archive_name.is_none() {
        identity.archive_name = Some(format!("store-{:016x}", rand::random::<u64>()));
        identity
            .save(files.as_ref(), &folder)
            .map_err(OpenError::io(&folder))?;
    }
    let ledger_path = folder.join("ledger");
    let (file, found) =
        LedgerFile::open(files.as_ref(), &ledger_path).map_err(OpenError::io(&ledger_path))?;
    let mut ledger = match found {
        LedgerRead::Valid(ledger) => ledger,
        LedgerRead::New => Ledger::new(),
        LedgerRead::Damaged => {
            tracing::error!(
                file = %ledger_path.display(),
                "the ledger file is damaged; the counts are taken from the log, and games lost at its end cannot be noticed this time"
            );
            Ledger::new()
        }
    };
    let retired = folder.join("retired");
    let (mut known, damaged) =
        KnownIds::open(&files, &retired, settings.remembered_games).map_err(OpenError::io(&retired))?;
    for path in damaged {
        tracing::error!(file = %path.display(), "ids of retired games cannot be read; those games would be taken for new ones");
    }

    let index = open_index(&settings);
    let all = Volumes::default();
    let mut window = Window::new(settings.window_positions);
    let mut losses = Vec::new();
    let mut fill = Fill::default();
    let firsts = volumes(files.as_ref(), &volumes_folder(&folder), &ledger)?;
    for (at, &first) in firsts.iter().enumerate() {
        let end = firsts.get(at + 1).copied();
        let path = volume_folder(&folder, first);
        let indexed = index.as_ref().and_then(|index| index.load(first));
        let is_indexed = indexed.is_some();
        let recovered = recover::open(&files, &path, first, end, ledger, indexed)?;
        if let Some(index) = index.as_ref().filter(|_| is_indexed && !recovered.is_from_index) {
            tracing::warn!(
                volume = first,
                "the index was made from another log and is rebuilt"
            );
            index.reset(first);
        }
        report(&path, &recovered);
        ledger = recovered.ledger;
        losses.extend(recovered.losses);
        fill = Fill::default();
        for survivor in &recovered.survivors {
            let uses = settings.held_out.split(&survivor.id, survivor.trainable);
            fill.positions += u64::from(uses.trainable.max(1));
            fill.bytes += u64::from(survivor.bytes);
            known.insert(survivor.id, survivor.sequence);
            window.push(survivor.sequence, uses, survivor.bytes);
        }
        for (sequence, id) in recovered.deleted {
            known.insert(id, sequence);
        }
        all.push(recovered.volume);
    }
    if let Some(index) = &index {
        index.sweep();
    }
    let positions = window.positions();
    let live_ledger = LiveLedger::new(file, ledger).map_err(OpenError::io(&ledger_path))?;
    files.sync_folder(&folder).map_err(OpenError::io(&folder))?;
    let archived_to = if archive_store.is_some() { 0 } else { u64::MAX };
    let shared = Shared {
        archived_to: AtomicU64::new(archived_to),
        sealed: Notify::new(),
        files,
        cache: Cache::new(settings.cache_bytes),
        settings,
        volumes: Arc::new(all),
        index,
        metrics: Arc::new(Metrics::new()),
        window: RwLock::new(window),
        known_ids: RwLock::new(known),
        ledger: Mutex::new(live_ledger),
        uses_bound: UsesBound::default(),
        unreadable: Mutex::new(BTreeSet::new()),
        positions: watch::Sender::new(positions),
        state: watch::Sender::new(State::Running),
        room_warning: Mutex::new(None),
    };
    shared.metrics.damaged(losses.len() as u64);
    shared.report_window(&shared.window.read());
    Ok(Opened {
        shared,
        claim,
        identity,
        fill,
        losses,
        archive_store,
    })
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
fn volumes(files: &dyn Files, folder: &Path, ledger: &Ledger) -> Result<Vec<u64>, OpenError> {
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

fn report(path: &Path, recovered: &Recovered) {
    if !recovered.losses.is_empty() {
        tracing::warn!(
            volume = %path.display(),
            kept = recovered.survivors.len(),
            lost = recovered.losses.len(),
            "a volume is damaged"
        );
    }
    for loss in &recovered.losses {
        match loss.id {
            Some(id) => tracing::error!(
                sequence = loss.sequence,
                id = format!("{:032x}", u128::from_be_bytes(id)),
                "an acknowledged game is lost"
            ),
            None => tracing::error!(
                sequence = loss.sequence,
                id = "unknown",
                "an acknowledged game is lost"
            ),
        }
    }
}
