//! Tests of the generator game: recorded cases, and properties of random clans.

mod drawings;
mod examples;
mod expansion;
mod held_out;
mod oops;
mod play;
mod problems;
mod properties;
mod recoloring;
mod tasks;
mod vectors;
