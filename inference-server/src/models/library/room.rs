//! The memory budget: the least recently used models are unloaded until a new one fits.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{Library, LibraryError};
use crate::models::{slot::ModelSlot, source::Found};
use network::model::Model;

/// Interval at which an unloaded model is checked for requests that still use it.
const LOOK: Duration = Duration::from_millis(20);
/// Longest wait for requests in flight to free memory.
const MAX_WAIT: Duration = Duration::from_secs(30);

impl Library {
    /// Unloads the least recently used models until a new model for `slot` fits beside the slot's current one, which
    /// answers meanwhile. Unloads nothing if the new model would not fit anyway. Models of the default name are loaded
    /// even beyond the budget, because training must go on.
    pub(super) async fn make_room(&self, slot: &ModelSlot, found: &Found) -> Result<(), LibraryError> {
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
            let may_wait = retiring > 0 && began.elapsed() < MAX_WAIT;
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

    /// Unloads a name.
    pub(super) fn close(&self, slot: &Arc<ModelSlot>, why: &'static str) {
        if let Some(model) = self.models().remove(slot) {
            tracing::info!(name = slot.text, version = model.info.version, why, "unloaded");
            self.metrics().unloaded();
            self.retire(model);
        }
        self.update_metrics();
    }

    /// Frees a model after its last request is answered, on a blocking thread.
    pub(super) fn retire(&self, model: Arc<Model>) {
        let weak = Arc::downgrade(&model);
        // Another name may point at the model.
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
            // This fails only when the process ends.
            let _ = tokio::task::spawn_blocking(move || drop(model)).await;
            retiring.fetch_sub(bytes, Ordering::Relaxed);
        });
    }

    /// Updates the metrics of loaded models.
    pub(super) fn update_metrics(&self) {
        let slots = self.models().slots();
        let loaded = slots.iter().filter(|slot| slot.current().is_some()).count();
        self.metrics().memory(loaded, self.models().bytes());
    }
}
