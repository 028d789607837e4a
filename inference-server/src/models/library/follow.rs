//! Follows a label: loads each new checkpoint beside the served one and swaps them between two batches.
//! If a checkpoint cannot be loaded, the old model goes on serving. Transient failures are retried until the label moves.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use checkpoints::{Manifest, Repository};
use futures::StreamExt as _;
use tokio::task::AbortHandle;

use super::Library;
use crate::models::{
    slot::ModelSlot,
    source::{Found, Source},
};

/// Pause before the second try. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Follows `label` in `store` for a slot until the returned handle is aborted or the library is dropped.
pub fn start(library: &Arc<Library>, slot: &Arc<ModelSlot>, store: Repository, label: &str) -> AbortHandle {
    let mut versions = store.watch(label, library.poll());
    // The task must not keep the library or the slot alive.
    let (library, slot) = (Arc::downgrade(library), Arc::downgrade(slot));
    let following = tokio::spawn(async move {
        let (mut next, mut pause) = (versions.next().await, FIRST_PAUSE);
        while let Some(manifest) = next {
            let Some((library, slot)) = both(&library, &slot) else {
                return;
            };
            let is_over = renew(&library, &slot, &manifest).await;
            drop((library, slot));
            if is_over {
                (next, pause) = (versions.next().await, FIRST_PAUSE);
                continue;
            }
            // A newer checkpoint ends the pause.
            match tokio::time::timeout(pause, versions.next()).await {
                Ok(newer) => (next, pause) = (newer, FIRST_PAUSE),
                Err(_) => (next, pause) = (Some(manifest), LONGEST_PAUSE.min(2 * pause)),
            }
        }
    });
    following.abort_handle()
}

/// Points a slot at a checkpoint. Returns false if that failed now but may succeed later.
async fn renew(library: &Library, slot: &Arc<ModelSlot>, manifest: &Manifest) -> bool {
    let renewed = match Found::of(manifest.clone()) {
        Ok(found) => library.follow(slot, &found).await,
        Err(error) => Err(error.into()),
    };
    let Err(error) = renewed else { return true };
    library.metrics().refused_model();
    let is_over = !error.is_transient();
    let served = slot.current();
    tracing::error!(
        name = slot.text,
        version = %manifest.version,
        error = %service::chain(&error),
        still_served = served.map_or_else(|| "none".into(), |model| model.info.version.clone()),
        "{}", if is_over { "checkpoint refused" } else { "checkpoint cannot be loaded; trying again" }
    );
    is_over
}

/// Loads a version or a file, and retries until that succeeds.
pub fn until_loaded(library: &Arc<Library>, slot: &Arc<ModelSlot>, source: Source) -> AbortHandle {
    let (library, slot) = (Arc::downgrade(library), Arc::downgrade(slot));
    let loading = tokio::spawn(async move {
        let mut pause = FIRST_PAUSE;
        while let Some((library, slot)) = both(&library, &slot) {
            let loaded = match source.find(&slot.name.pointer).await {
                Ok(found) => library.follow(&slot, &found).await,
                Err(error) => Err(error.into()),
            };
            let Err(error) = loaded else { return };
            library.metrics().refused_model();
            tracing::error!(name = slot.text, error = %service::chain(&error), "model cannot be served; trying again");
            drop((library, slot));
            tokio::time::sleep(pause).await;
            pause = LONGEST_PAUSE.min(2 * pause);
        }
    });
    loading.abort_handle()
}

fn both(library: &Weak<Library>, slot: &Weak<ModelSlot>) -> Option<(Arc<Library>, Arc<ModelSlot>)> {
    Some((library.upgrade()?, slot.upgrade()?))
}
