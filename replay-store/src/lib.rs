//! The replay store: stores games durably, serves training batches drawn from them, and counts both in a ledger.
//!
//! | module | contents |
//! |---|---|
//! | [`record`] | the stored form of a game: checked, packed, unpacked |
//! | [`log`] | the segment log: files, checksummed frames, volumes, recovery, the ledger |
//! | [`index`] | the index of the log, with which a store opens without reading its games |
//! | [`window`] | which games are sampled from, how positions are drawn, and what games are listed by |
//! | [`store`] | the store without its gRPC service: one thread writes, any number read |
//! | [`exchange`] | archive files, NumPy arrays, the archive of sealed volumes |
//! | [`rpc`] | the gRPC service |
//! | [`serve`](mod@serve) | the role: opens, serves, closes |
//! | [`client`] | clients of a served store, and of the folder of a stopped run |
//! | [`settings`], [`error`], `metrics` | settings and limits, errors and damage, Prometheus metrics |
//!
//! The path of a game: `rpc` reads it from a stream, `record` checks and packs it, `store` commits it with others to the
//! newest volume of the `log` and flushes, and only then is the game acknowledged and added to the `window`.

pub mod client;
pub mod error;
pub mod exchange;
pub mod index;
pub mod log;
mod metrics;
pub mod record;
pub mod rpc;
pub mod serve;
pub mod settings;
pub mod store;
pub mod window;

pub use serve::{run, serve};

#[cfg(test)]
#[path = "../tests/common/synthetic.rs"]
mod synthetic;
