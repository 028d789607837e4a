//! Who may talk to whom: TLS, tokens, and what each right allows.
//!
//! | module | what it is for |
//! |---|---|
//! | [`tls`] | certificates and keys from files, read again when they change |
//! | [`tokens`] | the tokens a server knows, and the one a client sends |
//! | [`guard`] | the layer that asks for a token before a call is let in |
//!
//! A certificate says who may connect, a token what it may do. Keys and tokens are only read from files: arguments and
//! environment are seen by others.

pub mod guard;
pub mod tls;
pub mod tokens;

use std::{io, path::PathBuf};

/// Something of `[security]` that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// A file that cannot be read.
    #[error("cannot read {} (security.{key}): {reason}", path.display())]
    Read {
        /// The key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// A file that does not hold what it should.
    #[error("{} (security.{key}): {reason}", path.display())]
    Content {
        /// The key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A server that would speak plaintext where others can listen.
    #[error(
        "{address} can be reached from other machines, and without security.certificate everything would be plaintext; \
         give a certificate and a key, or set security.plaintext = \"anywhere\" if the network is trusted"
    )]
    OpenServer {
        /// Where it would listen.
        address: String,
    },
    /// A client that would speak plaintext where others can listen.
    #[error(
        "{address} is another machine, and without security.ca everything would be plaintext; \
         name the authority of its certificate, or set security.plaintext = \"anywhere\" if the network is trusted"
    )]
    OpenClient {
        /// Whom it would talk to.
        address: String,
    },
    /// An `https://` address without anything to check its certificate against.
    #[error(
        "{address} is to be reached by TLS, but security.ca names no authority to check its certificate against"
    )]
    NoAuthority {
        /// The address.
        address: String,
    },
}

/// A file that a key of `[security]` names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) key: &'static str,
    pub(crate) path: PathBuf,
}

impl Named {
    pub(crate) fn new(key: &'static str, path: &std::path::Path) -> Self {
        Self {
            key,
            path: path.to_owned(),
        }
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>, SecurityError> {
        std::fs::read(&self.path).map_err(|reason| SecurityError::Read {
            key: self.key,
            path: self.path.clone(),
            reason,
        })
    }

    pub(crate) fn fault(&self, reason: impl ToString) -> SecurityError {
        SecurityError::Content {
            key: self.key,
            path: self.path.clone(),
            reason: reason.to_string(),
        }
    }
}
