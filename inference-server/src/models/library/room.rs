//! Memory: what was used longest ago makes room for what is asked for, once it has answered what it was given.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{Library, LibraryError};
use crate::models::{slot::Slot, source::Found};
use network::model::Model;

/// How often it is looked whether a model that was unloaded is still in use.
const LOOK: Duration = Duration::from_millis(20);
/// How long to wait for requests in flight before memory is given up on.
const PATIENCE: Duration = Duration::from_secs(30);

impl Library {
    /// Unloads what was used longest ago until a model for `slot` fits beside the one that the slot has: that goes on answering
    /// until then. Nothing is unloaded for a model that would not fit even so. The default's models always do: training must
    /// go on.
    pub(super) async fn make_room(&self, slot: &Slot, found: &Found) -> Result<(), LibraryError> {
        let (models, budget) = (self.models(), self.parts.budget);
        let needed = self.parts.loader.memory(found.bytes);
        let stays = models.bytes_of(|other| other.is_pinned || std::ptr::eq(other, slot));
        if needed + stays > budget && !slot.is_pinned {
            return Err(LibraryError::NoRoom {
                needed,
                budget,
                free: budget.saturating_sub(stays),
            });
        }
        let began = Instant::now();
        loop {
            let (served, retiring) = (models.bytes(), self.retiring.load(Ordering::Relaxed));
            let used = served + retiring;
            if used + needed <= budget {
                return Ok(());
            }
            let may_wait = retiring > 0 && began.elapsed() < PATIENCE;
            if served + needed <= budget && may_wait {
                tokio::time::sleep(LOOK).await;
            } else if let Some(oldest) = models.least_recently_used(Some(slot)) {
                self.close(&oldest, "its memory is needed");
            } else if may_wait {
                tokio::time::sleep(LOOK).await;
            } else if slot.is_pinned {
                tracing::warn!(
                    needed,
                    used,
                    budget,
                    "the default's models exceed inference.memory_mib"
                );
                return Ok(());
            } else {
                return Err(LibraryError::NoRoom {
                    needed,
                    budget,
                    free: budget.saturating_sub(models.bytes()),
                });
            }
        }
    }

    /// Ends serving a name.
    pub(super) fn close(&self, slot: &Arc<Slot>, why: &'static str) {
        if let Some(model) = self.models().remove(slot) {
            tracing::info!(name = slot.text, version = model.info.version, why, "unloaded");
            self.metrics().unloaded();
            self.retire(model);
        }
        self.tell_memory();
    }

    /// Frees a model once its last request is answered, where that holds nobody up.
    pub(super) fn retire(&self, model: Arc<Model>) {
        let weak = Arc::downgrade(&model);
        // Another name may point at it.
        let is_served = self
            .models()
            .slots()
            .iter()
            .filter_map(|slot| slot.current())
            .any(|served| Arc::ptr_eq(&served, &model));
        if is_served {
            return;
        }
        let (bytes, retiring) = (model.info.bytes, self.retiring.clone());
        retiring.fetch_add(bytes, Ordering::Relaxed);
        tokio::spawn(async move {
            while weak.strong_count() > 1 {
                tokio::time::sleep(LOOK).await;
            }
            // It cannot fail to end but where the process does.
            let _ = tokio::task::spawn_blocking(move || drop(model)).await;
            retiring.fetch_sub(bytes, Ordering::Relaxed);
        });
    }

    /// Says what is loaded now.
    pub(super) fn tell_memory(&self) {
        let slots = self.models().slots();
        let loaded = slots.iter().filter(|slot| slot.current().is_some()).count();
        self.metrics().memory(loaded, self.models().bytes());
    }
}
