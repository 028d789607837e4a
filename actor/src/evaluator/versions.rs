//! Numbers the model versions that have answered, and knows which of them is current.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::RwLock;
use proto::v1::ModelDescription;

/// A version that was seen later has a larger id.
pub use network::cache::VersionId;

const ID_BITS: u32 = 24;
const NONE: u64 = 0;

/// Error: the inference server has answered with more versions than an actor can number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than 2^24 model versions were seen; something is wrong with the inference server")]
pub struct TooManyVersions;

/// The versions that have answered in this process, shared by its threads.
#[derive(Debug, Default)]
pub struct Versions {
    names: RwLock<Vec<Arc<str>>>,
    /// Execution provider of each version, in the order of `names`; empty if the server has not described the version.
    providers: RwLock<Vec<String>>,
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
    /// [`TooManyVersions`]
    pub fn answered(&self, name: &str, stamp: u64) -> Result<VersionId, TooManyVersions> {
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

    /// Returns the version's name on the wire.
    pub fn name(&self, id: VersionId) -> Arc<str> {
        let names = self.names.read();
        names.get(id.0 as usize).cloned().unwrap_or_default()
    }

    /// Notes the execution provider of a version. A version that has not answered yet is ignored: it is described again when it
    /// answers.
    pub fn describe(&self, model: ModelDescription) {
        let find = |names: &[Arc<str>]| names.iter().rposition(|known| **known == *model.version);
        let at = find(&self.names.read());
        if let Some(at) = at {
            let mut providers = self.providers.write();
            if providers.len() <= at {
                providers.resize(at + 1, String::new());
            }
            if let Some(provider) = providers.get_mut(at) {
                *provider = model.provider;
            }
        }
    }

    /// Returns the execution provider of a version; empty if the server has not described the version.
    pub fn provider(&self, id: VersionId) -> String {
        let providers = self.providers.read();
        providers.get(id.0 as usize).cloned().unwrap_or_default()
    }

    /// True if the version has answered before.
    pub fn is_known(&self, name: &str) -> bool {
        self.names.read().iter().any(|known| **known == *name)
    }

    fn intern(&self, name: &str) -> Result<VersionId, TooManyVersions> {
        let find = |names: &[Arc<str>]| names.iter().rposition(|known| **known == *name);
        if let Some(at) = find(&self.names.read()) {
            return Ok(VersionId(at as u32));
        }
        let mut names = self.names.write();
        // Another thread may have added the name between the two locks.
        if let Some(at) = find(&names) {
            return Ok(VersionId(at as u32));
        }
        if names.len() + 1 >= 1 << ID_BITS {
            return Err(TooManyVersions);
        }
        names.push(name.into());
        Ok(VersionId(names.len() as u32 - 1))
    }
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
        assert_eq!(versions.answered("old", stamps[1]), Ok(old));
        assert_eq!(versions.current(), Some(new), "a late reply changes nothing");
        assert_eq!(versions.answered("old", stamps[3]), Ok(old));
        assert_eq!(versions.current(), Some(old), "a label was rolled back");
        assert_eq!(&*versions.name(new), "new");
    }
}
