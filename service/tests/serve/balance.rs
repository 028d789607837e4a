//! Tests of one host name with several servers that start and stop.

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc};

use config::{Plaintext, SecurityConfig};
use parking_lot::Mutex;
use service::connect::{
    Link,
    balance::{Resolve, Resolved},
};
use tonic::Code;

use crate::{Behind, TIMEOUT, behind, check, connector};

const NAMES: [&str; 3] = ["one", "two", "three"];

/// Addresses of the name; `None`: look-ups fail.
#[derive(Debug, Default)]
struct Book(Mutex<Option<Vec<SocketAddr>>>);

impl Resolve for Book {
    fn resolve<'a>(&'a self, host: &'a str, _: u16) -> Resolved<'a> {
        assert_eq!(host, "inference");
        let found = self.0.lock().clone();
        Box::pin(async move { found.ok_or_else(|| io::Error::other("the resolver is away")) })
    }
}

impl Book {
    fn write(&self, servers: &[&Behind]) {
        let addresses = servers.iter().map(|server| server.address.parse().unwrap());
        *self.0.lock() = Some(addresses.collect());
    }
}

fn link(book: &Arc<Book>) -> Link {
    let security = SecurityConfig {
        plaintext: Plaintext::Anywhere,
        ..SecurityConfig::default()
    };
    connector(&security, book.clone()).link("inference:1").unwrap()
}

/// Makes several calls and counts the answers of each server; each server knows only its own name.
async fn answers(link: &Link) -> BTreeMap<&'static str, u32> {
    let mut counts = BTreeMap::new();
    for _ in 0..30 {
        for name in NAMES {
            match check(link, name).await.map_err(|status| status.code()) {
                Ok(()) => *counts.entry(name).or_default() += 1,
                Err(Code::NotFound) => {}
                Err(_) => *counts.entry("failed").or_default() += 1,
            }
        }
    }
    counts
}

/// Repeats calls until exactly the servers `expected` answer.
async fn until(link: &Link, expected: &[&'static str]) -> BTreeMap<&'static str, u32> {
    let asking = async {
        loop {
            let counts = answers(link).await;
            if counts.keys().copied().eq(expected.iter().copied()) {
                return counts;
            }
        }
    };
    tokio::time::timeout(TIMEOUT, asking).await.unwrap()
}

#[tokio::test]
async fn calls_are_spread_over_servers_that_start_and_stop() {
    let plain = SecurityConfig::default();
    let (one, two) = (behind(&plain, NAMES[0]).await, behind(&plain, NAMES[1]).await);
    let book = Arc::new(Book::default());
    let link = link(&book);
    // The name has no address yet: calls fail instead of waiting.
    let nowhere = check(&link, NAMES[0]).await.unwrap_err();
    assert_eq!(nowhere.code(), Code::Unavailable, "{nowhere:?}");

    book.write(&[&one, &two]);
    let counts = until(&link, &["one", "two"]).await;
    assert!(counts.values().all(|&count| count >= 3), "{counts:?}");

    // A stopped server gets no calls, although the name still resolves to it.
    one.shutdown.cancel();
    until(&link, &["two"]).await;

    // A new server is found, even after failed look-ups.
    *book.0.lock() = None;
    until(&link, &["two"]).await;
    let three = behind(&plain, NAMES[2]).await;
    book.write(&[&one, &two, &three]);
    until(&link, &["three", "two"]).await;

    // A server that the name no longer resolves to gets no calls, although it could be reached.
    book.write(&[&three]);
    until(&link, &["three"]).await;

    drop(three);
    let all_fail = async { while until(&link, &["failed"]).await["failed"] < 90 {} };
    tokio::time::timeout(TIMEOUT, all_fail).await.unwrap();
}
