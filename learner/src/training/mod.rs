//! Training steps, and the records of them.
//!
//! | module | contents |
//! |---|---|
//! | [`train`] | one training step: forward pass, loss, gradients, update; losses on games that are held out of training |
//! | [`loss`] | the loss function |
//! | [`optimizer`] | update rules and the learning-rate schedule |
//! | [`precision`] | f32 or bf16, and the measurement of the faster one |
//! | [`average`] | the averaged weights, which are published |
//! | [`report`] | metrics, the log and the event file for TensorBoard |
//! | [`divergences`] | the number of divergences, kept in a file |
//! | [`steps`] | a command that measures training steps for `minuet bench training` |

pub mod average;
pub mod divergences;
pub mod loss;
pub mod optimizer;
pub mod precision;
pub mod report;
pub mod steps;
pub mod train;
