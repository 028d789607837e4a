//! The folder of a run: its files, its configuration, the lock, and the addresses of its services.

pub mod addresses;
pub mod choices;
mod description;
pub mod folder;
pub mod game;
pub(crate) mod recipe;
