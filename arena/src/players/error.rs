//! [`PlayerError`].

use std::io;

use network::{ModelError, NetworkError, client::remote::ConnectError, loader::LoadError, name::NoModelName};

/// Error: a player cannot be opened or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// The text is not the name of a network.
    #[error(transparent)]
    Name(#[from] NoModelName),
    /// The network's file cannot be found or verified.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The network cannot be loaded in this process.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The inference server cannot be used.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The network returned no evaluations.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The search refused an evaluation.
    #[error("an evaluation does not fit its leaf")]
    Apply(#[from] search::ApplyError),
    /// An engine answered with an illegal move.
    #[error("the engine {program} answered `{answer}` in {position}, which is not a legal move")]
    Illegal {
        /// Path of the program.
        program: String,
        /// Answer of the engine.
        answer: String,
        /// Position, as a FEN in chess.
        position: String,
    },
    /// The player cannot play this game, or has failed.
    #[error("{what}")]
    Failed {
        /// The fault in a sentence.
        what: String,
        /// Error of the operating system, if there is one.
        source: Option<io::Error>,
    },
}

impl PlayerError {
    /// A fault without a cause.
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::Failed {
            what: what.into(),
            source: None,
        }
    }

    /// A player chose no action although the game is not over.
    pub(crate) fn no_choice(player: &str) -> Self {
        Self::failed(format!("{player} chose no action"))
    }
}
