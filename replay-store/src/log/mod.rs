//! The segment log: the durable truth of the store.

pub mod disk;
pub mod files;
pub mod frame;
pub mod known_ids;
pub mod ledger;
pub mod recover;
pub mod salvage;
pub mod volume;
pub mod volumes;
