//! What can go wrong in a model repository.

use crate::Version;

/// A checkpoint that cannot be published, found or trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store's address means nothing here.
    #[error("cannot open the model store `{location}`: {reason}")]
    Location {
        /// The folder or URL as it was given.
        location: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A version, label or file name with characters that could lead elsewhere.
    #[error("`{name}` is no {kind}: {reason}")]
    Name {
        /// What the name should be.
        kind: &'static str,
        /// The name as it was given.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No such label, or no such version.
    #[error("the model store has no `{name}`")]
    NotFound {
        /// The label or version.
        name: String,
    },
    /// A manifest or label of a newer (or foreign) program.
    #[error("`{name}` has schema {found}, this program reads schema {supported}: use a newer build")]
    Schema {
        /// The version or label.
        name: String,
        /// The schema number there.
        found: u64,
        /// The one known here.
        supported: u64,
    },
    /// A manifest or label that is not what it should be.
    #[error("`{name}` is damaged: {reason}")]
    Damaged {
        /// The version or label.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file whose bytes are not those that were published.
    #[error("{file} of {version} is damaged: its sha-256 is {found}, {expected} was published")]
    Digest {
        /// The version.
        version: Version,
        /// The file's name.
        file: String,
        /// The digest in the manifest.
        expected: String,
        /// The digest of what was read.
        found: String,
    },
    /// The version is visible already, with other contents.
    #[error("version {version} was published before with other contents of {file}")]
    Published {
        /// The version.
        version: Version,
        /// The first file that differs.
        file: String,
    },
    /// Somebody else is writing the same version with other contents, or died doing so a moment ago.
    #[error(
        "version {version} is being published by somebody else with other contents of {file}; try again in {retry_seconds} s"
    )]
    Busy {
        /// The version.
        version: Version,
        /// The first file that differs.
        file: String,
        /// After this long without a manifest the other one counts as dead.
        retry_seconds: u64,
    },
    /// A draft that is not a checkpoint.
    #[error("not a checkpoint: {0}")]
    Draft(String),
    /// Somebody else holds the lease of the label by now.
    #[error(
        "another process has taken over `{label}` (its token is {found}, ours was {token}); this one publishes no more"
    )]
    Fenced {
        /// The label.
        label: String,
        /// The token of who asks.
        token: u64,
        /// The present one; 0 where the lease was removed.
        found: u64,
    },
    /// The store cannot do what is needed of it.
    #[error("the model store cannot be used for this: {0}")]
    Unsupported(String),
    /// The object store failed; trying again may help, but for a refusal ([`Error::is_transient`]).
    #[error("the model store failed: {0}")]
    Store(#[from] object_store::Error),
    /// The file system failed; trying again may help.
    #[error("the model store failed: {0}")]
    Io(#[from] std::io::Error),
}

impl From<objects::LocationError> for Error {
    fn from(objects::LocationError { location, reason }: objects::LocationError) -> Self {
        Self::Location { location, reason }
    }
}

impl Error {
    /// Whether the store failed rather than its contents, so that trying again later may help.
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
