//! Batches of positions from the replay store to the training device.
//!
//! | module | contents |
//! |---|---|
//! | [`game`] | the game of the run: its row layout, its symmetries |
//! | [`source`] | batches fetched from the replay store ahead of training, and packed on several threads |
//! | [`ledger`] | the number of samples that may be drawn |
//! | [`batches`] | a checked batch on the host, and the store's last counts and validation batches |
//! | [`packer`] | checks a batch from the wire and packs it |
//! | [`expanded`] | rows as inputs of the network |
//! | [`policies`], [`outcomes`], [`territories`] | policy and value targets, owners of squares |
//! | [`targets`] | training targets on the device |

pub mod batches;
pub mod expanded;
pub mod game;
pub mod ledger;
pub mod outcomes;
pub mod packer;
pub mod policies;
pub mod source;
pub mod targets;
pub mod territories;
