//! Second implementations of the networks, which follow their formulas. Tests of several crates compare runtimes and exports with
//! them. Sums are computed in f64, so that their rounding error is negligible.

pub mod fish_eye;
pub mod tower;
