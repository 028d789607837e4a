//! The learner: trains the network (a tower or a fish-eye network) on the replay store's games and publishes proven checkpoints.
//!
//! | module | what it is for |
//! |---|---|
//! | [`learner`] | [`run`]: the role |
//! | [`game`] | the layout of the game's rows |
//! | [`source`] | batches from the replay store, ahead of training; [`stores`]: from several stores |
//! | [`ledger`] | how many samples may be drawn |
//! | [`loaders`] | packing on several threads |
//! | [`batches`] | checking and packing batches; `packing`, [`policies`] and [`outcomes`] are parts of it |
//! | [`targets`] | what of them is compared with outputs, on the device |
//! | [`expansion`] | rows to planes |
//! | [`clans`] | rows to the arrays of clans, and those to tensors |
//! | [`inputs`] | either of them, as the network takes it |
//! | [`network`] | the network |
//! | [`loss`] | what is minimised |
//! | [`optimizer`] | how |
//! | [`train`] | one training step |
//! | [`validation`] | what a checkpoint is worth on games that were not trained on |
//! | [`average`] | the weights that are published |
//! | [`precision`] | f32 or bf16 |
//! | [`worker`] | the training thread |
//! | [`snapshot`] | the state as files |
//! | [`resume`] | the checkpoint to go on from |
//! | [`export`] | the network as ONNX |
//! | [`proof`] | ONNX Runtime agrees with libtorch |
//! | [`publish`] | the way into the model repository |
//! | [`report`] | figures; [`divergences`]: the one that must not be lost |
//! | [`steps`] | training steps by order, to be measured |
//! | [`device`], [`torch`], [`tensors`] | libtorch with care; tensors as files |
//!
//! One thread makes all torch calls (torch keeps a pool of helpers for each thread that calls it); everything that
//! waits is async. The first trained checkpoint is published early, see [`worker`].

pub mod average;
pub mod batches;
pub mod clans;
pub mod device;
pub mod divergences;
pub mod expansion;
pub mod export;
pub mod game;
pub mod inputs;
pub mod learner;
pub mod ledger;
pub mod loaders;
pub mod loss;
pub mod network;
pub mod optimizer;
pub mod outcomes;
mod packing;
pub mod policies;
pub mod precision;
pub mod proof;
pub mod publish;
pub mod report;
pub mod resume;
pub mod snapshot;
pub mod source;
pub mod steps;
pub mod stores;
pub mod targets;
pub mod tensors;
pub mod tenure;
pub mod torch;
pub mod train;
pub mod validation;
pub mod worker;

pub use learner::run;
