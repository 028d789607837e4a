//! The body of a reply. The call is open, and charged, until its reply has been sent. A call whose request was refused ends with
//! the refusal, and a call whose token ends, ends at once.

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

use super::{limits::Call, token_end::TokenEnd};

/// Body of a reply.
#[derive(Default)]
pub struct ReplyBody {
    body: Body,
    call: Option<Arc<Call>>,
    token_end: TokenEnd,
}

impl ReplyBody {
    pub(super) fn new(body: Body, call: Arc<Call>, token_end: TokenEnd) -> Self {
        Self {
            body,
            call: Some(call),
            token_end,
        }
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
        if let Poll::Ready(status) = self.token_end.poll(context) {
            *self = Self::default();
            return Poll::Ready(Some(trailers(&status)));
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let refusal = self.call.as_ref().and_then(|call| call.refusal());
        match (&polled, refusal) {
            (Poll::Ready(Some(Ok(frame))), Some(status)) if frame.is_trailers() => {
                Poll::Ready(Some(trailers(status)))
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
