//! History of a game: positions recorded since the last progress, and the chain states of the current turn.
//!
//! A chain state is a state within a turn, with a piece in the hand. One list holds the digests of both, so that a state is
//! cheap to copy. The list is short, because a hundred lifts without progress end the game.

use super::digest::Digest;

/// Digests of recorded positions and of chain states.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// Recorded positions, then the chain states of the current turn.
    digests: Vec<Digest>,
    /// Number of recorded positions.
    recorded: usize,
    /// Number of times that the most frequent position was recorded.
    most: usize,
}

impl Clone for History {
    fn clone(&self) -> Self {
        // Room for the states that a game usually adds before its next progress.
        let mut digests = Vec::with_capacity(self.digests.len() + 32);
        digests.extend_from_slice(&self.digests);
        Self {
            digests,
            recorded: self.recorded,
            most: self.most,
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.digests.clone_from(&source.digests);
        self.recorded = source.recorded;
        self.most = source.most;
    }
}

impl History {
    /// Removes all states. To be called after progress, when no earlier position can occur again.
    pub(super) fn clear(&mut self) {
        self.digests.clear();
        self.recorded = 0;
        self.most = 0;
    }

    /// Removes the chain states of the turn, which is over.
    pub(super) fn end_turn(&mut self) {
        self.digests.truncate(self.recorded);
    }

    /// Records a position. Returns how often it has been recorded, this time included.
    pub(super) fn record(&mut self, digest: Digest) -> usize {
        self.end_turn();
        let times = self.count(digest) + 1;
        self.digests.push(digest);
        self.recorded += 1;
        self.most = self.most.max(times);
        times
    }

    /// Returns how often a position has been recorded.
    pub(super) fn count(&self, digest: Digest) -> usize {
        let recorded = self.digests.get(..self.recorded).unwrap_or_default();
        recorded.iter().filter(|&&other| other == digest).count()
    }

    /// Returns how often the most frequent position has been recorded.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Adds a chain state of the current turn.
    pub(super) fn push_chain_state(&mut self, digest: Digest) {
        self.digests.push(digest);
    }

    /// Returns the chain states of the current turn.
    pub(super) fn chain_states(&self) -> &[Digest] {
        self.digests.get(self.recorded..).unwrap_or_default()
    }
}
