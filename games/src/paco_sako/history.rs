//! What a game remembers: positions recorded since the last progress, and the chain states of the current turn.
//!
//! Both are kept as 128-bit digests in one short list (a hundred lifts without progress end the game),
//! so that a state is cheap to copy. The digest is a multilinear hash with fixed random keys: two different
//! states share one with a probability below 2⁻⁶⁴, far below that of a memory fault.

use super::position::{Position, RequiredAction};
use crate::Player;

/// A position or chain state, counters left out.
pub(super) type Digest = u128;

/// Words a state is digested from: six for the board, one for the rest.
const WORDS: usize = 7;

/// Odd 128-bit keys, one for each word, drawn at compile time.
const KEYS: [u128; WORDS] = keys();

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// Recorded positions, then the current turn's chain states.
    digests: Vec<Digest>,
    recorded: usize,
}

impl Clone for History {
    fn clone(&self) -> Self {
        // Room for what a game usually adds before its next progress.
        let mut digests = Vec::with_capacity(self.digests.len() + 32);
        digests.extend_from_slice(&self.digests);
        Self {
            digests,
            recorded: self.recorded,
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.digests.clone_from(&source.digests);
        self.recorded = source.recorded;
    }
}

impl History {
    /// Progress was made: no earlier position can come back.
    pub(super) fn forget(&mut self) {
        self.digests.clear();
        self.recorded = 0;
    }

    /// The turn is over: its chain states matter no more.
    pub(super) fn end_turn(&mut self) {
        self.digests.truncate(self.recorded);
    }

    /// Records a position, and says how often it has been recorded now.
    pub(super) fn record(&mut self, digest: Digest) -> usize {
        self.end_turn();
        let before = self.digests.iter().filter(|&&other| other == digest).count();
        self.digests.push(digest);
        self.recorded += 1;
        before + 1
    }

    /// Notes a chain state of the current turn.
    pub(super) fn note(&mut self, digest: Digest) {
        self.digests.push(digest);
    }

    /// The chain states of the current turn.
    pub(super) fn turn(&self) -> &[Digest] {
        self.digests.get(self.recorded..).unwrap_or_default()
    }
}

impl Position {
    /// Tells two states apart by board, hand, side to act, en passant, castling rights and what is required next.
    pub(super) fn digest(&self) -> Digest {
        let [a, b, c] = self.board.words(Player::First);
        let [d, e, f] = self.board.words(Player::Second);
        [a, b, c, d, e, f, self.small_parts()]
            .into_iter()
            .zip(KEYS)
            .fold(0, |sum: u128, (word, key)| {
                sum.wrapping_add(key.wrapping_mul(u128::from(word)))
            })
    }

    /// All but the board, in one word without overlap.
    fn small_parts(&self) -> u64 {
        let square = |square: Option<cozy_chess::Square>| square.map_or(64, |square| square as u64);
        let kind = |kind: Option<super::Kind>| kind.map_or(7, |kind| kind as u64);
        let hand = match self.hand {
            None => 0,
            Some(hand) => {
                1 | (hand.square as u64) << 1 | kind(Some(hand.own)) << 7 | kind(hand.partner) << 10
            }
        };
        let required: RequiredAction = self.required;
        hand | square(self.en_passant) << 13
            | square(self.promotion) << 20
            | self.castling.bits() << 27
            | (required as u64) << 31
            | (self.to_move.index() as u64) << 34
    }
}

/// SplitMix64's output function over a counter.
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
