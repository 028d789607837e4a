//! Tests of the board games against independent sources: published counts, dlchess' encoding, simple second
//! implementations, and symmetries. `notations` and `fuzz` test all games.

mod chess_endings;
mod chess_notation;
mod chess_san;
mod chess_vectors;
mod connect_four;
mod fuzz;
mod known;
mod notations;
mod othello;
mod perft;
mod solver;
mod symmetry;
