//! Checkpoints: written, proven, published, and read again after a restart.
//!
//! | module | contents |
//! |---|---|
//! | [`lease`] | the lease that lets one learner at a time publish |
//! | [`snapshot`] | the training state as files |
//! | [`export`] | the network as an ONNX file, and the proof that ONNX Runtime and libtorch agree on it |
//! | [`publish`] | publishes a checkpoint in the model repository |
//! | [`retention`] | the old checkpoints that are kept |
//! | [`resume`] | the checkpoint from which training continues |

pub mod export;
pub mod lease;
pub mod publish;
pub mod resume;
pub mod retention;
pub mod snapshot;
