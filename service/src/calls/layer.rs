//! The layer around a server's services: checks the token of each call, counts the call, and limits its request.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::{BoxFuture, Either, Ready, ready};
use tonic::{body::Body, codegen::http};
use tower::{Layer, Service};

use super::{
    bodies::{ReplyBody, RequestBody, poll_token_end, token_end},
    limits::OpenCalls,
    replies::Replies,
};
use crate::security::{guard::Guard, known::Held};

/// Layer of a server. Clones share the limits.
#[derive(Clone, Debug)]
pub struct CallLayer {
    pub(crate) guard: Guard,
    pub(crate) calls: Arc<OpenCalls>,
}

impl<S> Layer<S> for CallLayer {
    type Service = LimitedCalls<S>;

    fn layer(&self, inner: S) -> Self::Service {
        LimitedCalls {
            layer: self.clone(),
            inner,
        }
    }
}

/// A service whose calls are checked and limited.
#[derive(Clone, Debug)]
pub struct LimitedCalls<S> {
    layer: CallLayer,
    inner: S,
}

impl<S> Service<http::Request<Body>> for LimitedCalls<S>
where
    S: Service<http::Request<RequestBody>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = http::Response<ReplyBody>;
    type Error = S::Error;
    type Future =
        Either<BoxFuture<'static, Result<Self::Response, S::Error>>, Ready<Result<Self::Response, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let CallLayer { guard, calls } = &self.layer;
        let authorization = request.headers().get(http::header::AUTHORIZATION);
        let begun = guard
            .check(request.uri().path(), authorization)
            .and_then(|(method, held)| {
                let call = calls.begin(
                    method,
                    request.extensions().get(),
                    held.as_ref().map(Held::digest),
                )?;
                Ok((method, held, Arc::new(call)))
            });
        let (method, held, call) = match begun {
            Ok(begun) => begun,
            Err(status) => return Either::Right(ready(Ok(status.into_http()))),
        };
        request.extensions_mut().insert(Replies::new(call.clone()));
        let mut reply_end = token_end(held.clone());
        let request = request.map(|body| RequestBody::new(body, call.clone(), method, token_end(held)));
        let replying = self.inner.call(request);
        Either::Left(Box::pin(async move {
            tokio::select! {
                biased;
                reply = replying => Ok(reply?.map(|body| ReplyBody::new(body, call, reply_end))),
                status = poll_fn(|context| poll_token_end(&mut reply_end, context)) => Ok(status.into_http()),
            }
        }))
    }
}
