//! Requests become batches for the device, and what the device computes becomes answers.
//!
//! | module | contents |
//! |---|---|
//! | [`draft`] | a request before it is queued |
//! | [`job`] | a queued request |
//! | [`queue`] | what goes into a batch: fair between clients, whole requests |
//! | [`batcher`] | when a batch is taken |
//! | [`executor`] | the device's thread |
//! | [`reply`] | logits become priors, and answers are sent |
//! | [`cache`] | evaluations by exact position and model |
//! | [`pace`] | the device's speed, for retry hints |
//! | `span` | the trace spans of a batch |

pub mod batcher;
pub mod cache;
pub mod draft;
pub mod executor;
pub mod job;
pub mod pace;
pub mod queue;
pub mod reply;
mod span;
