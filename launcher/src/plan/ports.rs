//! Free loopback ports for the roles.
//!
//! The ports lie below the range from which the operating system takes ports for outgoing connections (32768 and up on
//! Linux), so that a restarted role finds its port free. The search begins at a port derived from the run's folder, so that a run
//! keeps its ports from one start to the next if it can.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
};

const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// Returns `count` different addresses on which nothing listens now.
///
/// # Errors
/// There are fewer free ports.
pub fn free(run: &Path, count: usize) -> io::Result<Vec<SocketAddr>> {
    let begin = begin(run);
    let all = (0..COUNT).map(|step| FIRST + (begin + step) % COUNT);
    free_among(all, count)
}

/// Port of a page for people, if it is free.
const FOR_PEOPLE: u16 = 7070;

/// Returns the address of a page for people on which nothing listens now: port 7070, or else any.
///
/// # Errors
/// There is no free port.
pub fn free_for_people() -> io::Result<SocketAddr> {
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, FOR_PEOPLE));
    let listener = first.or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    listener.local_addr()
}

fn free_among(ports: impl Iterator<Item = u16>, count: usize) -> io::Result<Vec<SocketAddr>> {
    // All listeners are held until the last one is found, so that the ports differ.
    let listeners: Vec<TcpListener> = ports
        .filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
        .take(count)
        .collect();
    if listeners.len() < count {
        let reason = format!("no {count} free ports between {FIRST} and {}", FIRST + COUNT);
        return Err(io::Error::new(io::ErrorKind::AddrInUse, reason));
    }
    listeners.iter().map(TcpListener::local_addr).collect()
}

fn begin(run: &Path) -> u16 {
    let mut hasher = DefaultHasher::new();
    run.hash(&mut hasher);
    (hasher.finish() % u64::from(COUNT)) as u16
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ports_are_free_and_different_and_the_search_depends_on_the_run() {
        let run = tempfile::tempdir().unwrap();
        let first = free(run.path(), 8).unwrap();
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), 8);
        let taken = TcpListener::bind(first[3]).unwrap();
        assert!(!free(run.path(), 8).unwrap().contains(&first[3]));
        assert!(free_among(std::iter::once(first[3].port()), 1).is_err());
        drop(taken);
        assert_eq!(begin(run.path()), begin(run.path()));
        assert_ne!(begin(run.path()), begin(&run.path().join("other")));
    }
}
