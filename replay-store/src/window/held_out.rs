//! Games that are kept from training, so that what was learned can be measured on games that were never trained on.
//!
//! A game's id alone decides, so that every store, every restart and every other run with the same share holds out the same games.

use sha2::{Digest as _, Sha256};

use crate::log::frame::Id;

/// How many games are held out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeldOut {
    share: f64,
}

/// What a game's positions with visit counts are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Positions to be trained on.
    pub trainable: u32,
    /// Positions to validate on; one of the two is 0.
    pub held_out: u32,
}

impl From<u32> for Uses {
    fn from(trainable: u32) -> Self {
        Self {
            trainable,
            held_out: 0,
        }
    }
}

impl HeldOut {
    /// So many of all games, as a share: 0 to 1.
    pub fn new(share: f64) -> Self {
        Self { share }
    }

    /// Whether the game with this id is held out.
    pub fn has(self, id: &Id) -> bool {
        // The id's own bits say who played the game, and when.
        let digest: [u8; 32] = Sha256::new_with_prefix(b"held out")
            .chain_update(id)
            .finalize()
            .into();
        let drawn = digest
            .iter()
            .take(8)
            .fold(0u64, |number, &byte| number << 8 | u64::from(byte));
        (drawn as f64) < self.share * 2f64.powi(64)
    }

    /// What so many positions of a game are for.
    pub fn uses(self, id: &Id, positions: u32) -> Uses {
        let (trainable, held_out) = match self.has(id) {
            true => (0, positions),
            false => (positions, 0),
        };
        Uses { trainable, held_out }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Ids that differ in one number only, as those of one actor do.
        #[test]
        fn about_that_share_is_held_out(share in 0.01f64..0.5, actor: u64) {
            let id = |game: u64| {
                let mut id = [0; 16];
                id[..8].copy_from_slice(&actor.to_le_bytes());
                id[8..].copy_from_slice(&game.to_le_bytes());
                id
            };
            let games = 4_000;
            let held = HeldOut::new(share);
            let count = (0..games).filter(|&game| held.has(&id(game))).count() as f64;
            let (mean, variance) = (share * games as f64, share * (1.0 - share) * games as f64);
            prop_assert!((count - mean).abs() < 6.0 * variance.sqrt(), "{count} of {games} for {share}");
            // What is held out stays so when more is.
            prop_assert!((0..games).all(|game| !held.has(&id(game)) || HeldOut::new(2.0 * share).has(&id(game))));
            prop_assert_eq!(HeldOut::new(0.0).uses(&id(0), 9), Uses { trainable: 9, held_out: 0 });
            prop_assert_eq!(HeldOut::new(1.0).uses(&id(0), 9), Uses { trainable: 0, held_out: 9 });
        }
    }
}
