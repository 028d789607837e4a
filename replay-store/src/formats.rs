//! Versions of the store's files that a build reads.
//!
//! Every file and frame contains its version. If a version is unknown and the rest is intact, a newer build wrote it, and opening the
//! store is refused before anything is changed. If the checksum is wrong, the file or frame is damaged.
//!
//! The index has a version too, but is not listed here: it is derived from the log, and an index of another version is rebuilt.

use crate::{
    log::{frame, frame::Magic, ids},
    record,
    store::{archived, identity},
};

/// Versions that a build reads. Tests remove some of them, in order to open a store as an older build does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    /// Versions of `store.json`, which stand for the folder as a whole.
    pub folders: &'static [u32],
    /// Magics of the frames of logs and of the ledger.
    pub frames: &'static [Magic],
    /// Versions of records.
    pub records: &'static [u8],
    /// Magics of the files of retired ids.
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

/// Returns a magic as text for messages, for example `MnG2`.
pub fn name(magic: Magic) -> String {
    magic.escape_ascii().to_string()
}
