//! role: the replay store. Durable games in, training batches out, and a ledger of both.
//!
//! | module | what it is for |
//! |---|---|
//! | [`settings`] | what a store is told, and its fixed bounds |
//! | [`validate`] | every game is checked at the edge |
//! | [`record`] | the stored form of a game: compact, versioned, exact |
//! | [`frame`] | checksummed frames: damage costs the damaged game alone |
//! | [`files`] | the disk beneath it all, which tests can replace |
//! | [`volume`] | the games of a run of sequence numbers: a segment log, or a sled database |
//! | [`salvage`] | finding games in a database's files without the database |
//! | [`recover`] | opening a volume that may have been through anything |
//! | [`shelf`] | the volumes in order |
//! | [`ledger`] | what was ever inserted and sampled, surviving every restart |
//! | [`known`] | every id that is remembered, so that no game is stored twice |
//! | [`identity`] | what a folder is for, and the lock that keeps a second process out |
//! | [`disk`] | room on the disk: refusing games before it is full |
//! | [`window`] | which games are sampled from |
//! | [`held_out`] | which games are kept from training |
//! | [`decoded`], [`cache`] | games as batches are made from them, kept up to a limit |
//! | [`sampler`] | drawing positions, making batches |
//! | [`open`], [`writer`], [`shared`], [`append`] | a store at work: one thread writes, any number read |
//! | [`store`] | the store without its wire |
//! | [`filter`] | which games are meant |
//! | [`gate`] | bounds on uses of a position: whichever side is ahead waits |
//! | [`exchange`] | archive files and NumPy arrays |
//! | [`vault`] | where archives of sealed volumes are kept; [`archiver`]: how they come there |
//! | [`rpc`] | the store's gRPC service |
//! | [`serve`](mod@serve) | the role: opens, serves, closes |
//! | [`metrics`] | its Prometheus metrics |
//!
//! A game's way: `rpc` takes it from a stream, `validate` checks it, `record` packs it, `writer` commits it
//! with others to the youngest `volume` and flushes, and only then is it acknowledged and seen by `window`.

pub mod append;
pub mod archiver;
pub mod cache;
pub mod decoded;
pub mod disk;
pub mod error;
pub mod exchange;
pub mod files;
pub mod filter;
pub mod frame;
pub mod gate;
pub mod held_out;
pub mod identity;
pub mod known;
pub mod ledger;
pub mod metrics;
pub mod open;
pub mod record;
pub mod recover;
pub mod rpc;
pub mod salvage;
pub mod sampler;
pub mod serve;
pub mod settings;
pub mod shared;
pub mod shelf;
pub mod store;
pub mod validate;
pub mod vault;
pub mod volume;
pub mod window;
pub mod writer;

pub use serve::{run, serve};

#[cfg(test)]
#[path = "../tests/common/synthetic.rs"]
mod synthetic;
