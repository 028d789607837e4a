//! [`PlayerError`] and [`EngineError`].

use std::io;

use network::{
    ModelError, NetworkError,
    client::{local::OpenError, remote::ConnectError},
};

use super::thinker::ThinkError;

/// Error: a player cannot be opened or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// The network's file cannot be found or verified.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The network cannot be loaded in this process.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The inference server cannot be used.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The network returned no evaluations.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A search failed.
    #[error(transparent)]
    Think(#[from] ThinkError),
    /// The search refused an evaluation.
    #[error("an evaluation does not fit its leaf")]
    Apply(#[from] search::ApplyError),
    /// An engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The player cannot play this game.
    #[error("{player} plays {plays} only, not {game}")]
    Game {
        /// Kind of the player.
        player: &'static str,
        /// Games that it plays.
        plays: &'static str,
        /// The game that was asked for.
        game: &'static str,
    },
    /// A player chose no action although the game is not over.
    #[error("{0} chose no action")]
    NoChoice(String),
}

/// Error: an engine cannot play.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The program does not start.
    #[error("cannot start the engine {program}")]
    Start {
        /// Path of the program.
        program: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The engine has ended or closed its pipes.
    #[error("the engine {0} has ended")]
    Ended(String),
    /// The engine does not answer.
    #[error("the engine {program} did not answer `{expected}` within {seconds} s")]
    Silent {
        /// Path of the program.
        program: String,
        /// The expected word.
        expected: &'static str,
        /// Waiting time in seconds.
        seconds: u64,
    },
    /// The engine answered with an illegal move.
    #[error("the engine {program} answered `{answer}` in {position}, which is not a legal move")]
    Illegal {
        /// Path of the program.
        program: String,
        /// Answer of the engine.
        answer: String,
        /// Position, as a FEN in chess.
        position: String,
    },
    /// The engine answered a command with an error.
    #[error("the engine {program} refused `{command}`: {answer}")]
    Refused {
        /// Path of the program.
        program: String,
        /// The command.
        command: String,
        /// Answer of the engine.
        answer: String,
    },
    /// The engine cannot begin at this position.
    #[error("the engine {program} plays from the usual start only, not from {position}")]
    Position {
        /// The program and its arguments.
        program: String,
        /// Start of the game.
        position: String,
    },
}
