//! Arguments that cannot be used.

/// Error: an argument of a command cannot be used. The text says which one and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadUsage(pub String);
