//! Training batches in host memory, checked and packed; and what threads without a connection know about the replay store.

use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use proto::columns::ColumnError;

use crate::data::{
    expanded::{HostCandidates, HostInput},
    policies::Policies,
    territories::Territories,
};

/// A checked batch in host memory.
#[derive(Clone, Debug, PartialEq)]
pub struct HostBatch {
    /// Number of the batch in the run's sequence of draws.
    pub number: u64,
    /// Number of samples.
    pub positions: usize,
    /// Number of samples whose problems are pairs ([`games::codec::Codec::is_pair`]).
    pub pairs: u64,
    /// Concatenated rows; every number is below 2^31.
    pub rows: Vec<u32>,
    /// End of each row in `rows`.
    pub row_ends: Vec<usize>,
    /// Rows as inputs of the network.
    pub inputs: Vec<HostInput>,
    /// Policy entries over which the softmax of each sample is taken; `None` if these are all entries.
    pub candidates: Option<HostCandidates>,
    /// Policy targets. Samples without a policy target train the value only.
    pub policy: Policies,
    /// Value targets, results mixed with root values: in [-1, 1], or in [0, 1] in games that cannot be lost, from the view
    /// of the player to act.
    pub results: Vec<f32>,
    /// Value targets as probabilities of win, draw and loss, for networks with such a head: `[positions, 3]`.
    pub outcomes: Option<Vec<f32>>,
    /// Owners of the squares and scores, for networks with such a head.
    pub territories: Option<Territories>,
    /// Positions ever inserted into the store when the batch was drawn, as the store counts them.
    pub positions_inserted: u64,
    /// Positions ever inserted, including those in earlier stores of the run. Samples are counted against this number.
    pub inserted: u64,
    /// Samples that were allowed and will not be drawn ([`crate::data::ledger`]).
    pub forgone: u64,
    /// Positions in the store's window.
    pub window_positions: u64,
}

/// Error: a batch cannot be trained on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The store holds games of another kind.
    #[error("the replay store holds {found}, this run trains {expected}")]
    Game {
        /// Game and options in the store.
        found: String,
        /// Game and options of the run.
        expected: String,
    },
    /// The packing thread ended.
    #[error("packing failed: {0}")]
    Packing(String),
    /// The lengths of the columns do not add up.
    #[error(transparent)]
    Length(#[from] ColumnError),
    /// A sample is invalid.
    #[error("sample {sample} (game {game}, ply {ply}): {reason}")]
    Sample {
        /// Index of the sample in the batch.
        sample: usize,
        /// The game's sequence number in the store.
        game: u64,
        /// The ply in the game.
        ply: u32,
        /// Reason of the error.
        reason: String,
    },
}

/// Batches on which the losses of a network are measured.
#[derive(Debug)]
pub struct ValidationBatches {
    /// Positions of games that are held out of training.
    pub held_out: HostBatch,
    /// Positions of the games that training draws from.
    pub trained: HostBatch,
}

/// The store's last count of games, and the last validation batches.
#[derive(Debug, Default)]
pub struct StoreView {
    /// Number of games inserted into the store.
    pub games_inserted: AtomicU64,
    /// The newest validation batches, until they are used.
    pub validation: Mutex<Option<ValidationBatches>>,
}
