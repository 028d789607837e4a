//! Tests of `minuet arena` and `minuet rating` as processes.

mod gtp;
mod matches;
mod rating;
