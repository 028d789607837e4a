//! Requests become batches for the device, and what the device computes becomes answers.
//!
//! | module | contents |
//! |---|---|
//! | [`job`] | a queued request |
//! | [`queue`] | what goes into a batch: fair between clients, whole requests |
//! | [`batcher`] | when a batch is taken |
//! | [`executor`] | the device's threads |
//! | [`reply`] | logits become priors, and answers are sent |
//! | [`cache`] | evaluations by exact position and model |
//! | [`device_speed`] | the device's speed, for retry hints |
//! | `span` | the trace spans of a batch |

pub mod batcher;
pub mod cache;
pub mod device_speed;
pub mod executor;
pub mod job;
pub mod queue;
pub mod reply;
mod span;
