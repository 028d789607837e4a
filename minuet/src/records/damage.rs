//! Damage that a command found in a store: the process exits with 3.

/// Acknowledged games of the store that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{games} acknowledged games of the store are damaged")]
pub struct Damage {
    /// Number of games.
    pub games: u64,
}
