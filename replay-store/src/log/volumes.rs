//! The volumes in order: the youngest is written to, all are read from, the oldest leaves as a whole.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::{error::ReadError, log::volume::Volume};

/// The open volumes. Readers hold on to a volume while they use it, so removing one disturbs nobody.
#[derive(Debug, Default)]
pub struct Volumes {
    volumes: RwLock<Vec<Arc<Volume>>>,
}

impl Volumes {
    /// Adds the youngest volume.
    pub fn push(&self, volume: Volume) {
        self.volumes.write().push(Arc::new(volume));
    }

    /// The volume that is written to.
    pub fn youngest(&self) -> Option<Arc<Volume>> {
        self.volumes.read().last().map(Arc::clone)
    }

    /// All volumes, oldest first.
    pub fn all(&self) -> Vec<Arc<Volume>> {
        self.volumes.read().clone()
    }

    /// The oldest volume, and the first sequence number of the one after it; `None` where there are not two.
    pub fn oldest(&self) -> Option<(Arc<Volume>, u64)> {
        match self.volumes.read().as_slice() {
            [oldest, next, ..] => Some((Arc::clone(oldest), next.first())),
            _ => None,
        }
    }

    /// The volumes that are not written to any more, oldest first, each with the first sequence number after it.
    pub fn sealed(&self) -> Vec<(Arc<Volume>, u64)> {
        let volumes = self.volumes.read();
        let pairs = volumes.iter().zip(volumes.iter().skip(1));
        pairs
            .map(|(volume, next)| (Arc::clone(volume), next.first()))
            .collect()
    }

    /// Takes the oldest volume off; it is closed when its last reader is done.
    pub fn remove_oldest(&self) {
        let mut volumes = self.volumes.write();
        if !volumes.is_empty() {
            volumes.remove(0);
        }
    }

    /// Closes all volumes.
    pub fn clear(&self) {
        self.volumes.write().clear();
    }

    /// Number of volumes.
    pub fn count(&self) -> usize {
        self.volumes.read().len()
    }

    /// The volume that is for this number.
    pub fn holding(&self, sequence: u64) -> Option<Arc<Volume>> {
        let volumes = self.volumes.read();
        let after = volumes.partition_point(|volume| volume.first() <= sequence);
        let at = after.checked_sub(1)?;
        volumes.get(at).map(Arc::clone)
    }

    /// Reads a game's record.
    ///
    /// # Errors
    /// [`ReadError`]; missing where no volume is for this number.
    pub fn read(&self, sequence: u64) -> Result<Vec<u8>, ReadError> {
        self.holding(sequence).ok_or(ReadError::Missing)?.read(sequence)
    }
}
