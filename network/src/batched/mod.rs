//! One batched evaluator for everything that searches: leaves of many searches are collected into batches, with a cache and
//! with equal positions evaluated once.
//!
//! | module | contents |
//! |---|---|
//! | [`batcher`] | [`Batcher`]: collects leaves, keeps several batches in flight, distributes their evaluations |
//! | [`evaluator`] | [`BatchedEvaluator`]: a batcher with a network that is called directly, one batch at a time |
//!
//! Self-play sends its batches over a stream and has several in flight, so it uses [`Batcher`]. Matches, engines and
//! measurements wait for each batch, so they use [`BatchedEvaluator`].
//!
//! A search gets the same evaluations whichever batch its leaves are in, so the result of a search depends neither on the
//! other searches nor on the order in which batches are answered.

pub mod batcher;
pub mod evaluator;
#[cfg(test)]
mod tests;

pub use batcher::{Batcher, Lookup, Waiter};
pub use evaluator::{BatchedEvaluator, EvaluationCounts, EvaluationSource};
