//! The bodies of a call. A request has limits: the size of a message, the bytes of the server's requests, the time, and the token. The
//! call is open, and charged, until its reply has been sent. A reply is not made while there is no room for it. A call whose request was refused ends with the refusal, and a call whose
//! token ends, ends at once.

use std::{
    future::Future as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::future::{BoxFuture, FutureExt as _};
use http_body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::{
    Status,
    body::Body,
    codegen::{Bytes, http::HeaderMap},
};

use super::{
    framing::{Framing, TooLong},
    limits::Call,
    replies,
};
use crate::security::{known::Held, methods::Method};

/// The end of the token of a call: the status with which the call ends. `None`: the call has no token.
pub(super) type TokenEnd = Option<BoxFuture<'static, Status>>;

/// Waits for the end of the token `held`.
pub(super) fn token_end(held: Option<Held>) -> TokenEnd {
    held.map(|held| held.ended().boxed())
}

/// Returns the status with which the call ends. Do not poll again after that.
pub(super) fn poll_token_end(end: &mut TokenEnd, context: &mut Context<'_>) -> Poll<Status> {
    end.as_mut()
        .map_or(Poll::Pending, |end| end.as_mut().poll(context))
}

/// Body of a request. A limit that is exceeded is an error of the body, which becomes the status of the call.
pub struct RequestBody {
    body: Body,
    call: Arc<Call>,
    method: Method,
    framing: Framing,
    token_end: TokenEnd,
    /// Time limit of the request or of the message that is arriving. Set when data is first waited for.
    limit: Option<Pin<Box<Sleep>>>,
}

impl RequestBody {
    pub(super) fn new(body: Body, call: Arc<Call>, method: Method, token_end: TokenEnd) -> Self {
        Self {
            body,
            call,
            method,
            framing: Framing::default(),
            token_end,
            limit: None,
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), Status> {
        let limit = self.method.max_message;
        let read = self
            .framing
            .read(bytes, limit)
            .map_err(|TooLong(length)| self.call.too_long(length, limit))?;
        if read.has_completed && self.method.has_request_stream {
            self.limit = None;
        }
        self.call.charge(read.largest)
    }

    /// Returns ready when the time for the data that is waited for is over.
    fn poll_limit(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.method.has_request_stream && !self.framing.is_within_message() {
            return Poll::Pending;
        }
        let time = self.call.request_time();
        let limit = self.limit.get_or_insert_with(|| Box::pin(sleep(time)));
        limit.as_mut().poll(context)
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Poll::Ready(status) = poll_token_end(&mut self.token_end, context) {
            return Poll::Ready(Some(Err(self.call.end(status))));
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let read = frame.data_ref().map_or(Ok(()), |bytes| self.read(bytes));
                Poll::Ready(Some(read.map(|()| frame)))
            }
            Poll::Ready(other) => Poll::Ready(other),
            Poll::Pending => {
                ready!(self.poll_limit(context));
                Poll::Ready(Some(Err(self.call.too_slow())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Body of a reply.
#[derive(Default)]
pub struct ReplyBody {
    body: Body,
    call: Option<Arc<Call>>,
    token_end: TokenEnd,
    /// Waits for room for the next frame.
    room: Option<BoxFuture<'static, ()>>,
}

impl ReplyBody {
    pub(super) fn new(body: Body, call: Arc<Call>, token_end: TokenEnd) -> Self {
        Self {
            body,
            call: Some(call),
            token_end,
            room: None,
        }
    }

    /// Returns ready when the next frame may be made.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.room.is_none() {
            match &self.call {
                Some(call) if !call.has_reply_room() => self.room = Some(call.clone().reply_room().boxed()),
                _ => return Poll::Ready(()),
            }
        }
        if let Some(room) = &mut self.room {
            ready!(room.as_mut().poll(context));
        }
        self.room = None;
        Poll::Ready(())
    }
}

fn trailers(status: &Status) -> Result<Frame<Bytes>, Status> {
    let mut trailers = HeaderMap::new();
    status.add_header(&mut trailers)?;
    Ok(Frame::trailers(trailers))
}

impl http_body::Body for ReplyBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Poll::Ready(status) = poll_token_end(&mut self.token_end, context) {
            *self = Self::default();
            return Poll::Ready(Some(trailers(&status)));
        }
        ready!(self.poll_room(context));
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let refusal = self.call.as_ref().and_then(|call| call.refusal());
        match (&polled, refusal) {
            (Poll::Ready(Some(Ok(frame))), Some(status)) if frame.is_trailers() => {
                Poll::Ready(Some(trailers(status)))
            }
            _ => match &self.call {
                None => polled,
                Some(call) => polled.map_ok(|frame| frame.map_data(|bytes| replies::charged(call, bytes))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
