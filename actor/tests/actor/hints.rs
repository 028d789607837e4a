//! A server whose queue is full says when it has time again, and the actor comes then. The clock is paused and the wire is
//! memory, so that nothing here depends on the machine.

use std::{io, sync::Arc, time::Duration};

use config::SecurityConfig;
use hyper_util::rt::TokioIo;
use service::connect::{self, Link, credentials::Credentials};
use tokio::time::Instant;
use tokio_stream::StreamExt as _;
use tonic::service::interceptor::InterceptedService;

use crate::{
    evaluation::{Client, LONG},
    evaluator_server::{Fate, Server},
};

/// What the actor adds of its own, and what the test's server takes: milliseconds beside the hints here.
const SLACK: Duration = Duration::from_millis(40);

/// A link to a server in this runtime, over one connection that is memory.
pub fn link_to(server: &Arc<Server>) -> Link {
    let (near, far) = tokio::io::duplex(1 << 16);
    let incoming = tokio_stream::once(Ok::<_, io::Error>(far)).chain(tokio_stream::pending());
    let serving = tonic::transport::Server::builder()
        .add_routes(server.routes())
        .serve_with_incoming(incoming);
    tokio::spawn(serving);
    let mut near = Some(near);
    let connector = tower::service_fn(move |_| {
        let connection = near.take().map(TokioIo::new);
        async move { connection.ok_or_else(|| io::Error::other("there is one connection only")) }
    });
    let channel = connect::endpoint("memory:1")
        .unwrap()
        .connect_with_connector_lazy(connector);
    InterceptedService::new(channel, Credentials::new(&SecurityConfig::default()).unwrap())
}

/// Of two requests the first is told to come again after `hint`, once. How long after its first arrival it came.
async fn comes_again_after(hint: Duration) -> Duration {
    let server = Server::new(move |nth| match nth {
        0 => Fate::Later(hint),
        _ => Fate::Answer,
    });
    let mut client = Client::over(link_to(&server), LONG);
    let began = Instant::now();
    client.ask(0).await;
    client.ask(1).await;
    // Nobody else waits for the one that was put off.
    assert_eq!(client.answers.recv().await.unwrap().id, 1);
    assert!(began.elapsed() < SLACK, "{:?}", began.elapsed());
    assert_eq!(client.answers.recv().await.unwrap().id, 0);
    assert_eq!(client.metrics.request_retries.get(), 1);
    assert_eq!(client.metrics.reconnects.get(), 0);
    let arrivals = server.arrivals.lock();
    let [(0, first), (1, _), (0, again)] = arrivals[..] else {
        panic!("{arrivals:?}")
    };
    again - first
}

#[tokio::test(start_paused = true)]
async fn who_is_told_when_to_come_again_comes_then() {
    for hint in [100, 700, 5_000].map(Duration::from_millis) {
        let after = comes_again_after(hint).await;
        assert!((hint..hint + SLACK).contains(&after), "{after:?} for {hint:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_beyond_reason_is_not_believed() {
    let after = comes_again_after(Duration::from_secs(3600)).await;
    let most = Duration::from_secs(10);
    assert!((most..most + SLACK).contains(&after), "{after:?}");
}
