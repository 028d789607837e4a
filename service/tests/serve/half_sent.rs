//! Requests that stop in the middle of their message.

use std::{future::poll_fn, pin::Pin};

use futures::{StreamExt as _, stream};
use http_body::{Body as _, Frame};
use http_body_util::StreamBody;
use tokio_util::sync::CancellationToken;
use tonic::{
    Status,
    body::Body,
    codegen::{Bytes, Service as _, http},
    transport::Channel,
};

/// Calls `path` with `sent` bytes of a message of `length` bytes, and returns the status of the call's end.
pub async fn send(mut channel: Channel, path: &str, length: u32, sent: usize) -> Status {
    let header = [&[0], &length.to_be_bytes()[..]].concat();
    // The transport continues to send a body although nobody waits for the reply any more.
    let given_up = CancellationToken::new();
    let end = stream::once(given_up.clone().cancelled_owned()).map(|()| Err(Status::cancelled("given up")));
    let parts = [header, vec![1; sent]]
        .into_iter()
        .filter(|part| !part.is_empty());
    let frames = parts.map(|part| Ok(Frame::data(Bytes::from(part))));
    let body = StreamBody::new(stream::iter(frames).chain(end));
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
