//! The replay stores of a run on this machine: how many there are, and where each keeps its games.
//!
//! The first one works in `replay` (or what `replay.folder` says), the next in `replay-2`, `replay-3`, and so on. These folders are
//! all that says how many a run has: `minuet up` starts a store for each, so a run keeps its number until
//! it is given a higher one. A lower one would leave games out, and is refused.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use service::role::Role;

/// The folder of store `number`, counted from 1, where the first one's is `first`.
pub fn folder(first: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return first.into();
    }
    let name = first.file_name().unwrap_or_default().to_string_lossy();
    first.with_file_name(format!("{name}-{number}"))
}

/// The name of store `number`: of its process, and what games are given to it by.
pub fn name(number: usize) -> String {
    let role = Role::ReplayStore.name();
    if number == 1 {
        role.to_owned()
    } else {
        format!("{role}-{number}")
    }
}

/// How many stores there are, the first one's folder being `first`: at least 1.
pub fn count(first: &Path) -> usize {
    1 + (2..).take_while(|&number| folder(first, number).is_dir()).count()
}

/// A number of stores below what there is.
#[derive(Debug, thiserror::Error)]
#[error(
    "the run has {there} replay stores ({first} to {last}), {asked} would leave games out; say --replay-stores {there} or nothing"
)]
pub struct TooFew {
    there: usize,
    asked: usize,
    first: PathBuf,
    last: PathBuf,
}

/// The number of stores that a run is to have: what was asked for, or what it has.
///
/// # Errors
/// [`TooFew`].
pub fn wanted(first: &Path, asked: Option<usize>) -> Result<usize, TooFew> {
    let there = count(first);
    match asked {
        Some(asked) if asked < there => Err(TooFew {
            there,
            asked,
            first: first.into(),
            last: folder(first, there),
        }),
        asked => Ok(asked.unwrap_or(there)),
    }
}

/// Makes the folders of so many stores, so that the run keeps that number.
///
/// # Errors
/// What the file system says.
pub fn keep(first: &Path, count: usize) -> io::Result<()> {
    (1..=count).try_for_each(|number| fs::create_dir_all(folder(first, number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_keeps_its_number_and_may_have_more() {
        let run = tempfile::tempdir().unwrap();
        let first = run.path().join("games");
        assert_eq!(wanted(&first, None).unwrap(), 1);
        assert_eq!(wanted(&first, Some(3)).unwrap(), 3);
        keep(&first, 3).unwrap();
        assert!(run.path().join("games-3").is_dir());
        assert_eq!(wanted(&first, None).unwrap(), 3);
        assert_eq!(wanted(&first, Some(4)).unwrap(), 4);
        let said = wanted(&first, Some(2)).unwrap_err().to_string();
        assert!(
            said.contains("games-3") && said.contains("--replay-stores 3"),
            "{said}"
        );
        assert_eq!(
            (name(1).as_str(), name(2).as_str()),
            ("replay-store", "replay-store-2")
        );
    }
}
