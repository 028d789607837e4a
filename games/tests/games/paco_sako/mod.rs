//! Tests of Paco Ŝako, most of them against the recorded behaviour of the original engine.

mod data;
mod perft;
mod properties;
mod random_games;
mod rows;
mod sako;
mod switches;
mod traces;
mod turn_draws;
mod turn_wins;
mod turns;
