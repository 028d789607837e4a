//! Versions of the store's files that a build reads.
//!
//! Every file and frame carries its version. One that is unknown and otherwise intact was written by a newer build: opening
//! the store is then refused before anything is changed. One with a wrong checksum is damaged.
//!
//! The index has a version too, but is not listed here: it is derived from the log, and an index of another version is rebuilt.

use crate::{
    log::{frame, frame::Magic, ids},
    record,
    store::{archived, identity},
};

/// Versions that a build reads. Tests leave some out and thereby open a store as an older build does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    /// Versions of `store.json`, which stand for the folder as a whole.
    pub folders: &'static [u32],
    /// Frames of logs and of the ledger.
    pub frames: &'static [Magic],
    /// Versions of records.
    pub records: &'static [u8],
    /// Files of retired ids.
    pub ids: &'static [Magic],
    /// Versions of the markers of archived volumes.
    pub markers: &'static [u32],
}

impl Formats {
    /// All versions that this build reads.
    pub const THIS_BUILD: Self = Self {
        folders: identity::FORMATS,
        frames: frame::KNOWN,
        records: record::VERSIONS,
        ids: ids::KNOWN,
        markers: archived::FORMATS,
    };
}

/// Returns a magic for a message, for example `MnG2`.
pub fn name(magic: Magic) -> String {
    magic.escape_ascii().to_string()
}
