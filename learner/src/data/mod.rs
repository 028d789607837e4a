//! Batches of positions on their way from the replay store to the device.
//!
//! | module | what it contains |
//! |---|---|
//! | [`game`] | the game of the run: its row layout, its symmetries |
//! | [`source`] | batches fetched from the replay store ahead of training |
//! | [`store_view`] | the store's last counts and validation batches |
//! | [`ledger`] | the number of samples that may be drawn |
//! | [`loaders`] | packing on several threads |
//! | [`batches`] | a checked batch on the host, and the packer; `packing`, [`policies`] and [`outcomes`] are parts of it |
//! | [`clans`] | rows of the generator game as arrays, and arrays as tensors |
//! | [`expansion`] | rows of the board games as planes |
//! | [`inputs`] | the network's input, in either form |
//! | [`targets`] | training targets on the device |

pub mod batches;
pub mod clans;
pub mod expansion;
pub mod game;
pub mod inputs;
pub mod ledger;
pub mod loaders;
pub mod outcomes;
mod packing;
pub mod policies;
pub mod source;
pub mod store_view;
pub mod targets;
