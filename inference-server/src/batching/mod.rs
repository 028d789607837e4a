//! Requests become batches for the device, and what the device computes becomes answers.
//!
//! | module | contents |
//! |---|---|
//! | [`job`] | a queued request, and the answer that is put together for it |
//! | [`queue`] | what goes into a batch: fair between clients, whole requests |
//! | [`batcher`] | when a batch is taken |
//! | [`executor`] | the device's threads |
//! | [`reply`] | logits become priors, and answers are sent |

pub mod batcher;
pub mod executor;
pub mod job;
pub mod queue;
pub mod reply;
