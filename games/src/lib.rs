//! Rules, index rows, expansion, policy maps and symmetries of every game Minuet plays.
//!
//! This crate does no IO, reads no clock and draws no entropy.
//!
//! | module | what it is for |
//! |---|---|
//! | [`game`] | the [`Game`] trait that search, actors and tools are generic over |
//! | [`value`] | values that carry whose point of view they are in |
//! | [`layout`] | what a row means: [`RowLayout`], validation |
//! | [`planes`] | rows that are a stack of planes, and their expansion |
//! | [`symmetries`] | symmetries as maps of rows and policies |
//! | [`catalogue`] | games by name |
//! | [`perft`] | counting action sequences |
//! | [`paco_sako`] | Paco Ŝako |
//! | [`chess`] | chess, with the rows and the policy of dlchess |
//! | [`othello`] | Othello |
//! | [`connect_four`] | Connect Four, and its exact solver |
//! | [`generator`] | the generator game: a program that draws a grid, for one player |

mod bits;
pub mod catalogue;
pub mod chess;
pub mod connect_four;
pub mod game;
pub mod generator;
pub mod layout;
pub mod othello;
pub mod paco_sako;
pub mod perft;
pub mod planes;
pub mod symmetries;
pub mod value;

pub use game::{Action, Drawn, Game, IllegalAction, Outcome, Player, StartError, Symmetry};
pub use layout::{ClanRows, ConstantPlane, PlaneStack, RowError, RowForm, RowLayout};
pub use symmetries::{OtherSide, RowSymmetries};
pub use value::{FirstValue, MoverValue};
