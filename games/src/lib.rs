//! Rules, index rows, expansion, policy maps and symmetries of every game Minuet plays.
//!
//! This crate does no IO, reads no clock and draws no entropy.
//!
//! | module | what it is for |
//! |---|---|
//! | [`game`] | the [`Game`] trait that search, actors and tools are generic over |
//! | [`value`] | values that carry whose point of view they are in |
//! | [`layout`] | what a row means: [`RowLayout`], validation, expansion to planes |
//! | [`catalogue`] | games by name |
//! | [`perft`] | counting action sequences |
//! | [`paco_sako`] | Paco Ŝako |
//! | [`chess`] | chess, with the rows and the policy of dlchess |
//! | [`othello`] | Othello |
//! | [`connect_four`] | Connect Four, and its exact solver |

mod bits;
pub mod catalogue;
pub mod chess;
pub mod connect_four;
pub mod game;
pub mod layout;
pub mod othello;
pub mod paco_sako;
pub mod perft;
pub mod value;

pub use game::{Action, Game, IllegalAction, Outcome, Player, StartError, Symmetry};
pub use layout::{ConstantPlane, RowError, RowLayout};
pub use value::{FirstValue, MoverValue};
