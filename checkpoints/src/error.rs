//! [`Error`]: every failure of the model repository.

use crate::{
    LATEST,
    manifest::SCHEMA,
    version::{NameError, Version},
};

/// Error: a checkpoint cannot be published, found or trusted, or the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A version, label or file name has characters that are not allowed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The store has no such label, version or file.
    #[error("the model store has no `{name}`")]
    NotFound {
        /// Label, version or file that is missing.
        name: String,
    },
    /// A newer or foreign program wrote the manifest or label.
    #[error("`{name}` has schema {found}, this program reads schema {SCHEMA}: use a newer build")]
    Schema {
        /// The version or label.
        name: String,
        /// Schema number in the manifest or label.
        found: u64,
    },
    /// A manifest or label cannot be parsed or contradicts itself, or the bytes of a file differ from the published ones.
    #[error("`{name}` is damaged: {reason}{}", hint(name))]
    Damaged {
        /// The version, label or file.
        name: String,
        /// Reason.
        reason: String,
    },
    /// Another process is writing the same version with other contents, or died doing so a moment ago.
    #[error(
        "another process is publishing version {version} with other contents of {file}; try again in {retry_seconds} s"
    )]
    Busy {
        /// The version.
        version: Version,
        /// The first file that differs.
        file: String,
        /// Seconds without a manifest after which the other process counts as dead.
        retry_seconds: u64,
    },
    /// Another process holds the lease now.
    #[error(
        "another process has taken over the lease of `{LATEST}` (token {found}; this process had token {token}): this process publishes no more"
    )]
    Fenced {
        /// Token of the lease that was lost.
        token: u64,
        /// Token of the present lease; 0 if the lease file was removed.
        found: u64,
    },
    /// The call cannot succeed: the store's address is not valid, its bucket does not exist, the files do not make a checkpoint, the
    /// version was published before with other contents, or the store lacks a needed operation.
    #[error("{0}")]
    Refused(String),
    /// The object store failed. [`Error::is_transient`] tells whether trying again may help.
    #[error("the model store failed: {0}")]
    Store(object_store::Error),
    /// The file system failed. Trying again may help.
    #[error("the model store failed: {0}")]
    Io(std::io::Error),
}

/// Returns what to do about a damaged label or lease.
fn hint(name: &str) -> &'static str {
    match name.starts_with("labels/") || name.starts_with("leases/") {
        true => "; stop the run, then `minuet doctor --run DIR --repair` repairs it",
        false => "",
    }
}

// The messages of `Store` and `Io` hold their causes, so `source` does not return these again. A chain of errors then prints
// each cause once.
impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        // Reads find nothing in a bucket that does not exist, as in one without checkpoints; only writes are refused.
        if matches!(error, object_store::Error::NotFound { .. }) && error.to_string().contains("NoSuchBucket")
        {
            return Self::Refused(format!(
                "the model store's bucket does not exist: create it, or correct `checkpoints.store` ({error})"
            ));
        }
        Self::Store(error)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<objects::LocationError> for Error {
    fn from(objects::LocationError { location, reason }: objects::LocationError) -> Self {
        Self::Refused(format!("cannot open the model store `{location}`: {reason}"))
    }
}

impl Error {
    /// True if a file of a checkpoint is missing, or differs from what was published.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::NotFound { .. })
    }

    /// True if the store failed rather than its contents, so that trying again later may help.
    pub fn is_transient(&self) -> bool {
        use object_store::Error as Store;

        match self {
            Self::Store(
                Store::PermissionDenied { .. }
                | Store::Unauthenticated { .. }
                | Store::NotImplemented { .. }
                | Store::NotSupported { .. }
                | Store::InvalidPath { .. }
                | Store::UnknownConfigurationKey { .. },
            ) => false,
            Self::Store(_) | Self::Io(_) | Self::Busy { .. } => true,
            _ => false,
        }
    }
}
