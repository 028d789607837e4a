//! Rules, index rows, expansion, policy maps, symmetries and notation of every game that Minuet plays.
//!
//! This crate does no IO, reads no clock and draws no random numbers. A game is one folder and one line of the
//! [`registry`].
//!
//! | module | content |
//! |---|---|
//! | [`game`] | the [`Game`] trait: what search, self-play and training need |
//! | [`notation`] | the [`Notation`] trait: notation, drawings and JSON, for people and programs |
//! | [`course`] | a game under way: its actions, its turns, taking back |
//! | [`registry`] | the list of all games |
//! | [`erased`] | games and states without their type |
//! | [`value`] | players, and values that carry the point of view they are in |
//! | [`codec`] | the [`codec::Codec`] trait: one representation of positions as rows |
//! | [`layout`] | [`RowLayout`]: the meaning of a row, as data; the list of all representations |
//! | [`planes`] | rows that expand to a stack of planes, and their expansion |
//! | [`symmetries`] | symmetries as maps of rows and policies |
//! | [`scene`], [`terminal`] | a position as a drawing: as data, as text |
//! | [`probes`] | positions on which networks of different ages are compared |
//! | [`perft`] | counts of action sequences |
//! | [`paco_sako`] | Paco Ŝako |
//! | [`chess`] | chess, with the rows and the policy of dlchess |
//! | [`othello`] | Othello |
//! | [`connect_four`] | Connect Four, and its exact solver |
//! | [`gomoku`] | Gomoku on boards of 5×5 to 19×19 |
//! | [`go`] | the board game Go, from 2×2 to 19×19 points, with the Tromp-Taylor rules |
//! | [`hex`] | Hex on boards of 2×2 to 19×19, with the swap |
//! | [`outside`] | a game whose rules other code brings, e.g. a Python class |
//! | [`generator`] | the generator game: a program that draws a grid, for one player |
//!
//! ```
//! use games::{Game, Outcome, Player, Symmetry, connect_four::ConnectFour};
//!
//! let mut state = ConnectFour::start(&Default::default(), None)?;
//! let mut legal = Vec::new();
//! for action in [3, 0, 3, 0, 3, 0] {
//!     state.legal_actions(&mut legal);
//!     assert!(legal.contains(&action));
//!     state.play(action)?;
//! }
//!
//! // The position as a network sees it: a short row, which expands to planes of 8×8 squares.
//! let layout = ConnectFour::layout(Default::default());
//! let mut row = Vec::new();
//! state.write_row(Default::default(), Symmetry::IDENTITY, &mut row);
//! layout.validate(&row)?;
//! let mut planes = vec![0.0; layout.stack()?.tensor_len()];
//! layout.stack()?.expand(&row, &mut planes)?;
//!
//! // The mirror image: column 3 stays, column 0 becomes column 6.
//! let symmetries = ConnectFour::row_symmetries(Default::default());
//! assert_eq!(symmetries.turn_action(Symmetry(1), 0), 6);
//! symmetries.turn_row(Symmetry(1), &mut row);
//!
//! state.play(3)?;
//! assert_eq!(state.outcome(), Some(Outcome::Won(Player::First)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bits;
pub mod chess;
pub mod codec;
pub mod connect_four;
pub mod course;
mod discs;
pub mod erased;
pub mod game;
pub mod generator;
pub mod go;
pub mod gomoku;
pub mod hex;
pub mod layout;
pub mod notation;
pub mod othello;
pub mod outside;
pub mod paco_sako;
pub mod perft;
pub mod planes;
pub mod probes;
mod random_rows;
pub mod registry;
pub mod scene;
mod stones;
pub mod symmetries;
pub mod terminal;
pub mod value;
mod wide;

pub use codec::{PolicyHead, RowError};
pub use course::Course;
pub use game::{
    Action, Drawn, Game, IllegalAction, KnownOutcome, NoRules, Outcome, ProblemKind, SingleEncoding, Sizes,
    StartError, Territory,
};
pub use layout::{RowForm, RowLayout};
pub use notation::Notation;
pub use planes::{ConstantPlane, PlaneStack};
pub use symmetries::{RowSymmetries, Symmetry};
pub use value::{FirstValue, MoverValue, Player};
