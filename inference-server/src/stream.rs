//! One actor's stream: requests in, answers out in the order they are computed.
//!
//! A task reads the requests; the answers are sent by whoever computes them. The task stops reading while as many
//! answers are on their way as a stream may have, so a client that does not read cannot fill the memory: HTTP/2's flow
//! control then holds back the client.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use proto::v1::{EvaluateReply, EvaluateRequest};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::{
    intake::Intake,
    job::{Answer, Caller, ClientId, Evaluation, ReplyTo},
    refusal::Refusal,
};

/// Requests of one stream that may be queued, computed, or answered but not yet sent.
pub const MAX_IN_FLIGHT: usize = 128;

type Sender = mpsc::UnboundedSender<(u64, Answer)>;

/// Begins to read `requests`, and gives the stream of answers.
pub(crate) fn open(intake: Arc<Intake>, caller: Caller, requests: Streaming<EvaluateRequest>) -> Replies {
    // Bounded by the permits: every answer belongs to a request that has one.
    let (sender, answers) = mpsc::unbounded_channel();
    let permits = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
    intake.metrics.streams(1.0);
    let replies = Replies {
        answers,
        permits: permits.clone(),
        intake: intake.clone(),
        client: caller.client,
        has_ended: false,
    };
    tokio::spawn(async move { read(&intake, caller, requests, &sender, &permits).await });
    replies
}

/// Reads until the client has ended its side, is gone, or the process is asked to stop.
async fn read(
    intake: &Arc<Intake>,
    caller: Caller,
    mut requests: Streaming<EvaluateRequest>,
    sender: &Sender,
    permits: &Semaphore,
) {
    // Made once: registering with what all streams share costs more than reading a request.
    let stopping = intake.stopping.cancelled();
    let closed = sender.closed();
    tokio::pin!(stopping, closed);
    while !intake.stopping.is_cancelled() {
        let next = async {
            // Given back when the answer is sent.
            permits.acquire().await.ok()?.forget();
            requests.message().await.ok().flatten()
        };
        let request = tokio::select! {
            biased;
            // What has arrived is taken without a look at the others; a stream that never waits sees them above.
            request = next => request,
            () = &mut stopping => return,
            () = &mut closed => return,
        };
        let Some(mut request) = request else { return };
        let reply_to = ReplyTo::Stream(request.id, sender.clone());
        let model = std::mem::take(&mut request.model);
        if let Some(loading) = intake.submit(caller.clone(), &model, request.into(), reply_to) {
            // Bounded by the permits too. Others of this stream go on meanwhile.
            tokio::spawn(loading);
        }
    }
}

/// The answers of one stream. It ends when the reading task has ended and every request it took is answered.
pub(crate) struct Replies {
    answers: mpsc::UnboundedReceiver<(u64, Answer)>,
    permits: Arc<Semaphore>,
    intake: Arc<Intake>,
    client: ClientId,
    has_ended: bool,
}

impl Stream for Replies {
    type Item = Result<EvaluateReply, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let item = match ready!(self.answers.poll_recv(context)) {
            Some((id, answer)) => {
                self.permits.add_permits(1);
                let reply = answer.map(|evaluation: Evaluation| evaluation.into_reply(id));
                Some(Ok(reply.unwrap_or_else(|refusal| refusal.in_band(id))))
            }
            None => {
                self.has_ended = true;
                let is_stopping = self.intake.stopping.is_cancelled();
                is_stopping.then(|| Err(Refusal::Stopping.into()))
            }
        };
        Poll::Ready(item)
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.intake.metrics.streams(-1.0);
        self.answers.close();
        self.intake.batcher.sweep(self.client);
    }
}
