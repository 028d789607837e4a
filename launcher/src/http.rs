//! GET requests over HTTP/1.1 without TLS: metrics pages, and Prometheus.

use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, body::Bytes};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Longest time for a request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the body of a successful reply, of at most `largest` bytes. `None` if there is none within two seconds. `host` is
/// `host:port`, `path` begins with `/`.
pub(crate) async fn get(host: &str, path: &str, largest: usize) -> Option<Bytes> {
    tokio::time::timeout(TIMEOUT, request(host, path, largest))
        .await
        .ok()?
}

async fn request(host: &str, path: &str, largest: usize) -> Option<Bytes> {
    let stream = TcpStream::connect(host).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .ok()?;
    let request = Request::get(path)
        .header(hyper::header::HOST, host)
        .body(Empty::<Bytes>::new())
        .ok()?;
    let reading = async {
        let response = sender.send_request(request).await.ok()?;
        let found = response.status().is_success();
        let body = Limited::new(response.into_body(), largest).collect().await.ok()?;
        found.then(|| body.to_bytes())
    };
    tokio::pin!(reading);
    tokio::select! {
        body = &mut reading => body,
        // The connection's task may end before the reply is read.
        _ = connection => reading.await,
    }
}
