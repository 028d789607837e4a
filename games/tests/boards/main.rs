//! Chess, Othello and Connect Four against outside truth: published counts, dlchess' own encoding, second
//! implementations that are too simple to be wrong, and their symmetries (those of rows: of every game).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chess_endings;
mod chess_notation;
mod chess_san;
mod chess_vectors;
mod connect_four;
mod faces;
mod othello;
mod perft;
mod play;
mod robustness;
mod row_symmetries;
mod solver;
mod symmetry;
