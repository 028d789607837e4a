//! Tests of the board games against independent sources: published counts, dlchess' encoding, simple second
//! implementations, and symmetries. `notations`, `fuzz` and `territory` test all games.

mod chess_endings;
mod chess_notation;
mod chess_san;
mod chess_vectors;
mod connect_four;
mod fuzz;
mod gomoku;
mod hex;
mod known;
mod notations;
mod othello;
mod outside;
mod perft;
mod solver;
mod symmetry;
mod territory;
