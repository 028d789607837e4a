//! A server whose queue is full sends a hint for the retry, and the actor follows it. The clock is paused and the connection is in
//! memory, so that the result does not depend on the machine.

use std::{io, sync::Arc, time::Duration};

use hyper_util::rt::TokioIo;
use service::connect::{self, Link, credentials::Credentials};
use tokio::time::Instant;
use tokio_stream::StreamExt as _;
use tonic::service::interceptor::InterceptedService;

use crate::{
    evaluation::{Client, LONG},
    evaluator_server::{Fate, Server},
};

/// Tolerance for the delays of the actor and of the test's server, small compared with the hints.
const SLACK: Duration = Duration::from_millis(40);

/// Returns a link to a server in this runtime over one connection in memory.
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
    InterceptedService::new(channel, Credentials::default())
}

/// Sends two requests, of which the first gets `hint` once. Returns the time between the first two arrivals of that request.
async fn comes_again_after(hint: Duration) -> Duration {
    let server = Server::new(move |nth| match nth {
        0 => Fate::Later(hint),
        _ => Fate::Evaluate,
    });
    let mut client = Client::over(link_to(&server), LONG);
    let began = Instant::now();
    client.send(0).await;
    client.send(1).await;
    // The other request does not wait for the delayed one.
    assert_eq!(client.evaluations.recv().await.unwrap().id, 1);
    assert!(began.elapsed() < SLACK, "{:?}", began.elapsed());
    assert_eq!(client.evaluations.recv().await.unwrap().id, 0);
    assert_eq!(client.metrics.request_retries.get(), 1);
    assert_eq!(client.metrics.reconnects.get(), 0);
    let arrivals = server.arrivals.lock();
    let [(0, first), (1, _), (0, again)] = arrivals[..] else {
        panic!("{arrivals:?}")
    };
    again - first
}

#[tokio::test(start_paused = true)]
async fn a_retry_follows_the_hint_of_the_server() {
    for hint in [100, 700, 5_000].map(Duration::from_millis) {
        let after = comes_again_after(hint).await;
        assert!((hint..hint + SLACK).contains(&after), "{after:?} for {hint:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreasonable_hint_is_limited() {
    let after = comes_again_after(Duration::from_secs(3600)).await;
    let most = Duration::from_secs(10);
    assert!((most..most + SLACK).contains(&after), "{after:?}");
}
