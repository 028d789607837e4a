//! Requests that stop in the middle of their message.

use std::{
    future::{Future as _, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

use http_body::{Body as _, Frame};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::{
    Status,
    body::Body,
    codegen::{Bytes, Service as _, http},
    transport::Channel,
};

/// Sizes of the frames, in bytes.
const FRAME: usize = 16 << 10;

/// Body with the header of a message, a part of the message, and no end before the call is given up.
struct HalfSent {
    header: Option<Bytes>,
    left: usize,
    given_up: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl http_body::Body for HalfSent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(header) = self.header.take() {
            return Poll::Ready(Some(Ok(Frame::data(header))));
        }
        if self.left == 0 {
            let given_up = self.given_up.as_mut().poll(context);
            return given_up.map(|()| Some(Err(Status::cancelled("given up"))));
        }
        let length = self.left.min(FRAME);
        self.left -= length;
        Poll::Ready(Some(Ok(Frame::data(vec![1; length].into()))))
    }
}

/// Calls `path` with `sent` bytes of a message of `length` bytes, and returns the status of the call's end.
pub async fn send(mut channel: Channel, path: &str, length: u32, sent: usize) -> Status {
    let mut header = vec![0];
    header.extend_from_slice(&length.to_be_bytes());
    // The transport continues to send a body although nobody waits for the reply any more.
    let given_up = CancellationToken::new();
    let body = HalfSent {
        header: Some(header.into()),
        left: sent,
        given_up: Box::pin(given_up.clone().cancelled_owned()),
    };
    let _giving_up = given_up.drop_guard();
    let mut request = http::Request::post(path).body(Body::new(body)).unwrap();
    let grpc = http::HeaderValue::from_static("application/grpc");
    request.headers_mut().insert("content-type", grpc);
    request
        .headers_mut()
        .insert("te", http::HeaderValue::from_static("trailers"));
    if let Err(error) = poll_fn(|context| channel.poll_ready(context)).await {
        return Status::from_error(Box::new(error));
    }
    let mut reply = match channel.call(request).await {
        Ok(reply) => reply,
        Err(error) => return Status::from_error(Box::new(error)),
    };
    if let Some(status) = Status::from_header_map(reply.headers()) {
        return status;
    }
    let body = reply.body_mut();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
        match frame.map(Frame::into_trailers) {
            Ok(Ok(trailers)) => return Status::from_header_map(&trailers).unwrap(),
            Ok(Err(_)) => {}
            Err(status) => return status,
        }
    }
    Status::unknown("the reply has no status")
}
