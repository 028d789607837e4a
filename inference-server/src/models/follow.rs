//! Follows a label: each new checkpoint is loaded beside the one that is served, and takes over between two batches.
//! What cannot be loaded is refused, and the old model goes on. What may load later is tried again, until the label moves on.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use checkpoints::{Manifest, Repository};
use futures::StreamExt as _;
use tokio::task::AbortHandle;

use crate::models::{
    library::Library,
    slot::Slot,
    source::{Found, Source},
};

/// Pause before a second try; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Follows `label` in `store` for a slot, until the handle is aborted or the library is gone.
pub fn start(library: &Arc<Library>, slot: &Arc<Slot>, store: Repository, label: &str) -> AbortHandle {
    let mut versions = store.watch(label, library.poll());
    // Neither the library nor the slot is kept alive by who works for it.
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
            // The label is watched meanwhile: a newer checkpoint need not wait for this one.
            match tokio::time::timeout(pause, versions.next()).await {
                Ok(newer) => (next, pause) = (newer, FIRST_PAUSE),
                Err(_) => (next, pause) = (Some(manifest), LONGEST_PAUSE.min(2 * pause)),
            }
        }
    });
    following.abort_handle()
}

/// Lets a slot point at a checkpoint. False where it cannot now and may later.
async fn renew(library: &Library, slot: &Arc<Slot>, manifest: &Manifest) -> bool {
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
        %error,
        still_served = served.map_or_else(|| "none".into(), |model| model.info.version.clone()),
        "{}", if is_over { "checkpoint refused" } else { "checkpoint cannot be loaded; trying again" }
    );
    is_over
}

/// Loads what does not move on, a version or a file, as soon as it can be had.
pub fn until_loaded(library: &Arc<Library>, slot: &Arc<Slot>, source: Source) -> AbortHandle {
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
            tracing::error!(name = slot.text, %error, "cannot be served; trying again");
            drop((library, slot));
            tokio::time::sleep(pause).await;
            pause = LONGEST_PAUSE.min(2 * pause);
        }
    });
    loading.abort_handle()
}

fn both(library: &Weak<Library>, slot: &Weak<Slot>) -> Option<(Arc<Library>, Arc<Slot>)> {
    Some((library.upgrade()?, slot.upgrade()?))
}
