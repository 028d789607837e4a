//! One stream of an actor: requests in, answers out in the order in which they are computed.
//!
//! A task reads the requests; finished batches send the answers. The task stops reading while [`MAX_IN_FLIGHT`] requests
//! are unanswered, or while the connection holds its limit of unread bytes. HTTP/2 flow control then holds back the client,
//! so a client that does not read its answers cannot fill the memory.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use parking_lot::Mutex;
use proto::v1::{EvaluateReply, EvaluateRequest};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::{
    batching::job::{Evaluation, JobReply, ReplyTo},
    intake::{
        Intake,
        memory::{ChargedStream, MemoryCharge},
        refusal::Refusal,
        request::{Caller, ClientId, EvaluationRequest},
    },
};

/// Largest number of requests of one stream that are queued, computed, or answered but not yet sent.
pub const MAX_IN_FLIGHT: usize = 128;

type Sender = mpsc::UnboundedSender<JobReply>;

/// Status with which a stream ended, unless its client ended it.
pub(crate) type End = Arc<Mutex<Option<Status>>>;

/// Starts the task that reads `requests`, and returns the stream of answers.
pub(crate) fn open(
    intake: Arc<Intake>,
    caller: Caller,
    requests: Streaming<EvaluateRequest>,
) -> ChargedStream<ReplyStream> {
    // The permits bound the channel: every answer belongs to a request that holds one.
    let (sender, answers) = mpsc::unbounded_channel();
    let (permits, end) = (Arc::new(Semaphore::new(MAX_IN_FLIGHT)), End::default());
    intake.metrics.streams.increment(1.0);
    let replies = ReplyStream {
        answers,
        permits: permits.clone(),
        intake: intake.clone(),
        client: caller.client,
        end: end.clone(),
        has_ended: false,
    };
    tokio::spawn(async move {
        let ended = read(&intake, caller, requests, &sender, &permits).await;
        // Set before the channel closes: the reply stream reads it when the channel ends.
        *end.lock() = ended;
        drop(sender);
    });
    ChargedStream::new(replies)
}

/// Reads requests until the client ends its side or disconnects, or until shutdown. Returns the transport's status if a
/// message is too large or malformed.
async fn read(
    intake: &Arc<Intake>,
    caller: Caller,
    mut requests: Streaming<EvaluateRequest>,
    sender: &Sender,
    permits: &Semaphore,
) -> Option<Status> {
    // Made once: registering with the shared token costs more than reading a request.
    let shutdown = intake.shutdown.cancelled();
    let closed = sender.closed();
    tokio::pin!(shutdown, closed);
    let account = intake.unread.connection(caller.client);
    while !intake.shutdown.is_cancelled() {
        let next = async {
            // The permit returns when the answer is sent. The semaphore is never closed.
            if let Ok(permit) = permits.acquire().await {
                permit.forget();
            }
            requests.message().await
        };
        let request = tokio::select! {
            biased;
            // A request that has arrived is taken first. The loop condition sees a shutdown of a busy stream.
            request = next => request,
            () = &mut shutdown => return None,
            () = &mut closed => return None,
        };
        let mut request = match request {
            Ok(Some(request)) => request,
            Ok(None) => return None,
            Err(status) => return Some(status),
        };
        let (id, model) = (request.id, std::mem::take(&mut request.model));
        let evaluation = EvaluationRequest::from(request);
        // The answer has no logits, so the number of actions does not matter.
        let charging = account.charge(evaluation.bytes(0));
        let charge = tokio::select! {
            biased;
            charge = charging => charge,
            () = &mut shutdown => {
                ReplyTo::new(id, sender.clone(), None).send(Err(Refusal::Stopping));
                return None;
            }
            () = &mut closed => return None,
        };
        let reply_to = ReplyTo::new(id, sender.clone(), charge);
        intake.submit(caller.clone(), &model, evaluation, reply_to);
    }
    None
}

/// Answers of one stream. The stream ends when the reading task has ended and all its requests are answered.
pub(crate) struct ReplyStream {
    answers: mpsc::UnboundedReceiver<JobReply>,
    permits: Arc<Semaphore>,
    intake: Arc<Intake>,
    client: ClientId,
    end: End,
    has_ended: bool,
}

impl Stream for ReplyStream {
    type Item = (Result<EvaluateReply, Status>, Option<MemoryCharge>);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let item = match ready!(self.answers.poll_recv(context)) {
            Some(JobReply { id, answer, charge }) => {
                self.permits.add_permits(1);
                let reply = answer.map(|evaluation: Evaluation| evaluation.into_reply(id));
                let reply = reply.unwrap_or_else(|refusal| {
                    self.intake.metrics.refused(refusal.code());
                    refusal.in_band(id)
                });
                Some((Ok(reply), charge))
            }
            None => {
                self.has_ended = true;
                last(&self.intake, &self.end).map(|status| (Err(status), None))
            }
        };
        Poll::Ready(item)
    }
}

/// Returns the final status of a stream, if its client did not end it.
pub(crate) fn last(intake: &Intake, end: &End) -> Option<Status> {
    let refused = || intake.shutdown.is_cancelled().then(|| Refusal::Stopping.into());
    end.lock().take().or_else(refused)
}

impl Drop for ReplyStream {
    fn drop(&mut self) {
        self.intake.metrics.streams.decrement(1.0);
        self.answers.close();
        self.intake.batcher.sweep(self.client);
    }
}
