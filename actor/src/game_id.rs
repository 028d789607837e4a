//! The id of a game: 16 bytes that name it everywhere.

use std::fmt;

use search::GameKey;
use sha2::{Digest as _, Sha256};

/// A game's unique name on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GameId(pub [u8; 16]);

impl GameId {
    /// The id in the bytes of a message.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// What the game's random draws are keyed by: eight bytes (little-endian) of the id's SHA-256, so that the
    /// record alone is enough to play the game again.
    pub fn key(&self, run_seed: u64) -> GameKey {
        let digest = Sha256::digest(self.0);
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        GameKey {
            run_seed,
            game: u64::from_le_bytes(first),
        }
    }
}

impl fmt::Display for GameId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for GameId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}
