//! Self-play: the games that an actor plays and how each becomes a record.
//!
//! | module | contents |
//! |---|---|
//! | [`worker`] | a thread that plays many games at once |
//! | [`lock_step`] | many games that advance together, independent of the machine's speed |
//! | `begin` | the beginning of a game |
//! | [`slot`] | one game in progress, a state machine |
//! | [`setup`] | what all games of an actor have in common, taken from the configuration |
//! | `opening` | random actions before a game begins |
//! | `build` | identifies the running program in records |
//! | `decisions` | the results of a search as a record keeps them |
//! | [`record`] | the record of a game, built while the game is played |
//! | [`curriculum`] | the difficulty of the next problem, for games that are about problems |
//! | [`progress`] | gauges about the curriculum |
//! | [`naming`] | unique game numbers and ids, reserved durably |

mod begin;
mod build;
pub mod curriculum;
pub(crate) mod decisions;
pub mod lock_step;
pub mod naming;
mod opening;
pub mod progress;
pub mod record;
pub mod setup;
mod slot;
pub mod worker;

pub use slot::SlotError;
