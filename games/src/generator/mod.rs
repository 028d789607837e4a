//! The generator game: a one-player game whose state is a program that draws a grid.
//!
//! The program is a *clan*, a tree of *imps*: shapes, groups and rotations with bounded numbers, colours and directions. A
//! *sept* is the subtree of one imp. A move transforms a sept, or marks the drawing as a step or as complete. The player
//! wins by drawing the target grid and marking it as complete. A move that fails, e.g. a wrong mark, is an *Oops* and ends
//! the game. The idea is the fish-eye transformer game of ARC-raider.
//!
//! | module | content |
//! |---|---|
//! | [`grammar`] | one-hot values, roles, allowed children; sizes, coordinates, colours: numbers within their ranges |
//! | [`clan`] | the tree, and its form as numbers, checked when read |
//! | [`grid`], [`render`] | grids, rendering of clans, views of single imps |
//! | [`moves`], `edit`, `legal` | the 38 moves of an imp, their effects, their legality |
//! | [`problem`] | targets, and lower bounds of the moves to them; example pairs of a task, as context of a pair |
//! | [`rules`] | failing moves, cycles, move limit, shares of pairs, tasks and drawings |
//! | [`game`] | the [`Game`](crate::Game): episode, Oops, move limit, cycles |
//! | [`row`], `codec` | rows, and their representations for networks |
//! | [`expansion`] | arrays that a network takes |
//! | `canonical` | one position for all that differ by a permutation of the colours; these as maps of rows and policies |
//! | `sample`, `drawings` | problems drawn with a solution, by random moves or from the grammar; hindsight |
//! | `shorten` | known solutions without the moves that do not matter |
//! | [`task`] | problems from ARC task files |
//! | [`made`] | ARC-like tasks made from the grammar |
//! | [`text`], `notation` | grids and clans as text and in words, drawing and notation |

mod canonical;
pub mod clan;
mod codec;
mod drawings;
mod edit;
pub mod expansion;
pub mod game;
pub mod grammar;
pub mod grid;
mod legal;
pub mod made;
pub mod moves;
mod notation;
pub mod problem;
pub mod render;
pub mod row;
pub mod rules;
mod sample;
mod shorten;
pub mod task;
pub mod text;

pub use clan::{Clan, ClanError};
pub use codec::{ClanRows, Encoding};
pub use expansion::{ClanBatch, Expander};
pub use game::{EpisodeEnd, GeneratorGame};
pub use grid::{Grid, GridError};
pub use moves::Move;
pub use problem::{Example, Examples, ExamplesError, Problem};
pub use row::ClanPosition;
pub use rules::{Cycles, Illegal, Rules};
