//! The only source of randomness: a counter-based generator keyed by (run seed, game, ply, purpose).
//!
//! ChaCha with 8 rounds; the four numbers are its key, so any draw of any game can be made again
//! without replaying the draws before it, and no purpose can disturb another.

use rand::RngCore;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, Gamma};

/// What all draws of one game are keyed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GameKey {
    /// The run's seed.
    pub run_seed: u64,
    /// The game's number, unique in the run.
    pub game: u64,
}

/// What draws are for. The number is part of the key: never change or reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// Which of several equally promising actions a traversal takes.
    Ties = 1,
    /// The symmetry a leaf is evaluated in.
    Symmetry = 2,
    /// Dirichlet noise.
    Noise = 3,
    /// The action that is played.
    Choice = 4,
    /// The problem that is played.
    Problem = 5,
}

/// A stream of draws for one purpose at one ply of one game.
#[derive(Clone, Debug)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// The stream of `key` for `purpose` when `ply` actions have been played.
    pub fn new(key: GameKey, ply: u32, purpose: Purpose) -> Self {
        let mut seed = *b"................minuet.1........";
        let (run, rest) = seed.split_at_mut(8);
        run.copy_from_slice(&key.run_seed.to_le_bytes());
        rest[..8].copy_from_slice(&key.game.to_le_bytes());
        rest[16..20].copy_from_slice(&ply.to_le_bytes());
        rest[20..].copy_from_slice(&(purpose as u32).to_le_bytes());
        Self(ChaCha8Rng::from_seed(seed))
    }

    /// A number below `count`, or 0 where `count` is 0. The bias is below `count / 2³²`.
    pub fn below(&mut self, count: usize) -> usize {
        ((u64::from(self.0.next_u32()) * count as u64) >> 32) as usize
    }

    /// A number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A draw from the gamma distribution of shape `alpha` and scale 1; 0 where `alpha` is not positive.
    pub fn gamma(&mut self, alpha: f64) -> f64 {
        Gamma::new(alpha, 1.0).map_or(0.0, |gamma| gamma.sample(&mut self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: GameKey = GameKey { run_seed: 7, game: 9 };

    fn first(key: GameKey, ply: u32, purpose: Purpose) -> u64 {
        Draws::new(key, ply, purpose).0.next_u64()
    }

    #[test]
    fn each_part_of_the_key_matters() {
        let mut seen = vec![
            first(KEY, 0, Purpose::Ties),
            first(KEY, 0, Purpose::Symmetry),
            first(KEY, 0, Purpose::Noise),
            first(KEY, 0, Purpose::Choice),
            first(KEY, 1, Purpose::Ties),
            first(GameKey { game: 10, ..KEY }, 0, Purpose::Ties),
            first(GameKey { run_seed: 8, ..KEY }, 0, Purpose::Ties),
            // 7 and 9 swapped: the two numbers must not be mixed up.
            first(GameKey { run_seed: 9, game: 7 }, 0, Purpose::Ties),
        ];
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
        assert_eq!(first(KEY, 3, Purpose::Noise), first(KEY, 3, Purpose::Noise));
    }

    /// Recorded games can only be replayed while this stays as it is. The numbers come from an independent
    /// implementation of ChaCha with 8 rounds.
    #[test]
    fn the_stream_never_changes() {
        let mut draws = Draws::new(KEY, 3, Purpose::Choice);
        let drawn: Vec<usize> = (0..6).map(|_| draws.below(1000)).collect();
        assert_eq!(drawn, [969, 403, 104, 807, 405, 906]);
    }

    #[test]
    fn draws_are_spread_evenly() {
        let mut draws = Draws::new(KEY, 0, Purpose::Ties);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[draws.below(7)] += 1;
        }
        assert!(
            counts.iter().all(|&count| (9_500..10_500).contains(&count)),
            "{counts:?}"
        );
        let mean = (0..10_000).map(|_| draws.unit()).sum::<f64>() / 10_000.0;
        assert!((0.49..0.51).contains(&mean), "{mean}");
    }
}
