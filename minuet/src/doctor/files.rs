//! The files of a run, read as a start reads them: identities of actors, measured choices, the replay store, the store of checkpoints. And
//! their repair.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use actor::play::naming::{Damage, Naming};
use anyhow::{Context as _, ensure};
use arena::rating::damage::damage;
use checkpoints::Repository;
use config::RunConfig;
use launcher::run::{
    choices::{self, Choices},
    folder::RunFolder,
};
use replay_store::{error::OpenError, settings::Settings, store::Store};

use super::Check;

/// Locks of processes that work in a run without `minuet up`.
const LOCKS: [&str; 2] = ["learner.lock", "lock"];

/// Most lost games that are named.
const MOST_NAMED: usize = 10;

/// Reads the files. The replay store of a run at work is left to its process, which reads it at its start.
pub async fn checks(run: &Path, config: &RunConfig) -> Vec<Check> {
    let at = run.display();
    let repair = format!("stop the run, then `minuet doctor --run {at} --repair`");
    let fix = |is_newer: bool| match is_newer {
        true => "use the build that wrote it, or a newer one",
        false => repair.as_str(),
    };
    let folders = spools(config).into_iter();
    let mut checks: Vec<Check> = folders
        .filter_map(|folder| Naming::damage(&folder))
        .map(|found| {
            let text = format!("{}: {}", found.path.display(), found.reason);
            Check::fail("identity", text, fix(found.is_newer))
        })
        .collect();
    if let Err(error) = Choices::kept(run, config) {
        let text = format!("{}: {error}", run.join(choices::FILE).display());
        checks.push(Check::warn(
            "choices",
            text,
            "nothing: the next start measures again and writes it anew",
        ));
    }
    checks.extend(damage(&config.rating.folder).into_iter().map(|text| {
        Check::warn(
            "rating",
            text,
            "stop the run, and remove the line, or the folder of the match: ratings follow from what is left",
        )
    }));
    checks.extend(games(run, config).await);
    match opened(config).map(|store| async move { store?.faults().await }) {
        None => {}
        Some(faults) => match faults.await {
            Ok(faults) => checks.extend(faults.into_iter().map(|fault| {
                let store = &config.checkpoints.store;
                let text = format!("{store}/{}: {}", fault.file, fault.reason);
                let fix = match fault.file.ends_with(checkpoints::MODEL) {
                    true => "the learner writes the newest one again at its next start; older ones are needed for play only",
                    false => fix(fault.is_newer),
                };
                Check::fail("checkpoints", text, fix)
            })),
            Err(error) => checks.push(Check::fail("checkpoints", error.to_string(), "check checkpoints.store")),
        },
    }
    checks
}

/// Repairs what can be derived, and returns a sentence about each thing done.
///
/// # Errors
/// A process works in the run or publishes to its store; no checkpoint is sound; or the store or the file system failed.
pub async fn repair(run: &Path, config: &RunConfig) -> anyhow::Result<Vec<String>> {
    let _lock = RunFolder::open(run, None, &[]).context("--repair needs a stopped run")?;
    let spools = spools(config);
    let folders = spools.iter().chain([&config.learner.folder]);
    for path in folders.flat_map(|folder| LOCKS.map(|lock| folder.join(lock))) {
        let is_free = File::open(&path).map_or(true, |lock| lock.try_lock_shared().is_ok());
        ensure!(
            is_free,
            "--repair needs a stopped run, and a process holds {}",
            path.display()
        );
    }
    let mut done = Vec::new();
    let damaged = spools.iter().filter_map(|folder| Naming::damage(folder));
    // A file that this account may not read may be sound.
    for Damage { path, .. } in damaged.filter(|found| !found.is_newer && fs::read(&found.path).is_ok()) {
        let aside = path.with_extension("json.damaged");
        durable::rename(&path, &aside).with_context(|| format!("cannot rename {}", path.display()))?;
        done.push(format!(
            "{} is set aside: the actor takes a new identity",
            path.display()
        ));
    }
    if let Some(store) = opened(config) {
        done.extend(store?.repair().await?);
    }
    Ok(done)
}

/// Opens the store of checkpoints; `None` if it is a folder that does not exist, which opening would make.
fn opened(config: &RunConfig) -> Option<Result<Repository, checkpoints::Error>> {
    let store = &config.checkpoints.store;
    (store.contains("://") || Path::new(store).exists()).then(|| Repository::open(store))
}

/// Returns the spool's folder and the folders in it, one for each actor of `minuet up`.
fn spools(config: &RunConfig) -> Vec<PathBuf> {
    let spool = &config.actor.spool;
    let entries = fs::read_dir(spool).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    [spool.clone()].into_iter().chain(folders).collect()
}

async fn games(run: &Path, config: &RunConfig) -> Option<Check> {
    let folder = &config.replay.folder;
    if !folder.exists() || replay_store::serve::address(folder).is_some() {
        return None;
    }
    let settings = Settings::from_config(config);
    let opening = move || {
        let store = Store::open_to_read(settings)?;
        let damage = store.damage();
        match damage.is_none() {
            true => Ok(()),
            false => Err(OpenError::Damaged(damage.clone())),
        }
    };
    let error = match tokio::task::spawn_blocking(opening).await {
        Ok(Ok(()) | Err(OpenError::InUse { .. })) => return None,
        Ok(Err(error)) => error,
        Err(error) => {
            return Some(Check::fail(
                "games",
                error.to_string(),
                "look at the replay store's log",
            ));
        }
    };
    let text = service::chain(&error);
    let (at, place) = (run.display(), folder.display());
    Some(match &error {
        OpenError::Damaged(damage) => {
            let lost = damage.losses.iter().take(MOST_NAMED);
            let named: String = lost
                .map(|loss| format!("; game {} in {}", loss.sequence, volume(folder, loss.sequence)))
                .collect();
            let fix = format!(
                "`minuet games list --run {at} --repair` records the damage, and the run continues without these games"
            );
            Check::fail("games", format!("{place}: {text}{named}"), fix)
        }
        _ => Check::fail(
            "games",
            text.to_string(),
            format!("restore the file in {place} from a copy"),
        ),
    })
}

/// Returns the name of the volume with a game: the last one that begins with its sequence number or a lower one.
fn volume(folder: &Path, sequence: u64) -> String {
    let entries = fs::read_dir(folder.join("volumes"))
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let before = names.filter(|name| name.parse::<u64>().is_ok_and(|first| first <= sequence));
    format!("volumes/{}", before.max().unwrap_or_default())
}
