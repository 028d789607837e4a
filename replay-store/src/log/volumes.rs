//! The volumes in the order of their games. Games are written to the newest volume and read from all; old games are removed by removing
//! the oldest volume as a whole.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::{error::ReadError, log::volume::Volume};

/// The open volumes. A reader holds a reference to a volume while it reads, so that removing the volume does not disturb it.
#[derive(Debug, Default)]
pub struct Volumes {
    volumes: RwLock<Vec<Arc<Volume>>>,
}

impl Volumes {
    /// Adds the newest volume.
    pub fn push(&self, volume: Volume) {
        self.volumes.write().push(Arc::new(volume));
    }

    /// Returns the volume that is written to, which is the newest one.
    pub fn youngest(&self) -> Option<Arc<Volume>> {
        self.volumes.read().last().map(Arc::clone)
    }

    /// Returns all volumes, oldest first.
    pub fn all(&self) -> Vec<Arc<Volume>> {
        self.volumes.read().clone()
    }

    /// Returns the oldest volume and the first sequence number of the next one; `None` if there are fewer than two volumes.
    pub fn oldest(&self) -> Option<(Arc<Volume>, u64)> {
        match self.volumes.read().as_slice() {
            [oldest, next, ..] => Some((Arc::clone(oldest), next.first())),
            _ => None,
        }
    }

    /// Returns the sealed volumes, which are no longer written to, oldest first, each with the first sequence number of the next volume.
    pub fn sealed(&self) -> Vec<(Arc<Volume>, u64)> {
        let volumes = self.volumes.read();
        let pairs = volumes.iter().zip(volumes.iter().skip(1));
        pairs
            .map(|(volume, next)| (Arc::clone(volume), next.first()))
            .collect()
    }

    /// Removes the oldest volume from the list. The volume is closed when its last reader has finished.
    pub fn remove_oldest(&self) {
        let mut volumes = self.volumes.write();
        if !volumes.is_empty() {
            volumes.remove(0);
        }
    }

    /// Removes all volumes from the list, which closes those without readers.
    pub fn clear(&self) {
        self.volumes.write().clear();
    }

    /// Returns the number of volumes.
    pub fn count(&self) -> usize {
        self.volumes.read().len()
    }

    /// Returns the volume whose range contains this sequence number; `None` if the number is before the oldest volume, or there are no
    /// volumes.
    pub fn holding(&self, sequence: u64) -> Option<Arc<Volume>> {
        let volumes = self.volumes.read();
        let after = volumes.partition_point(|volume| volume.first() <= sequence);
        let at = after.checked_sub(1)?;
        volumes.get(at).map(Arc::clone)
    }

    /// Reads a game's record.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::Missing`] if no volume's range contains the sequence number.
    pub fn read(&self, sequence: u64) -> Result<Vec<u8>, ReadError> {
        self.holding(sequence).ok_or(ReadError::Missing)?.read(sequence)
    }
}
