//! Numbers the model versions that have answered, and knows which of them is current.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::ensure;
use parking_lot::RwLock;
use proto::v1::ModelDescription;

/// A version that was seen later has a larger id.
pub use network::cache::VersionId;

const ID_BITS: u32 = 24;
const NONE: u64 = 0;

/// The versions that have answered in this process, shared by its threads.
#[derive(Debug, Default)]
pub struct Versions {
    /// Name and execution provider of each version. The provider is empty if the server has not described the version.
    seen: RwLock<Vec<(String, String)>>,
    requests: AtomicU64,
    /// `request stamp << 24 | (id + 1)`: the version that answered the latest request, 0 for none.
    current: AtomicU64,
}

impl Versions {
    /// Returns a stamp for a request that is about to be sent. Stamps ascend over all threads.
    pub fn stamp(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes that version `name` answered the request with this stamp, and returns the version's id.
    ///
    /// The current version is the one that answered the request with the *largest stamp*, not the one whose reply arrived last:
    /// a late reply of an old model does not make the old model current, but a label that is moved back does.
    ///
    /// # Errors
    /// The server has answered with more versions than an actor can number.
    pub fn answered(&self, name: &str, stamp: u64) -> anyhow::Result<VersionId> {
        let id = self.intern(name)?;
        let packed = stamp << ID_BITS | u64::from(id.0 + 1);
        self.current.fetch_max(packed, Ordering::Relaxed);
        Ok(id)
    }

    /// Returns the current version: the cache answers only with evaluations of this version. `None` before the first reply.
    pub fn current(&self) -> Option<VersionId> {
        match self.current.load(Ordering::Relaxed) {
            NONE => None,
            packed => Some(VersionId((packed & ((1 << ID_BITS) - 1)) as u32 - 1)),
        }
    }

    /// Returns the version's name on the wire, and its execution provider, which is empty if the server has not described the
    /// version.
    pub fn described(&self, id: VersionId) -> (String, String) {
        let seen = self.seen.read();
        seen.get(id.0 as usize).cloned().unwrap_or_default()
    }

    /// Notes the execution provider of a version. A version that has not answered yet is ignored: it is described again when it
    /// answers.
    pub fn describe(&self, model: ModelDescription) {
        let mut seen = self.seen.write();
        if let Some(at) = place(&seen, &model.version) {
            seen[at].1 = model.provider;
        }
    }

    /// True if the version has answered before.
    pub fn is_known(&self, name: &str) -> bool {
        place(&self.seen.read(), name).is_some()
    }

    fn intern(&self, name: &str) -> anyhow::Result<VersionId> {
        if let Some(at) = place(&self.seen.read(), name) {
            return Ok(VersionId(at as u32));
        }
        let mut seen = self.seen.write();
        // Another thread may have added the name between the two locks.
        let at = match place(&seen, name) {
            Some(at) => at,
            None => {
                ensure!(
                    seen.len() + 1 < 1 << ID_BITS,
                    "more than 2^24 model versions were seen; something is wrong with the inference server"
                );
                seen.push((name.into(), String::new()));
                seen.len() - 1
            }
        };
        Ok(VersionId(at as u32))
    }
}

/// Returns the place of a version. The search begins at the newest one.
fn place(seen: &[(String, String)], name: &str) -> Option<usize> {
    seen.iter().rposition(|(known, _)| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_that_answered_the_latest_request_is_current() {
        let versions = Versions::default();
        assert_eq!(versions.current(), None);
        let stamps: Vec<u64> = (0..4).map(|_| versions.stamp()).collect();
        let old = versions.answered("old", stamps[0]).unwrap();
        assert_eq!(versions.current(), Some(old));
        let new = versions.answered("new", stamps[2]).unwrap();
        assert!(new > old);
        assert_eq!(versions.answered("old", stamps[1]).unwrap(), old);
        assert_eq!(versions.current(), Some(new), "a late reply changes nothing");
        assert_eq!(versions.answered("old", stamps[3]).unwrap(), old);
        assert_eq!(versions.current(), Some(old), "a label was rolled back");
        assert_eq!(versions.described(new).0, "new");
    }
}
