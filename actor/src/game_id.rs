//! The id of a game: [`GameId`].

use std::fmt;

use search::GameKey;
use sha2::{Digest as _, Sha256};

/// Unique id of a game, 16 bytes. See [`naming`](crate::play::naming) for its parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GameId(pub [u8; 16]);

impl GameId {
    /// Reads an id from the bytes of a message. `None` unless there are 16 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns the key of the game's random draws: the first eight bytes (little-endian) of the SHA-256 of the id. So the
    /// record of a game is enough to play the game again.
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
