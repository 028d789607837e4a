//! [`serve`]: one connection of a browser, with a limit for everything that a client may leave undone: the head of a request, its body,
//! and reading the reply.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody as _, to_bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use service::listener::Connection;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Connected as _;
use tower::ServiceExt as _;

use super::Guarded;

/// Time in which the head of a request must arrive. A connection without a request is closed after it too.
const HEAD_TIME: Duration = Duration::from_secs(20);
/// Time in which the body of a request must arrive.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Longest body of a request, in bytes. The longest one is a game with all its moves.
const BODY_BYTES: usize = 64 << 10;
/// Time in which a client must take what is ready to be sent, from when it stops to read.
const REPLY_TIME: Duration = Duration::from_secs(30);
/// Most bytes of a reply that are kept for one connection, apart from the last piece.
const BUFFER: usize = 64 << 10;

/// Serves a connection until it is closed, or `ending` is cancelled and its reply is complete. Each request carries the
/// [`Peer`](service::listener::Peer) that sent it.
pub async fn serve(connection: Connection, site: Guarded, ending: CancellationToken) {
    let peer = connection.connect_info();
    let site = site.map_request(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        request
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(BUFFER)
        .serve_connection(
            TokioIo::new(Wire::new(connection)),
            TowerToHyperService::new(site),
        );
    tokio::pin!(serving);
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = ending.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection failed");
    }
}

/// Reads the body of a request before anything is done with the request.
pub async fn whole_body(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let (status, reason) = match timeout(BODY_TIME, to_bytes(body, BODY_BYTES)).await {
        Ok(Ok(body)) => return next.run(Request::from_parts(head, body.into())).await,
        Ok(Err(_)) => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "The request is incomplete, or longer than 64 KiB.\n",
        ),
        Err(_) => (
            StatusCode::REQUEST_TIMEOUT,
            "The request did not arrive within 10 seconds.\n",
        ),
    };
    let close = [(header::CONNECTION, HeaderValue::from_static("close"))];
    (status, close, reason).into_response()
}

/// A connection that fails when its client does not read for [`REPLY_TIME`].
#[derive(Debug)]
struct Wire<T> {
    inner: T,
    /// Runs from the first byte that is not taken until all are.
    unread: Option<Pin<Box<Sleep>>>,
}

impl<T: AsyncWrite + Unpin> Wire<T> {
    fn new(inner: T) -> Self {
        Self { inner, unread: None }
    }

    /// Writes, with the time limit.
    fn limited<R>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut T>, &mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        let polled = write(Pin::new(&mut self.inner), context);
        if polled.is_pending() {
            let limit = self.unread.get_or_insert_with(|| Box::pin(sleep(REPLY_TIME)));
            if limit.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        polled
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Wire<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Wire<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.limited(context, |inner, context| inner.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.limited(context, |inner, context| {
            inner.poll_write_vectored(context, slices)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    /// Called when everything is written, so that the time begins anew with the next byte that is not taken.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = self.limited(context, |inner, context| inner.poll_flush(context));
        if polled.is_ready() {
            self.unread = None;
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.limited(context, |inner, context| inner.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, middleware::from_fn, routing::post};
    use futures::stream;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
        time::{Instant, advance},
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut_and_a_slow_one_is_not() {
        let (ours, mut client) = duplex(8);
        let mut wire = Wire::new(ours);
        let began = Instant::now();
        let failed = wire.write_all(&[0; 9]).await.unwrap_err();
        assert_eq!(
            (failed.kind(), began.elapsed()),
            (io::ErrorKind::TimedOut, REPLY_TIME)
        );
        let (ours, mut slow) = duplex(8);
        let mut wire = Wire::new(ours);
        let reading = async {
            for _ in 0..3 {
                advance(REPLY_TIME / 2).await;
                slow.read_exact(&mut [0; 8]).await.unwrap();
            }
        };
        let writing = async {
            for _ in 0..3 {
                wire.write_all(&[0; 8]).await.unwrap();
                wire.flush().await.unwrap();
            }
        };
        tokio::join!(writing, reading);
        drop(client.read(&mut [0; 8]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_or_is_too_long_is_refused() {
        let site = Router::new()
            .route("/", post(async || "read"))
            .layer(from_fn(whole_body));
        let status = async |body: Body| {
            let request = Request::post("/").body(body).unwrap();
            site.clone().oneshot(request).await.unwrap().status()
        };
        // One byte each second: each comes in time, and all together do not.
        let ticks = stream::unfold((), async |()| {
            sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, std::convert::Infallible>(vec![0]), ()))
        });
        assert_eq!(
            status(Body::from_stream(ticks)).await,
            StatusCode::REQUEST_TIMEOUT
        );
        assert_eq!(status(vec![0; BODY_BYTES].into()).await, StatusCode::OK);
        assert_eq!(
            status(vec![0; BODY_BYTES + 1].into()).await,
            StatusCode::PAYLOAD_TOO_LARGE
        );
    }
}
