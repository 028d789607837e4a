//! Seeded randomness: a counter-based generator keyed by (run seed, game, ply, purpose). A search has no other randomness.
//!
//! The generator is ChaCha with 8 rounds, and the four numbers are its key. So any draw of any game can be repeated without
//! the draws before it, and the draws for one purpose do not depend on those for another.

use rand::RngCore;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, Gamma};

/// Key of all draws of one game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GameKey {
    /// Seed of the run.
    pub run_seed: u64,
    /// Number of the game, unique in the run.
    pub game: u64,
}

/// Purpose of a stream of draws. The number is part of the key, so it must never change or be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// Choice among edges of equal value and prior.
    Ties = 1,
    /// Symmetry in which a leaf is evaluated.
    Symmetry = 2,
    /// Dirichlet noise.
    Noise = 3,
    /// Choice of the action to play.
    Choice = 4,
    /// Choice of the problem to play.
    Problem = 5,
    /// Choice of the candidates of a [`gumbel`](crate::gumbel) root.
    Gumbel = 6,
    /// Random actions before a game begins.
    Opening = 7,
}

/// A stream of draws for one purpose at one ply of one game.
#[derive(Clone, Debug)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// Returns the stream of `key` for `purpose` after `ply` actions.
    pub fn new(key: GameKey, ply: u32, purpose: Purpose) -> Self {
        let mut seed = *b"................minuet.1........";
        let (run, rest) = seed.split_at_mut(8);
        run.copy_from_slice(&key.run_seed.to_le_bytes());
        rest[..8].copy_from_slice(&key.game.to_le_bytes());
        rest[16..20].copy_from_slice(&ply.to_le_bytes());
        rest[20..].copy_from_slice(&(purpose as u32).to_le_bytes());
        Self(ChaCha8Rng::from_seed(seed))
    }

    /// Draws a number below `count`; 0 if `count` is 0. The bias is below `count / 2³²`.
    pub fn below(&mut self, count: usize) -> usize {
        ((u64::from(self.0.next_u32()) * count as u64) >> 32) as usize
    }

    /// Draws a number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws from the standard Gumbel distribution.
    pub fn gumbel(&mut self) -> f64 {
        // The logarithm of 0 is not finite.
        let unit = self.unit().max(f64::MIN_POSITIVE);
        -(-unit.ln()).ln()
    }

    /// Draws from the gamma distribution of shape `alpha` and scale 1; 0 if `alpha` is not positive.
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
            first(KEY, 0, Purpose::Gumbel),
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

    /// Recorded games depend on the stream. The numbers come from an independent implementation of ChaCha with 8 rounds.
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

    /// The mean of the standard Gumbel distribution is Euler's constant, and its variance π²/6.
    #[test]
    fn gumbel_draws_have_the_mean_and_the_variance_of_the_distribution() {
        let mut draws = Draws::new(KEY, 0, Purpose::Gumbel);
        let drawn: Vec<f64> = (0..50_000).map(|_| draws.gumbel()).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        assert!((mean - 0.577_216).abs() < 0.02, "{mean}");
        assert!((variance - 1.644_934).abs() < 0.06, "{variance}");
    }
}
