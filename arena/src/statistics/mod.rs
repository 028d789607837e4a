//! What results say of strength.
//!
//! | module | what it is for |
//! |---|---|
//! | [`pentanomial`] | pairs of games with the colours changed, counted by their score |
//! | [`estimate`] | score, Elo difference, interval, likelihood of superiority |
//! | [`sprt`] | a test that ends as soon as enough is known |
//! | [`ratings`] | ratings of more than two players |
//! | [`ladder`] | ratings of players who came one after the other, with intervals |

pub mod estimate;
pub mod ladder;
pub mod pentanomial;
pub mod ratings;
mod sparse;
pub mod sprt;

pub use estimate::{Estimate, elo_of_score, score_of_elo};
pub use ladder::{Encounter, Ladder, Rated};
pub use pentanomial::Pentanomial;
pub use sprt::{EloModel, Sprt, SprtSettings, Verdict};
