//! Digests of states, and sets of them. A digest has 128 bits from a multilinear hash with fixed random keys.
//!
//! Two different states have the same digest with a probability below 2⁻⁶⁴, which is neglected.

use std::{
    collections::HashSet,
    hash::{BuildHasherDefault, Hasher},
};

use cozy_chess::Square;

use super::{piece::Kind, position::Position};
use crate::Player;

/// Hash of a state. States with equal digests are taken for equal.
pub(super) type Digest = u128;

/// Most words that a digest hashes.
const WORDS: usize = 7;

/// Odd 128-bit keys, one for each word, drawn at compile time.
const KEYS: [u128; WORDS] = keys();

/// Returns the digest of up to seven words.
pub(super) fn digest<const N: usize>(words: [u64; N]) -> Digest {
    const { assert!(N <= WORDS) };
    words.into_iter().zip(KEYS).fold(0, |sum: u128, (word, key)| {
        sum.wrapping_add(key.wrapping_mul(u128::from(word)))
    })
}

impl Position {
    /// Returns the digest of board, hand, player to act, en-passant square, castling rights, pending promotion and
    /// required action.
    pub(super) fn digest(&self) -> Digest {
        let [a, b, c] = self.board.words(Player::First);
        let [d, e, f] = self.board.words(Player::Second);
        digest([a, b, c, d, e, f, self.small_parts()])
    }

    /// Returns all parts of the state but the board, packed into one word.
    fn small_parts(&self) -> u64 {
        let square = |square: Option<Square>| square.map_or(64, |square| square as u64);
        let kind = |kind: Option<Kind>| kind.map_or(7, |kind| kind as u64);
        let hand = self.hand.map_or(0, |hand| {
            1 | (hand.square as u64) << 1 | kind(Some(hand.own)) << 7 | kind(hand.partner) << 10
        });
        hand | square(self.en_passant) << 13
            | square(self.promotion) << 20
            | self.castling.bits() << 27
            | (self.required as u64) << 31
            | (self.to_move.index() as u64) << 34
    }
}

/// Returns the keys from SplitMix64 over a counter.
const fn keys() -> [u128; WORDS] {
    let mut keys = [0; WORDS];
    let mut number = 0;
    while number < WORDS {
        let high = mixed(2 * number as u64 + 1) as u128;
        let low = mixed(2 * number as u64 + 2) as u128;
        keys[number] = high << 64 | low | 1;
        number += 1;
    }
    keys
}

const fn mixed(counter: u64) -> u64 {
    let mut word = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Number of digests stored inline. Most searches within a turn visit fewer states.
const IN_PLACE: usize = 24;

/// Set of the states that a search has visited. The first few digests are stored inline; only long searches allocate.
pub(super) struct Seen {
    first: [Digest; IN_PLACE],
    count: usize,
    rest: HashSet<Digest, BuildHasherDefault<AlreadyHashed>>,
}

impl Seen {
    pub(super) fn new() -> Self {
        Self {
            first: [0; IN_PLACE],
            count: 0,
            rest: HashSet::default(),
        }
    }

    /// Returns the number of digests.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a digest. Returns `false` if the set had it already.
    pub(super) fn insert(&mut self, digest: Digest) -> bool {
        if self.first[..self.count.min(IN_PLACE)].contains(&digest) {
            return false;
        }
        if let Some(slot) = self.first.get_mut(self.count) {
            *slot = digest;
        } else if !self.rest.insert(digest) {
            return false;
        }
        self.count += 1;
        true
    }
}

/// Hasher that returns the upper half of a digest, which is a hash already.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn write_u128(&mut self, digest: u128) {
        self.0 = (digest >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insert_detects_known_digests_inline_and_in_the_heap_set() {
        let mut seen = Seen::new();
        for round in 0..2 {
            for value in 0..100 {
                assert_eq!(seen.insert(digest([value])), round == 0, "{value}");
            }
        }
        assert_eq!(seen.len(), 100);
    }
}
