//! [`TokenEnd`]: polls for the end of the token of a call.

use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt as _};
use tonic::Status;

use crate::security::known::Held;

/// The end of the token of a call. It never comes for a call without a token.
#[derive(Default)]
pub(super) struct TokenEnd {
    held: Option<Held>,
    ended: Option<BoxFuture<'static, Status>>,
}

impl TokenEnd {
    pub(super) fn of(held: Option<Held>) -> Self {
        Self { held, ended: None }
    }

    /// Returns the status with which the call ends. Do not poll again after that.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        if let Some(held) = self.held.take() {
            self.ended = Some(held.ended().boxed());
        }
        match &mut self.ended {
            Some(ended) => ended.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}
