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

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use crate::filesystem;

/// Largest file of certificates or tokens that is read, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Error: a setting of `[security]` cannot be used, in a sentence that names the key or the address.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SecurityError(pub(crate) String);

/// A file that a key of `[security]` names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) key: &'static str,
    pub(crate) path: PathBuf,
}

impl Named {
    pub(crate) fn new(key: &'static str, path: &Path) -> Self {
        Self {
            key,
            path: path.to_owned(),
        }
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>, SecurityError> {
        filesystem::read(&self.path, MAX_FILE_BYTES).map_err(|reason| {
            let (path, key) = (self.path.display(), self.key);
            SecurityError(format!("cannot read {path} (security.{key}): {reason}"))
        })
    }

    pub(crate) fn fault(&self, reason: impl Display) -> SecurityError {
        let (path, key) = (self.path.display(), self.key);
        SecurityError(format!("{path} (security.{key}): {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(path: &Path) -> String {
        Named::new("tokens", path).read().unwrap_err().to_string()
    }

    #[test]
    fn a_pipe_a_folder_and_a_huge_file_are_refused_without_reading_them() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(reason(&pipe).ends_with("(security.tokens): it is not a regular file"));
        assert!(reason(folder.path()).ends_with("it is not a regular file"));
        let huge = folder.path().join("huge");
        std::fs::File::create(&huge).unwrap().set_len(3 << 30).unwrap();
        assert!(reason(&huge).ends_with("it is larger than 16 MiB"));
    }
}
