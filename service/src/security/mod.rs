//! Authentication and authorisation: TLS, tokens and rights.
//!
//! | module | purpose |
//! |---|---|
//! | [`tls`] | certificates and keys from files, read again when they change |
//! | [`tokens`] | the tokens that a server accepts, and the token that a client sends |
//! | [`methods`] | the token that each method needs, and its other rules |
//! | [`known`] | the tokens that a server accepts at the moment, and the token of an open call |
//! | [`guard`] | checks the token of each call |
//!
//! Certificates decide which clients may connect, tokens which calls they may make. Keys and tokens are read from files only,
//! because other processes can see arguments and the environment.

pub mod guard;
pub mod known;
pub mod methods;
pub mod tls;
pub mod tokens;

use std::{io, path::PathBuf};

/// Error: a setting of `[security]` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// A file cannot be read.
    #[error("cannot read {} (security.{key}): {reason}", path.display())]
    Read {
        /// The key of `[security]` that names the file.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        reason: io::Error,
    },
    /// A file has unsuitable content.
    #[error("{} (security.{key}): {reason}", path.display())]
    Content {
        /// The key of `[security]` that names the file.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// A server would use plaintext on an address that other machines can reach.
    #[error(
        "{address} can be reached from other machines, and without security.certificate everything would be plaintext; \
         give a certificate and a key, or set security.plaintext = \"anywhere\" if the network is trusted"
    )]
    OpenServer {
        /// Address of the server.
        address: String,
    },
    /// A client would use plaintext to another machine.
    #[error(
        "{address} is another machine, and without security.ca everything would be plaintext; \
         name the authority of its certificate, or set security.plaintext = \"anywhere\" if the network is trusted"
    )]
    OpenClient {
        /// Address of the peer.
        address: String,
    },
    /// An `https://` address is given, but no authority to check its certificate.
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
