//! Opening a store: its folder is claimed, every volume read through, what was lost named, the window filled.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};

use crate::{
    error::OpenError,
    exchange::vault::Vault,
    log::files::Files,
    log::known_ids::Known,
    log::ledger::{Found, Keeper, Ledger, LedgerFile},
    log::recover::{self, Ground, Loss, Recovered},
    log::volumes::Shelf,
    metrics,
    settings::Settings,
    store::identity::{self, Claim, Identity},
    store::shared::{Shared, State, volume_folder, volumes_folder},
    store::writer::Fill,
    window::Window,
    window::cache::Cache,
    window::uses_bound::Gate,
};

/// An opened store, before anything runs.
pub struct Opened {
    /// What the writer and the readers share.
    pub shared: Shared,
    /// The folder, for as long as this lives.
    pub claim: Claim,
    /// What the store is for.
    pub identity: Identity,
    /// How full the youngest volume is.
    pub fill: Fill,
    /// Acknowledged games that are gone, found out just now.
    pub losses: Vec<Loss>,
    /// Where sealed volumes are written, if they are.
    pub vault: Option<Vault>,
}

/// Opens the store that `settings` describe, or makes it.
///
/// # Errors
/// [`OpenError`]; the folder is as it was then, but for volumes that were mended.
pub fn open(settings: Settings, files: Arc<dyn Files>) -> Result<Opened, OpenError> {
    let folder = settings.folder.clone();
    let vault = match settings.archive.as_str() {
        "" => None,
        location => Some(Vault::open(location)?),
    };
    let (claim, mut identity) = identity::claim(files.as_ref(), &folder, &settings.game, settings.options)?;
    if vault.is_some() && identity.archive_name.is_none() {
        identity.archive_name = Some(format!("store-{:016x}", rand::random::<u64>()));
        identity
            .save(files.as_ref(), &folder)
            .map_err(OpenError::io(&folder))?;
    }
    let ledger_path = folder.join("ledger");
    let (file, found) =
        LedgerFile::open(files.as_ref(), &ledger_path).map_err(OpenError::io(&ledger_path))?;
    let mut ledger = match found {
        Found::Ledger(ledger) => ledger,
        Found::Nothing => Ledger::new(),
        Found::Damaged => {
            tracing::error!(
                file = %ledger_path.display(),
                "the ledger file is damaged; the counts are taken from the database, and games it lost at its end cannot be noticed this time"
            );
            Ledger::new()
        }
    };
    let retired = folder.join("retired");
    let (mut known, damaged) =
        Known::open(&files, &retired, settings.remembered_games).map_err(OpenError::io(&retired))?;
    for path in damaged {
        tracing::error!(file = %path.display(), "ids of retired games cannot be read; those games would be taken for new ones");
    }

    let shelf = Shelf::default();
    let mut window = Window::new(settings.window_positions);
    let mut losses = Vec::new();
    let mut fill = Fill::default();
    let firsts = volumes(files.as_ref(), &volumes_folder(&folder), &ledger)?;
    let damaged = folder.join("damaged");
    for (at, &first) in firsts.iter().enumerate() {
        let end = firsts.get(at + 1).copied();
        let path = volume_folder(&folder, first);
        let ground = Ground {
            files: &files,
            folder: &path,
            damaged: &damaged,
            engine: settings.engine,
            held_out: settings.held_out,
        };
        let recovered = recover::open(ground, first, end, ledger)?;
        report(&path, &recovered);
        ledger = recovered.ledger;
        losses.extend(recovered.losses);
        fill = Fill::default();
        for survivor in &recovered.survivors {
            let uses = settings.held_out.uses(&survivor.id, survivor.trainable);
            fill.positions += u64::from(uses.trainable.max(1));
            fill.bytes += u64::from(survivor.bytes);
            known.insert(survivor.id, survivor.sequence);
            window.push(survivor.sequence, uses, survivor.bytes);
        }
        for (sequence, id) in recovered.deleted {
            known.insert(id, sequence);
        }
        shelf.push(recovered.volume);
    }
    metrics::damaged(losses.len() as u64);
    metrics::window(&window);
    let positions = window.positions();
    let keeper = Keeper::new(file, ledger).map_err(OpenError::io(&ledger_path))?;
    files.sync_folder(&folder).map_err(OpenError::io(&folder))?;
    let archived_to = if vault.is_some() { 0 } else { u64::MAX };
    let shared = Shared {
        archived_to: AtomicU64::new(archived_to),
        sealed: Notify::new(),
        files,
        cache: Cache::new(settings.cache_bytes),
        settings,
        shelf,
        window: RwLock::new(window),
        known: RwLock::new(known),
        keeper: Mutex::new(keeper),
        gate: Gate::default(),
        unreadable: Mutex::new(BTreeSet::new()),
        positions: watch::Sender::new(positions),
        state: watch::Sender::new(State::Running),
        room_warning: Mutex::new(None),
    };
    Ok(Opened {
        shared,
        claim,
        identity,
        fill,
        losses,
        vault,
    })
}

/// What a retired volume is called while it is removed.
const RETIRED: &str = "retired";

/// Removes a volume's folder, so that it is there whole or not at all: half of one would be taken for a damaged one.
///
/// # Errors
/// What the file system reports.
pub fn remove_volume(files: &dyn Files, folder: &Path) -> io::Result<()> {
    let retired = folder.with_extension(RETIRED);
    files.rename(folder, &retired)?;
    files.remove_folder(&retired)
}

/// The first sequence numbers of the volumes, ascending; at least one.
fn volumes(files: &dyn Files, folder: &Path, ledger: &Ledger) -> Result<Vec<u64>, OpenError> {
    files.create_folder(folder).map_err(OpenError::io(folder))?;
    let mut firsts = BTreeMap::new();
    for entry in files.list(folder).map_err(OpenError::io(folder))? {
        let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
        if entry.path.extension().is_some_and(|ending| ending == RETIRED) {
            files
                .remove_folder(&entry.path)
                .map_err(OpenError::io(&entry.path))?;
            continue;
        }
        // A volume whose rebuilding was interrupted at the last step has only this name.
        let number = name.strip_suffix(".rebuild").unwrap_or(&name);
        match number.parse::<u64>() {
            Ok(first) => {
                firsts.insert(first, ());
            }
            Err(_) => tracing::warn!(name = %name, "not a volume; it is left alone"),
        }
    }
    if firsts.is_empty() {
        if ledger.next_sequence > 1 {
            tracing::error!(
                games = ledger.next_sequence - 1,
                "games were acknowledged, and there is no volume: was the folder `volumes` removed?"
            );
        }
        firsts.insert(ledger.next_sequence, ());
    }
    Ok(firsts.into_keys().collect())
}

fn report(path: &Path, recovered: &Recovered) {
    if let Some(reason) = &recovered.rebuilt {
        tracing::warn!(
            volume = %path.display(),
            reason,
            kept = recovered.survivors.len(),
            lost = recovered.losses.len(),
            "a volume was damaged and has been built anew"
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
