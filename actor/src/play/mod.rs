//! Self-play: the games that an actor plays and how each becomes a record.
//!
//! | module | contents |
//! |---|---|
//! | [`worker`] | a thread that plays many games at once |
//! | [`lock_step`] | many games that advance together, independent of the machine's speed |
//! | `begin` | the beginning of a game, and random actions before it |
//! | `slot` | one game in progress, a state machine |
//! | [`setup`] | what all games of an actor have in common, taken from the configuration |
//! | [`record`] | the record of a game, built while the game is played |
//! | [`curriculum`] | the difficulty of the next problem, for games that are about problems |
//! | [`pace`] | the numbers of games and requests of each thread, raised while that helps |
//! | [`naming`] | unique game numbers and ids, reserved durably |

mod begin;
pub mod curriculum;
pub mod lock_step;
pub mod naming;
pub mod pace;
pub mod record;
pub mod setup;
mod slot;
pub mod worker;
