//! Batches of positions from the replay store to the training device.
//!
//! | module | contents |
//! |---|---|
//! | [`game`] | the game of the run: its row layout, its symmetries |
//! | [`source`] | batches fetched from the replay store ahead of training |
//! | [`store_view`] | the store's last counts and validation batches |
//! | [`ledger`] | the number of samples that may be drawn |
//! | [`loaders`] | packing on several threads |
//! | [`batches`] | a checked batch on the host |
//! | [`packer`] | checks a batch from the wire and packs it; `selection`: without its invalid samples |
//! | [`expanded`] | rows as inputs of the network |
//! | [`policies`], [`outcomes`] | policy and value targets |
//! | [`targets`] | training targets on the device |

pub mod batches;
pub mod expanded;
pub mod game;
pub mod ledger;
pub mod loaders;
pub mod outcomes;
pub mod packer;
pub mod policies;
mod selection;
pub mod source;
pub mod store_view;
pub mod targets;
