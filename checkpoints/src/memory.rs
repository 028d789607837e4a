//! [`Memory`]: results of earlier searches of a store, which pruning uses again.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Version;

/// A checkpoint's line, and its place in the line's order of training: token, step, time of publishing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: String,
    pub(crate) order: (u64, u64, u64),
}

/// Manifests of a store that this process has read. A manifest never changes, so pruning reads each of them once.
#[derive(Default)]
pub(crate) struct Memory {
    /// Places of the checkpoints that the last call found.
    pub(crate) places: Mutex<BTreeMap<Version, Place>>,
    /// Time of the last search for leftovers; `None` before the first search.
    pub(crate) looked: Mutex<Option<Instant>>,
}
