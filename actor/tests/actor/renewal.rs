//! Streams are replaced regularly, so that new servers get requests, and no request is lost.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use config::{Plaintext, SecurityConfig};
use parking_lot::Mutex;
use service::connect::{
    Connector, Link,
    balance::{Pace, Resolve, Resolved},
};

use crate::{
    evaluation::{Client, LONG},
    evaluator_server::{Fate, Server},
    hints::link_to,
    in_time,
    process::Process,
};

#[tokio::test(start_paused = true)]
async fn an_old_stream_is_replaced_when_all_its_requests_are_answered() {
    let server = Server::new(|nth| match nth {
        1 => Fate::Later(Duration::from_secs(8)),
        _ => Fate::Evaluate,
    });
    let mut client = Client::renewing(link_to(&server), LONG, Duration::from_secs(10));
    client.exchange(0..1).await;
    // This request is delayed beyond the end of the stream and is sent on the next one at the hinted time.
    client.send(1).await;
    let answer = in_time(client.evaluations.recv()).await.unwrap();
    assert_eq!(answer.id, 1);
    for first in 2..40 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.exchange(first..first + 1).await;
    }
    // More than 45 seconds, while streams live for five to ten seconds.
    let streams = server.streams.load(Ordering::SeqCst);
    assert!((5..=10).contains(&streams), "{streams}");
    // Only the delayed request was sent twice.
    assert_eq!(client.metrics.request_retries.get(), 1);
    assert_eq!(client.metrics.requests.get(), 40);
    assert_eq!(client.metrics.reconnects.get(), 0, "nothing was wrong");
}

/// The servers of the name now.
#[derive(Debug, Default)]
struct Book(Mutex<Vec<SocketAddr>>);

impl Resolve for Book {
    fn resolve<'a>(&'a self, _: &'a str, _: u16) -> Resolved<'a> {
        let found: io::Result<_> = Ok(self.0.lock().clone());
        Box::pin(async move { found })
    }
}

fn link(book: &Arc<Book>) -> Link {
    let security = SecurityConfig {
        plaintext: Plaintext::Anywhere,
        ..SecurityConfig::default()
    };
    let pace = Pace {
        resolve: Duration::from_millis(20),
        probe: Duration::from_millis(10),
    };
    Connector::new(&security)
        .with_resolver(book.clone(), pace)
        .link("inference:1")
        .unwrap()
}

#[tokio::test]
async fn a_new_server_gets_requests() {
    let (first, second) = (Server::good(), Server::good());
    let (one, other) = (
        Process::start(first.routes()).await,
        Process::start(second.routes()).await,
    );
    let book = Arc::new(Book::default());
    book.0.lock().push(one.address().parse().unwrap());
    let mut client = Client::renewing(link(&book), LONG, Duration::from_millis(20));
    client.exchange(0..3).await;
    book.0.lock().push(other.address().parse().unwrap());
    let asked = |server: &Arc<Server>| server.requests.load(Ordering::SeqCst);
    let mut next = 3;
    let both = async {
        while asked(&second) == 0 {
            client.exchange(next..next + 3).await;
            next += 3;
        }
        // The first server still gets requests.
        let so_far = asked(&first);
        while asked(&first) == so_far {
            client.exchange(next..next + 3).await;
            next += 3;
        }
    };
    in_time(both).await;
    assert_eq!(asked(&first) + asked(&second), next);
    assert_eq!(client.metrics.reconnects.get(), 0, "nothing was wrong");
}
