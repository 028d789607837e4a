//! What results say of strength.
//!
//! | module | what it is for |
//! |---|---|
//! | [`pentanomial`] | pairs of games with the colours changed, counted by their score |
//! | [`estimate`] | score, Elo difference, interval, likelihood of superiority |
//! | [`sprt`] | a test that ends as soon as enough is known |
//! | [`ratings`] | ratings of more than two players |

pub mod estimate;
pub mod pentanomial;
pub mod ratings;
pub mod sprt;

pub use estimate::{Estimate, elo_of_score, score_of_elo};
pub use pentanomial::Pentanomial;
pub use sprt::{EloModel, Sprt, SprtSettings, Verdict};
