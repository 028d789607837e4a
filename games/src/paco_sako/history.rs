//! What a game remembers: positions recorded since the last progress, and the chain states of the current turn.
//!
//! Both are kept as 128-bit digests in one short list (a hundred lifts without progress end the game),
//! so that a state is cheap to copy.

use super::digest::Digest;

/// Digests of recorded positions and of chain states.
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
