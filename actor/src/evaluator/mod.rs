//! The stream of one worker thread to the inference server.
//!
//! The evaluator sends the worker's requests in order and returns replies as they arrive, matched by id. Evaluation has no
//! effect on the server, so requests that were in flight when a stream broke are sent again on the next stream.
//!
//! A stream stays with the server that it was opened to. So every few seconds a worker ends its stream, once every request on it
//! is answered, and opens another. That is how new servers get their share of the load.
//!
//! | module | contents |
//! |---|---|
//! | [`reply`] | checks a reply against its request and decodes it |
//! | [`pending`] | requests in flight: deadlines and attempts |
//! | [`model`] | compares the server's model with the game and its representation |
//! | [`versions`] | model versions, and which of them is current |

mod model;
mod pending;
mod reply;
mod versions;

use std::{convert::Infallible, sync::Arc, time::Duration};

use anyhow::anyhow;
use network::Predictions;
use proto::v1::{EvaluateReply, EvaluateRequest, evaluator_client::EvaluatorClient};
use service::{backoff::Backoff, connect::Link, log_throttle::LogThrottle};
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};

use crate::metrics::Metrics;

pub use model::Expected;
pub use pending::StampedRequest;
use pending::{Due, Pending};
pub use versions::{VersionId, Versions};

/// Longest delay that a server's hint can ask for.
const LONGEST_HINT: Duration = Duration::from_secs(10);

/// Delay of a request that is due while the current stream takes no more requests.
const SOON: Duration = Duration::from_millis(10);

/// The evaluations of one request, checked and decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluatedRequest {
    /// Id of the request.
    pub id: u64,
    /// Version of the model that evaluated the request.
    pub version: VersionId,
    /// Values and priors of all positions, in the order of the request.
    pub predictions: Predictions,
}

/// Time limits and attempts of an evaluator.
#[derive(Clone, Debug)]
pub struct EvaluatorLimits {
    /// Longest time until a request is answered. After that the stream is closed and opened again.
    pub answer: Duration,
    /// Delay before the first retry.
    pub first_retry: Duration,
    /// Longest delay between retries.
    pub longest_retry: Duration,
    /// Longest age of a stream. A stream is replaced at a random age between half of this and all of it.
    pub stream: Duration,
    /// Time for outstanding replies at shutdown.
    pub drain: Duration,
    /// Number of malformed replies to one request after which the actor gives up.
    pub malformed: u32,
}

impl Default for EvaluatorLimits {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            first_retry: Duration::from_millis(50),
            longest_retry: Duration::from_secs(5),
            // Together with the name look-ups, new servers are in use within half a minute.
            stream: Duration::from_secs(18),
            drain: Duration::from_secs(2),
            malformed: 8,
        }
    }
}

/// The client of one worker's stream.
pub struct Evaluator {
    /// Connection to the server.
    pub channel: Link,
    /// Properties that the server's model must have.
    pub expected: Arc<Expected>,
    /// Model versions, shared by all workers.
    pub versions: Arc<Versions>,
    /// Metrics, shared by all workers.
    pub metrics: Arc<Metrics>,
    /// Waiting times.
    pub limits: EvaluatorLimits,
    /// Requests of the worker. The evaluator ends when this is closed.
    pub requests: mpsc::Receiver<StampedRequest>,
    /// Evaluations for the worker. The channel has room for every request that the worker may have in flight.
    pub evaluations: mpsc::Sender<EvaluatedRequest>,
    /// Ends the evaluator.
    pub shutdown: CancellationToken,
    /// Log throttle for an outage of the server, shared by all workers, so that it is logged once for all of them.
    pub outage: Arc<LogThrottle>,
}

/// Reason for the end of a stream.
enum StreamEnd {
    /// The worker or the process stops.
    Done,
    /// The stream failed; another is opened after a delay.
    Broken(Status),
    /// The stream was old and every request on it has been answered; another is opened at once.
    Old,
    /// Another stream would fail as well.
    Fatal(anyhow::Error),
}

impl From<Status> for StreamEnd {
    fn from(status: Status) -> Self {
        Self::Broken(status)
    }
}

impl From<anyhow::Error> for StreamEnd {
    fn from(error: anyhow::Error) -> Self {
        Self::Fatal(error)
    }
}

impl Evaluator {
    /// Keeps a stream open until the worker or the process stops.
    ///
    /// # Errors
    /// Another attempt cannot help: the server refuses the requests permanently, or its model belongs to another game. Temporary failures
    /// are retried and are not errors.
    pub async fn run(self) -> anyhow::Result<()> {
        let limits = &self.limits;
        let backoff = || Backoff::new(limits.first_retry, limits.longest_retry, rand::random());
        let (between_streams, between_requests) = (backoff(), backoff());
        let client = EvaluatorClient::new(self.channel.clone())
            .max_decoding_message_size(service::connect::MAX_MESSAGE_BYTES);
        let mut connection = Connection {
            client,
            pending: Pending::default(),
            retries: between_requests,
            check: None,
            evaluator: self,
        };
        connection.run(between_streams).await
    }
}

type Check = JoinHandle<anyhow::Result<()>>;

struct Connection {
    evaluator: Evaluator,
    client: EvaluatorClient<Link>,
    pending: Pending,
    /// Delays of requests that the server could not evaluate for now.
    retries: Backoff,
    /// Running comparison of a new model version with the expected model.
    check: Option<Check>,
}

impl Connection {
    async fn run(&mut self, mut backoff: Backoff) -> anyhow::Result<()> {
        loop {
            let status = match self.stream(&mut backoff).await {
                StreamEnd::Done => return Ok(()),
                StreamEnd::Old => continue,
                StreamEnd::Fatal(error) => return Err(error),
                StreamEnd::Broken(status) => status,
            };
            if is_final(status.code()) {
                return Err(refused(status.code(), status.message()));
            }
            if !self.evaluator.outage.allows() {
                // This error was logged a moment ago.
            } else if status.code() == Code::NotFound {
                tracing::warn!(
                    model = self.evaluator.expected.model,
                    reason = status.message(),
                    "the inference server does not have the model yet; self-play begins when it does (the first checkpoint \
                     creates `latest`, the rating role creates `best`)"
                );
            } else {
                tracing::warn!(
                    code = ?status.code(),
                    reason = status.message(),
                    "the inference server does not answer, trying again"
                );
            }
            self.evaluator.metrics.reconnects.add(1);
            if !backoff.wait(&self.evaluator.shutdown).await {
                return Ok(());
            }
        }
    }

    /// Runs one stream from its opening to its end. Resets `backoff` when the server answers.
    async fn stream(&mut self, backoff: &mut Backoff) -> StreamEnd {
        let shutdown = self.evaluator.shutdown.clone();
        let opened = tokio::select! {
            biased;
            () = shutdown.cancelled() => return StreamEnd::Done,
            opened = self.open() => opened,
        };
        let (requests, replies) = match opened {
            Ok(opened) => opened,
            Err(end) => return end,
        };
        let metrics = Arc::clone(&self.evaluator.metrics);
        metrics.streams.add(1);
        let Err(end) = self.exchange(requests, replies, backoff).await;
        metrics.streams.subtract(1);
        end
    }

    /// Checks the model, opens a stream, and queues the requests that are still in flight.
    async fn open(&mut self) -> Result<(mpsc::Sender<EvaluateRequest>, Streaming<EvaluateReply>), StreamEnd> {
        let limit = self.evaluator.limits.answer;
        let expected = Arc::clone(&self.evaluator.expected);
        let label = expected.model.clone();
        let checked = expected.check(&mut self.client, label, limit).await?;
        self.evaluator.versions.describe(checked?);
        let (requests, outbound) = mpsc::channel(self.evaluator.evaluations.max_capacity() + 1);
        for pending in self.pending.restart(Instant::now() + limit) {
            self.evaluator.metrics.request_retries.add(1);
            // The channel has room for all requests that a worker may have in flight.
            let _ = requests.try_send(EvaluateRequest::clone(&pending.request));
        }
        let opening = self.client.evaluate_stream(ReceiverStream::new(outbound));
        let opened = tokio::time::timeout(limit, opening)
            .await
            .map_err(|_| Status::deadline_exceeded("the stream was not opened in time"))?;
        Ok((requests, opened?.into_inner()))
    }

    async fn exchange(
        &mut self,
        requests: mpsc::Sender<EvaluateRequest>,
        mut replies: Streaming<EvaluateReply>,
        backoff: &mut Backoff,
    ) -> Result<Infallible, StreamEnd> {
        let shutdown = self.evaluator.shutdown.clone();
        let most = self.evaluator.limits.stream;
        // Random, so that the workers do not replace their streams at the same time.
        let age = most.mul_f64(rand::random_range(0.5..=1.0));
        let mut is_old = std::pin::pin!(tokio::time::sleep(age));
        // `None` once the stream is old.
        let mut requests = Some(requests);
        loop {
            let due = self.pending.next_due();
            tokio::select! {
                biased;
                () = shutdown.cancelled() => {
                    self.drain(requests, replies).await;
                    return Err(StreamEnd::Done);
                }
                reply = replies.message() => match reply? {
                    Some(reply) => {
                        self.take(reply).await?;
                        backoff.reset();
                    }
                    None if requests.is_none() => return Err(StreamEnd::Old),
                    None => return Err(Status::unavailable("the server ended the stream").into()),
                },
                () = &mut is_old, if requests.is_some() => requests = None,
                request = self.evaluator.requests.recv(), if requests.is_some() => {
                    let request = request.ok_or(StreamEnd::Done)?;
                    let message = EvaluateRequest::clone(&request.request);
                    self.pending.add(request, Instant::now() + self.evaluator.limits.answer);
                    send(&requests, message).await?;
                }
                checked = finished(&mut self.check) => checked?,
                due = wait_for(due) => match due {
                    Due::TooLate => {
                        return Err(Status::deadline_exceeded("a request was not answered in time").into());
                    }
                    // The next stream, which is opened soon, takes the request.
                    Due::SendAgain(id) if requests.is_none() => self.pending.delay(id, Instant::now() + SOON),
                    Due::SendAgain(id) => {
                        let deadline = Instant::now() + self.evaluator.limits.answer;
                        let Some(pending) = self.pending.send_again(id, deadline) else {
                            continue;
                        };
                        self.evaluator.metrics.request_retries.add(1);
                        let message = EvaluateRequest::clone(&pending.request);
                        send(&requests, message).await?;
                    }
                },
            }
        }
    }

    /// Handles one reply.
    async fn take(&mut self, reply: EvaluateReply) -> Result<(), StreamEnd> {
        let metrics = Arc::clone(&self.evaluator.metrics);
        let Some(pending) = self.pending.get(reply.id).cloned() else {
            metrics.malformed_replies.add(1);
            tracing::warn!(
                id = reply.id,
                "the inference server replied to an unknown request"
            );
            return Ok(());
        };
        if let Some(error) = &reply.error {
            let code = Code::from(error.code);
            if is_final(code) {
                return Err(refused(code, &error.message).into());
            }
            tracing::debug!(?code, message = %error.message, "a request failed and is sent again");
            let delay = hinted(self.retries.next_delay(), error.retry_after_ms);
            self.pending.delay(reply.id, Instant::now() + delay);
            return Ok(());
        }
        let mut priors = Vec::with_capacity(pending.request.legal_actions.len());
        if let Err(malformed) = reply::check(&reply, &pending.request, &mut priors) {
            metrics.malformed_replies.add(1);
            tracing::error!(%malformed, version = reply.version, "a reply is malformed, the request is sent again");
            let attempts = self.pending.count_malformed(reply.id);
            if attempts >= self.evaluator.limits.malformed {
                let error = anyhow!("the inference server keeps sending malformed replies: {malformed}");
                return Err(error.into());
            }
            self.pending
                .delay(reply.id, Instant::now() + self.retries.next_delay());
            return Ok(());
        }
        self.retries.reset();
        if self.evaluator.outage.reset() {
            tracing::info!(version = reply.version, "the inference server answers again");
        }
        let is_new = !self.evaluator.versions.is_known(&reply.version);
        let version = self.evaluator.versions.answered(&reply.version, pending.stamp)?;
        if is_new {
            self.check_version(reply.version.clone());
        }
        if let Some(took) = self.pending.remove(reply.id) {
            metrics.request_answered(took, reply.values.len());
        }
        let evaluated = EvaluatedRequest {
            id: reply.id,
            version,
            predictions: Predictions {
                values: reply.values,
                priors,
            },
        };
        // The channel always has room; sending fails only if the worker has ended.
        let sent = self.evaluator.evaluations.send(evaluated).await;
        sent.map_err(|_| StreamEnd::Done)
    }

    /// Starts to compare a new version with the expected model, because a label may have moved to a model of another game.
    fn check_version(&mut self, version: String) {
        let expected = Arc::clone(&self.evaluator.expected);
        let versions = Arc::clone(&self.evaluator.versions);
        let mut client = self.client.clone();
        let timeout = self.evaluator.limits.answer;
        self.check = Some(tokio::spawn(async move {
            // If the server does not describe the version now, the check when the next stream is opened repeats the request.
            match expected.check(&mut client, version, timeout).await {
                Ok(checked) => checked.map(|model| versions.describe(model)),
                Err(_) => Ok(()),
            }
        }));
    }

    /// Waits a moment for the replies to requests that the server has begun.
    async fn drain(
        &mut self,
        requests: Option<mpsc::Sender<EvaluateRequest>>,
        mut replies: Streaming<EvaluateReply>,
    ) {
        drop(requests);
        let rest = async { while let Ok(Some(_)) = replies.message().await {} };
        let _ = tokio::time::timeout(self.evaluator.limits.drain, rest).await;
    }
}

/// Sends a message. Fails if the stream takes no more.
async fn send(
    requests: &Option<mpsc::Sender<EvaluateRequest>>,
    message: EvaluateRequest,
) -> Result<(), Status> {
    let closed = || Status::unavailable("the stream was closed");
    let requests = requests.as_ref().ok_or_else(closed)?;
    requests.send(message).await.map_err(|_| closed())
}

/// Returns the delay of a retry: the server's hint, at most [`LONGEST_HINT`], plus the random backoff, so that not all clients
/// come back at the same time.
fn hinted(backoff: Duration, retry_after_ms: Option<u32>) -> Duration {
    match retry_after_ms {
        Some(hint) => {
            let hint = Duration::from_millis(hint.into()).min(LONGEST_HINT);
            hint + backoff.min(hint)
        }
        None => backoff,
    }
}

fn refused(code: Code, message: &str) -> anyhow::Error {
    anyhow!(
        "the inference server refuses this actor's requests ({code:?}: {message}); \
         does its model belong to the same game and options?"
    )
}

/// True if another attempt cannot help: the request is invalid, the server is not an evaluator, or it denies access.
///
/// `NotFound` is not final, because a model that is missing may still be published.
fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidArgument
            | Code::OutOfRange
            | Code::FailedPrecondition
            | Code::Unimplemented
            | Code::Unauthenticated
            | Code::PermissionDenied
    )
}

/// Completes when the check does. Never completes without a check.
async fn finished(check: &mut Option<Check>) -> anyhow::Result<()> {
    match check {
        Some(running) => {
            let checked = running.await;
            *check = None;
            checked.unwrap_or(Ok(()))
        }
        None => std::future::pending().await,
    }
}

async fn wait_for(due: Option<(Instant, Due)>) -> Due {
    match due {
        Some((at, due)) => {
            tokio::time::sleep_until(at).await;
            due
        }
        None => std::future::pending().await,
    }
}
