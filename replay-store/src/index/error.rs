//! Errors of the index.

/// Error: the index cannot answer a request. The log is not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The database reported an error, panicked, or holds something that is not an index. It will be rebuilt.
    #[error("the index of the replay store is damaged and is being rebuilt ({0}); try again later")]
    Damaged(String),
    /// The index has not yet caught up with the log.
    #[error(
        "the index of the replay store is being built and has reached game {reached} of {newest}; try again later"
    )]
    Behind {
        /// Games up to this sequence number are indexed.
        reached: u64,
        /// The newest sequence number.
        newest: u64,
    },
    /// The store was opened without an index.
    #[error("this replay store has no index: games can be listed by sequence number only")]
    Off,
}
