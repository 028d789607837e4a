//! Players, matches between them, and the strength that follows from the results.
//!
//! A *player* chooses an action in a state of a game: a checkpoint that searches, UCT without a network, a random mover, a UCI
//! engine, or a perfect Connect Four solver. Engines, games at the terminal and matches are built on players.
//!
//! | module | contents |
//! |---|---|
//! | [`analysis`] | searches of many positions at once, from one fair queue |
//! | [`players`] | descriptions of players, and players ready to choose |
//! | [`matches`] | many games at once between players, counted in pairs and saved as they end |
//! | [`statistics`] | Elo, intervals, sequential tests, and the rating formula ([`bradley_terry`](statistics::bradley_terry)) |
//! | [`rating`] | the rating role: plays new checkpoints against the best one |

pub mod analysis;
mod files;
pub mod matches;
pub mod players;
pub mod rating;
pub mod solver_test;
pub mod statistics;

pub use players::{
    Player,
    spec::{SearchSpec, Spec, SpecError},
    thinker::Thinker,
};
