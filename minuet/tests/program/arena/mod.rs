//! Tests of `minuet arena` and `minuet rating` as processes.

mod matches;
mod rating;
