//! Tests of the rules, rows and notation of every game against independent sources: published counts, recorded games and encodings of
//! other programs, and simple second implementations.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod boards;
mod generator;
mod go;
mod paco_sako;
mod shared;
