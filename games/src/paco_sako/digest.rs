//! Digests of states: 128 bits from a multilinear hash with fixed random keys.
//!
//! Two different states have the same digest with a probability below 2⁻⁶⁴, which is neglected.

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
