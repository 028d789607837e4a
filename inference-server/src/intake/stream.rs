//! One actor's stream: requests in, answers out in the order they are computed.
//!
//! A task reads the requests; the answers are sent by whoever computes them. The task stops reading while as many
//! answers are on their way as a stream may have, or as many bytes of them as its connection may hold, so a client that
//! does not read cannot fill the memory: HTTP/2's flow control then holds back the client.

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
    intake::Intake,
    requests::{
        memory::{Charge, Unread},
        refusal::Refusal,
        request::{Asked, Caller, ClientId},
        response::{Evaluation, Reply, ReplyTo},
    },
};

/// Requests of one stream that may be queued, computed, or answered but not yet sent.
pub const MAX_IN_FLIGHT: usize = 128;

type Sender = mpsc::UnboundedSender<Reply>;

/// Why a stream ended, where its client did not end it.
pub(crate) type End = Arc<Mutex<Option<Status>>>;

/// Begins to read `requests`, and gives the stream of answers.
pub(crate) fn open(
    intake: Arc<Intake>,
    caller: Caller,
    requests: Streaming<EvaluateRequest>,
) -> Unread<Replies> {
    // Bounded by the permits: every answer belongs to a request that has one.
    let (sender, answers) = mpsc::unbounded_channel();
    let (permits, end) = (Arc::new(Semaphore::new(MAX_IN_FLIGHT)), End::default());
    intake.metrics.streams(1.0);
    let replies = Replies {
        answers,
        permits: permits.clone(),
        intake: intake.clone(),
        client: caller.client,
        end: end.clone(),
        has_ended: false,
    };
    tokio::spawn(async move {
        let ended = read(&intake, caller, requests, &sender, &permits).await;
        // Before the channel is closed: who sees that looks here.
        *end.lock() = ended;
        drop(sender);
    });
    Unread::new(replies)
}

/// Reads until the client has ended its side, is gone, or the process is asked to stop. Gives what was wrong with what cannot
/// be read: the transport's own words, for a message above the limit or one that is none.
async fn read(
    intake: &Arc<Intake>,
    caller: Caller,
    mut requests: Streaming<EvaluateRequest>,
    sender: &Sender,
    permits: &Semaphore,
) -> Option<Status> {
    // Made once: registering with what all streams share costs more than reading a request.
    let stopping = intake.stopping.cancelled();
    let closed = sender.closed();
    tokio::pin!(stopping, closed);
    let account = intake.unread.account(caller.client);
    while !intake.stopping.is_cancelled() {
        let next = async {
            // Given back when the answer is sent. They are never closed.
            if let Ok(permit) = permits.acquire().await {
                permit.forget();
            }
            requests.message().await
        };
        let request = tokio::select! {
            biased;
            // What has arrived is taken without a look at the others; a stream that never waits sees them above.
            request = next => request,
            () = &mut stopping => return None,
            () = &mut closed => return None,
        };
        let mut request = match request {
            Ok(Some(request)) => request,
            Ok(None) => return None,
            Err(status) => return Some(status),
        };
        let (id, model) = (request.id, std::mem::take(&mut request.model));
        let asked = Asked::from(request);
        // Its answer has no logits, so the number of actions does not matter.
        let charging = account.charge(asked.bytes(0));
        let charge = tokio::select! {
            biased;
            charge = charging => charge,
            () = &mut stopping => {
                ReplyTo::stream(id, sender.clone(), None).send(Err(Refusal::Stopping));
                return None;
            }
            () = &mut closed => return None,
        };
        let reply_to = ReplyTo::stream(id, sender.clone(), charge);
        if let Some(loading) = intake.submit(caller.clone(), &model, asked, reply_to) {
            // Bounded by the permits too. Others of this stream go on meanwhile.
            tokio::spawn(loading);
        }
    }
    None
}

/// The answers of one stream. It ends when the reading task has ended and every request it took is answered.
pub(crate) struct Replies {
    answers: mpsc::UnboundedReceiver<Reply>,
    permits: Arc<Semaphore>,
    intake: Arc<Intake>,
    client: ClientId,
    end: End,
    has_ended: bool,
}

impl Stream for Replies {
    type Item = (Result<EvaluateReply, Status>, Option<Charge>);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let item = match ready!(self.answers.poll_recv(context)) {
            Some(Reply { id, answer, charge }) => {
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

/// What the client of a stream is told last.
pub(crate) fn last(intake: &Intake, end: &End) -> Option<Status> {
    let stopping = || intake.stopping.is_cancelled().then(|| Refusal::Stopping.into());
    end.lock().take().or_else(stopping)
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.intake.metrics.streams(-1.0);
        self.answers.close();
        self.intake.batcher.sweep(self.client);
    }
}
