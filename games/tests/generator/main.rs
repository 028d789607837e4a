//! Tests of the generator game: recorded cases, and properties of random clans.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod drawings;
mod examples;
mod expansion;
mod held_out;
mod oops;
mod play;
mod problems;
mod properties;
mod recoloring;
mod specification;
mod tasks;
mod vectors;
