//! [`VersionId`]: the model of a cached evaluation.

/// Number of a model in this process. The user of a cache assigns a number to each model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionId(pub u32);
