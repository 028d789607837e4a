//! The generator game: recorded cases, and what must hold for every clan.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod expansion;
mod play;
mod problems;
mod properties;
mod recoloring;
mod vectors;
