//! UCT as a pure state machine over [`games::Game`]: it asks for evaluations and is given them.
//!
//! The search never awaits, reads no clock, draws no entropy, and sees neither a tensor nor a
//! socket. One [`Search`] belongs to one game: [`Search::gather`] descends to leaves and hands them
//! out, [`Search::apply`] takes the answers in any order, [`Search::choose`] draws an action from
//! the visits, [`Search::advance`] plays it and keeps what was learnt below it.
//!
//! | module | what it is for |
//! |---|---|
//! | [`solution`] | one-player games: the shortest solution known, and its proof |
//! | [`settings`] | every switch, with the formula that the search maximises |
//! | [`search`](mod@search) | the state machine: the decision node, its budget, re-rooting |
//! | [`gather`](mod@gather) | downward passes: leaves go out, gray and terminal ones are backed up at once |
//! | [`apply`](mod@apply) | answers come in; the last one backs all of them up in gather order |
//! | [`leaf`] | what is asked and answered: [`LeafRequest`], [`Evaluation`], [`ApplyError`] |
//! | [`drive`](mod@drive) | a decision in one call, for evaluators that answer at once |
//! | [`decision`] | what the search found, and the choice of an action by temperature |
//! | [`principal_variation`] | the most visited line; prolonging a search |
//! | [`draws`] | the seeded generator: nothing else is random |
//! | [`noise`] | Dirichlet noise for the decision node |
//! | [`counters`] | visits, fresh evaluations, gray and terminal visits, told apart |
//! | `tree`, `compact`, `puct` | nodes and edge statistics in memory, reclaiming them, choosing an edge |

mod compact;
mod puct;
mod tree;

pub mod apply;
pub mod counters;
pub mod decision;
pub mod draws;
pub mod drive;
pub mod gather;
pub mod leaf;
pub mod noise;
pub mod principal_variation;
pub mod search;
pub mod settings;
pub mod solution;

pub use apply::ApplyError;
pub use counters::Counters;
pub use decision::Decision;
pub use draws::{Draws, GameKey, Purpose};
pub use leaf::{Evaluation, Gathered, LeafId, LeafRequest};
pub use principal_variation::Depths;
pub use search::Search;
pub use settings::{Alpha, FirstPlay, Noise, Reuse, Settings, SettingsError};

#[cfg(test)]
mod tests;
