//! Held-out games: games that are excluded from training and used for validation.
//!
//! Only a game's id decides whether it is held out. Every store with the same share therefore holds out the same games, after
//! every restart too.

use sha2::{Digest as _, Sha256};

use crate::log::frame::Id;

/// The held-out share of the games.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeldOut {
    share: f64,
}

/// Numbers of a game's positions with visit counts, by their use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PositionCounts {
    /// Positions for training.
    pub trainable: u32,
    /// Positions for validation. At least one of the two numbers is 0.
    pub held_out: u32,
}

impl From<u32> for PositionCounts {
    fn from(trainable: u32) -> Self {
        Self {
            trainable,
            held_out: 0,
        }
    }
}

impl HeldOut {
    /// Returns a split that holds out the given share of all games, 0 to 1.
    pub fn new(share: f64) -> Self {
        Self { share }
    }

    /// True if the game with this id is held out.
    pub fn contains(self, id: &Id) -> bool {
        // The id is hashed because its bits are not random: they name the actor and the time.
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

    /// Returns how the `positions` positions of the game with this id are used.
    pub fn split(self, id: &Id, positions: u32) -> PositionCounts {
        let (trainable, held_out) = match self.contains(id) {
            true => (0, positions),
            false => (positions, 0),
        };
        PositionCounts { trainable, held_out }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The ids differ in one number only, as the ids of one actor do.
        #[test]
        fn the_held_out_share_of_games_is_as_configured(share in 0.01f64..0.5, actor: u64) {
            let id = |game: u64| {
                let mut id = [0; 16];
                id[..8].copy_from_slice(&actor.to_le_bytes());
                id[8..].copy_from_slice(&game.to_le_bytes());
                id
            };
            let games = 4_000;
            let held = HeldOut::new(share);
            let count = (0..games).filter(|&game| held.contains(&id(game))).count() as f64;
            let (mean, variance) = (share * games as f64, share * (1.0 - share) * games as f64);
            prop_assert!((count - mean).abs() < 6.0 * variance.sqrt(), "{count} of {games} for {share}");
            // A larger share holds out the same games and more.
            prop_assert!((0..games).all(|game| !held.contains(&id(game)) || HeldOut::new(2.0 * share).contains(&id(game))));
            prop_assert_eq!(HeldOut::new(0.0).split(&id(0), 9), PositionCounts { trainable: 9, held_out: 0 });
            prop_assert_eq!(HeldOut::new(1.0).split(&id(0), 9), PositionCounts { trainable: 0, held_out: 9 });
        }
    }
}
