//! File descriptors of the process: connections and files take them from one limit.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of descriptors to the highest value that the process may set.
///
/// # Errors
/// The error of the operating system; the limit stays as it was.
pub fn raise_limit() -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return Ok(());
    }
    Ok(setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )?)
}

/// Returns the greatest number of descriptors that the process may have.
pub fn limit() -> usize {
    let current = getrlimit(Resource::Nofile).current;
    current
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX)
}
