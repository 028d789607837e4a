//! The body of a reply. The call is open, and charged, until its reply has been sent. A call whose request was refused ends with
//! the refusal.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http_body::{Frame, SizeHint};
use tonic::{
    Status,
    body::Body,
    codegen::{Bytes, http::HeaderMap},
};

use super::limits::Call;

/// Body of a reply.
#[derive(Default)]
pub struct ReplyBody {
    body: Body,
    call: Option<Arc<Call>>,
}

impl ReplyBody {
    pub(super) fn new(body: Body, call: Arc<Call>) -> Self {
        Self {
            body,
            call: Some(call),
        }
    }
}

impl http_body::Body for ReplyBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let refusal = self.call.as_ref().and_then(|call| call.refusal());
        match (&polled, refusal) {
            (Poll::Ready(Some(Ok(frame))), Some(status)) if frame.is_trailers() => {
                let mut trailers = HeaderMap::new();
                status.add_header(&mut trailers)?;
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
            _ => polled,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
