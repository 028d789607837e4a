//! Players, matches between them, and what the results say of their strength.
//!
//! A *player* is whoever can choose an action in a state of a game: a checkpoint that searches, uniform UCT, a random mover, a
//! UCI engine, a perfect Connect Four solver. Engines, games at the terminal and matches are all built on these.
//!
//! | module | what it is for |
//! |---|---|
//! | [`evaluator`] | the leaves of many searches travel together; what is known already is not asked |
//! | [`players`] | players: their descriptions, opened and ready to choose |
//! | [`matches`] | games between players, at once, counted in pairs, kept as they end |
//! | [`statistics`] | what results say of strength |
//! | [`rating`] | the rating role: new checkpoints against the best one |

pub mod evaluator;
pub mod matches;
pub mod players;
pub mod rating;
pub mod statistics;

pub use evaluator::Evaluator;
pub use players::{
    Player, PlayerError, Seat,
    spec::{SearchSpec, Spec, SpecError},
    thinker::{Limits, Thinker},
};
