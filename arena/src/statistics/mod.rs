//! Strength of players, computed from the results of games.
//!
//! | module | contents |
//! |---|---|
//! | [`pentanomial`] | pairs of games with the colours changed, counted by their score |
//! | [`estimate`] | two players: score, Elo difference, interval, likelihood of superiority; interval of a share |
//! | [`bradley_terry`] | many players: Elo ratings with intervals (the rating formula) |
//! | [`sprt`] | a test between two hypotheses that ends as soon as enough games are played |

pub mod bradley_terry;
pub mod estimate;
pub mod pentanomial;
pub mod sprt;

pub use bradley_terry::{BradleyTerry, Encounter, Rating};
pub use estimate::{Estimate, score_of_elo, wilson};
pub use pentanomial::Pentanomial;
pub use sprt::{EloModel, Sprt, SprtSettings, Verdict};
