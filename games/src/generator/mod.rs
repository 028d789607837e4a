//! The generator game: a one-player game whose state of play is a program that draws a grid.
//!
//! The program is a *clan*, a tree of *imps*: shapes, groups and rotations with bounded numbers, colours and directions.
//! A move transforms the *sept* (the subtree) of one imp, or marks the drawing as a step or as complete. The idea is the
//! fish-eye transformer game of ARC-raider.
//!
//! | module | what it is for |
//! |---|---|
//! | [`grammar`] | one-hot values, roles, what may stand where |
//! | [`clan`], [`packed`] | the tree, and its form as numbers, checked when read |
//! | [`grid`], [`render`] | cells; from clan to grid, and the views of single imps |
//! | [`moves`], `edit`, `legal` | the 38 moves of an imp, what they do, which of them can be made |
//! | [`problem`] | what is to be drawn, and how far it is at least |
//! | [`game`] | the [`Game`](crate::Game): episode, Oops, move limit, cycles |
//! | [`row`] | a position as it travels |
//! | [`expansion`], `views` | the arrays that the network takes |
//! | `recoloring` | permutations of the colours, of rows and policies |
//! | [`symmetry`] | turns of the square and permutations of the colours, to train on |
//! | `sample` | problems drawn with a solution; episodes seen in hindsight |
//! | [`task`] | problems from ARC task files |
//! | `text` | clans for people |

pub mod clan;
mod codec;
mod edit;
pub mod expansion;
pub mod game;
pub mod grammar;
pub mod grid;
mod legal;
pub mod moves;
pub mod packed;
pub mod paint;
mod people;
pub mod problem;
mod recoloring;
pub mod render;
pub mod row;
mod sample;
pub mod symmetry;
pub mod task;
mod text;
mod views;

pub use clan::Clan;
pub use codec::ClanRows;
pub use expansion::{ClanBatch, Expander};
pub use game::{Cycles, End, GeneratorGame, Illegal, Rules};
pub use grid::{Grid, GridError};
pub use moves::Move;
pub use packed::ClanError;
pub use problem::Problem;
pub use row::{Position, PositionError};
