//! [`Made`]: a token that the studio makes for itself, so that nobody has to name one before the first look.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// File of the token, in the folder of a run. It has the form of `security.tokens`.
const FILE: &str = "studio.tokens";
/// Random bytes of a token.
const BYTES: usize = 16;

/// A token, and the file of accepted tokens that has it alone.
#[derive(Debug)]
pub struct Made {
    /// The token.
    pub token: String,
    /// The file.
    pub file: PathBuf,
}

/// The token of the studio of a run, which is made if there is none. Only the owner of the file can read it.
///
/// # Errors
/// The file cannot be read, written, or has no token.
pub fn made(run: &Path) -> anyhow::Result<Made> {
    let file = run.join(FILE);
    let token = match std::fs::read_to_string(&file) {
        Ok(text) => text.split_whitespace().nth(2).map(str::to_owned),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some(make(&file).with_context(|| cannot("write", &file))?)
        }
        Err(error) => return Err(error).with_context(|| cannot("read", &file)),
    };
    let token = token.with_context(|| {
        format!(
            "{} has no token; remove it, and another one is made",
            file.display()
        )
    })?;
    Ok(Made { token, file })
}

fn cannot(what: &str, file: &Path) -> String {
    format!("cannot {what} {}", file.display())
}

fn make(file: &Path) -> io::Result<String> {
    let token = proto::ids::hex(&rand::random::<[u8; BYTES]>());
    let mut opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    opened.write_all(format!("studio sample,evaluate {token}\n").as_bytes())?;
    opened.sync_all()?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_read_by_its_owner_alone() {
        let run = tempfile::tempdir().unwrap();
        let first = made(run.path()).unwrap();
        assert_eq!(first.token.len(), 32);
        assert_eq!(first.file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(made(run.path()).unwrap().token, first.token);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(made(other.path()).unwrap().token, first.token);
        std::fs::write(&first.file, "").unwrap();
        assert!(made(run.path()).unwrap_err().to_string().contains("remove it"));
    }
}
