//! The stream of one worker thread to the inference server.
//!
//! Requests of the worker go out as they come; answers go back as they come, matched by id. Evaluation has no
//! effect on the server, so whatever was in flight when a stream breaks is simply sent again on the next one.
//!
//! A stream stays with the server that it was opened to. So every few seconds a worker ends its stream, once everything on it is
//! answered, and opens another: servers that joined get their share, and those that got too many streams lose some.
//!
//! | module | what it is for |
//! |---|---|
//! | [`reply`] | checks an answer against its request and unpacks it |
//! | [`pending`] | what is in flight: deadlines, attempts |
//! | [`model`] | is the server's model one for this game and representation? |
//! | [`verdict`] | which errors pass with time and which never will |

mod model;
mod pending;
mod reply;
mod verdict;
mod versions;

use std::{sync::Arc, time::Duration};

use proto::v1::{EvaluateReply, EvaluateRequest, evaluator_client::EvaluatorClient};
use service::{backoff::Backoff, connect::Link};
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};

use crate::{log_throttle::LogThrottle, metrics::Metrics};

use pending::{Due, Pending};
pub use versions::{TooManyVersions, VersionId, Versions};

pub use model::{Expected, WrongModel};

/// A server that asks for more patience than this is not believed.
const LONGEST_HINT: Duration = Duration::from_secs(10);

/// A request that is due while no stream takes it is looked at again after this.
const SOON: Duration = Duration::from_millis(10);

/// A request of a worker. Ids ascend.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The message; the worker keeps it too, to know what was asked.
    pub request: Arc<EvaluateRequest>,
    /// Orders requests over all workers, see [`Versions::stamp`].
    pub stamp: u64,
}

/// The answer to a request, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The request's id.
    pub id: u64,
    /// The model that answered.
    pub version: VersionId,
    /// One value for each position, from its mover's point of view.
    pub values: Vec<f32>,
    /// The priors of all positions, back to back, in the request's order.
    pub priors: Vec<f32>,
}

/// How long an evaluator waits for what.
#[derive(Clone, Debug)]
pub struct Patience {
    /// For the answer to a request; then the stream is taken for dead and opened anew.
    pub answer: Duration,
    /// Before the first new attempt.
    pub first_retry: Duration,
    /// Between attempts at most.
    pub longest_retry: Duration,
    /// Before a stream is replaced by another, at most; half of it at least.
    pub stream: Duration,
    /// For outstanding answers when the actor stops.
    pub drain: Duration,
    /// Senseless answers to one request before the actor gives up.
    pub malformed: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            first_retry: Duration::from_millis(50),
            longest_retry: Duration::from_secs(5),
            // With what the look-up of names takes, new servers are in use within half a minute.
            stream: Duration::from_secs(18),
            drain: Duration::from_secs(2),
            malformed: 8,
        }
    }
}

/// Why self-play cannot go on with this inference server. Everything that passes with time is no error.
#[derive(Debug, thiserror::Error)]
pub enum EvaluatorError {
    /// The server has a model of another game, or of other rows.
    #[error(transparent)]
    WrongModel(#[from] WrongModel),
    /// The server says that it will never answer this.
    #[error(
        "the inference server refuses this actor's requests ({code:?}: {message}); \
         does its model belong to the same game and options?"
    )]
    Refused {
        /// The gRPC status.
        code: Code,
        /// The server's words.
        message: String,
    },
    /// The same request was answered with nonsense again and again.
    #[error("the inference server keeps sending answers that make no sense: {0}")]
    Malformed(String),
    /// See [`TooManyVersions`].
    #[error(transparent)]
    Versions(#[from] TooManyVersions),
}

/// The client's side of one worker's stream.
pub struct Evaluator {
    /// How to reach the server.
    pub channel: Link,
    /// What its models must be like.
    pub expected: Arc<Expected>,
    /// Model versions, shared by all workers.
    pub versions: Arc<Versions>,
    /// Counters, shared by all workers.
    pub metrics: Arc<Metrics>,
    /// How long to wait.
    pub patience: Patience,
    /// From the worker; when it is closed, the evaluator ends.
    pub asks: mpsc::Receiver<Ask>,
    /// To the worker, with room for every request it may have in flight.
    pub answers: mpsc::Sender<Answer>,
    /// Ends it as well.
    pub shutdown: CancellationToken,
    /// What is wrong with the server is said once for all workers.
    pub trouble: Arc<Trouble>,
}

/// Says that the server does not answer, and that it does again.
#[derive(Debug)]
pub struct Trouble(LogThrottle);

impl Default for Trouble {
    fn default() -> Self {
        Self(LogThrottle::new(Duration::from_secs(10)))
    }
}

/// Why a stream came to its end.
enum End {
    /// The worker or the process stops.
    Done,
    /// Open another.
    Broken(Status),
    /// It was old, and everything on it has been answered: open another.
    Old,
}

impl Evaluator {
    /// Keeps a stream open until the worker or the process stops.
    ///
    /// # Errors
    /// [`EvaluatorError`] where waiting does not help.
    pub async fn run(self) -> Result<(), EvaluatorError> {
        let patience = &self.patience;
        let backoff = || Backoff::new(patience.first_retry, patience.longest_retry, rand::random());
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

type Check = JoinHandle<Result<(), WrongModel>>;

struct Connection {
    evaluator: Evaluator,
    client: EvaluatorClient<Link>,
    pending: Pending,
    /// For requests that the server answered with "later".
    retries: Backoff,
    /// A look at a version that was not known before.
    check: Option<Check>,
}

impl Connection {
    async fn run(&mut self, mut backoff: Backoff) -> Result<(), EvaluatorError> {
        loop {
            let end = self.stream(&mut backoff).await;
            let status = match end? {
                End::Done => return Ok(()),
                End::Old => continue,
                End::Broken(status) => status,
            };
            if verdict::is_final(status.code()) {
                return Err(refused(status.code(), status.message()));
            }
            if !self.evaluator.trouble.0.allows() {
                // It was said a moment ago.
            } else if status.code() == Code::NotFound {
                tracing::warn!(
                    model = self.evaluator.expected.model,
                    reason = status.message(),
                    "the inference server has no such model yet; self-play begins when it has (the first checkpoint makes \
                     `latest`, the rating makes `best`)"
                );
            } else {
                tracing::warn!(
                    code = ?status.code(),
                    reason = status.message(),
                    "no answers from the inference server, trying again"
                );
            }
            self.evaluator.metrics.reconnects.add(1);
            if !backoff.wait(&self.evaluator.shutdown).await {
                return Ok(());
            }
        }
    }

    /// One stream from its opening to its end. Resets `backoff` when it answers.
    async fn stream(&mut self, backoff: &mut Backoff) -> Result<End, EvaluatorError> {
        let shutdown = self.evaluator.shutdown.clone();
        let opened = tokio::select! {
            biased;
            () = shutdown.cancelled() => return Ok(End::Done),
            opened = self.open() => opened?,
        };
        let (requests, replies) = match opened {
            Ok(opened) => opened,
            Err(status) => return Ok(End::Broken(status)),
        };
        let metrics = Arc::clone(&self.evaluator.metrics);
        metrics.streams.add(1);
        let end = self.exchange(requests, replies, backoff).await;
        metrics.streams.subtract(1);
        end
    }

    /// Checks the model, opens a stream, and queues what is in flight still.
    async fn open(
        &mut self,
    ) -> Result<Result<(mpsc::Sender<EvaluateRequest>, Streaming<EvaluateReply>), Status>, EvaluatorError>
    {
        let expected = Arc::clone(&self.evaluator.expected);
        let label = expected.model.clone();
        match expected
            .check(&mut self.client, label, self.evaluator.patience.answer)
            .await
        {
            Ok(checked) => self.evaluator.versions.describe(checked?),
            Err(status) => return Ok(Err(status)),
        }
        let (requests, outbound) = mpsc::channel(self.evaluator.answers.max_capacity() + 1);
        let again = self
            .pending
            .restart(Instant::now() + self.evaluator.patience.answer);
        for ask in again {
            self.evaluator.metrics.request_retries.add(1);
            // There is room for all of them: a worker has no more in flight than answers fit back.
            let _ = requests.try_send(EvaluateRequest::clone(&ask.request));
        }
        let opening = self.client.evaluate_stream(ReceiverStream::new(outbound));
        let replies = match tokio::time::timeout(self.evaluator.patience.answer, opening).await {
            Ok(Ok(response)) => response.into_inner(),
            Ok(Err(status)) => return Ok(Err(status)),
            Err(_) => {
                return Ok(Err(Status::deadline_exceeded(
                    "the stream was not opened in time",
                )));
            }
        };
        Ok(Ok((requests, replies)))
    }

    async fn exchange(
        &mut self,
        requests: mpsc::Sender<EvaluateRequest>,
        mut replies: Streaming<EvaluateReply>,
        backoff: &mut Backoff,
    ) -> Result<End, EvaluatorError> {
        let shutdown = self.evaluator.shutdown.clone();
        let most = self.evaluator.patience.stream;
        // Not all workers at once.
        let age = most.mul_f64(rand::random_range(0.5..=1.0));
        let mut is_old = std::pin::pin!(tokio::time::sleep(age));
        // None once it is old.
        let mut requests = Some(requests);
        loop {
            let due = self.pending.next_due();
            tokio::select! {
                biased;
                () = shutdown.cancelled() => {
                    self.drain(requests, replies).await;
                    return Ok(End::Done);
                }
                reply = replies.message() => match reply {
                    Ok(Some(reply)) => {
                        if self.take(reply).await?.is_break() {
                            return Ok(End::Done);
                        }
                        backoff.reset();
                    }
                    Ok(None) if requests.is_none() => return Ok(End::Old),
                    Ok(None) => return Ok(End::Broken(Status::unavailable("the server ended the stream"))),
                    Err(status) => return Ok(End::Broken(status)),
                },
                () = &mut is_old, if requests.is_some() => requests = None,
                ask = self.evaluator.asks.recv(), if requests.is_some() => {
                    let Some(ask) = ask else {
                        return Ok(End::Done);
                    };
                    let message = EvaluateRequest::clone(&ask.request);
                    self.pending.add(ask, Instant::now() + self.evaluator.patience.answer);
                    if !sent(&requests, message).await {
                        return Ok(End::Broken(Status::unavailable("the stream was closed")));
                    }
                }
                checked = finished(&mut self.check) => checked?,
                due = wait_for(due) => match due {
                    Due::TooLate => {
                        return Ok(End::Broken(Status::deadline_exceeded("a request was not answered in time")));
                    }
                    // It goes on the next stream, which is soon.
                    Due::SendAgain(id) if requests.is_none() => self.pending.delay(id, Instant::now() + SOON),
                    Due::SendAgain(id) => {
                        let deadline = Instant::now() + self.evaluator.patience.answer;
                        let Some(ask) = self.pending.send_again(id, deadline) else {
                            continue;
                        };
                        self.evaluator.metrics.request_retries.add(1);
                        let message = EvaluateRequest::clone(&ask.request);
                        if !sent(&requests, message).await {
                            return Ok(End::Broken(Status::unavailable("the stream was closed")));
                        }
                    }
                },
            }
        }
    }

    /// Takes one reply. Breaks off when the worker is gone.
    async fn take(&mut self, reply: EvaluateReply) -> Result<std::ops::ControlFlow<()>, EvaluatorError> {
        use std::ops::ControlFlow::{Break, Continue};
        let metrics = Arc::clone(&self.evaluator.metrics);
        let Some(ask) = self.pending.get(reply.id).cloned() else {
            metrics.malformed_replies.add(1);
            tracing::warn!(id = reply.id, "an answer to nothing that was asked");
            return Ok(Continue(()));
        };
        if let Some(error) = &reply.error {
            let code = Code::from(error.code);
            if verdict::is_final(code) {
                return Err(refused(code, &error.message));
            }
            tracing::debug!(?code, message = %error.message, "a request is sent again");
            let delay = hinted(self.retries.next_delay(), error.retry_after_ms);
            self.pending.delay(reply.id, Instant::now() + delay);
            return Ok(Continue(()));
        }
        let mut priors = Vec::with_capacity(ask.request.legal_actions.len());
        if let Err(malformed) = reply::check(&reply, &ask.request, &mut priors) {
            metrics.malformed_replies.add(1);
            tracing::error!(%malformed, version = reply.version, "an answer makes no sense, the request is sent again");
            let attempts = self.pending.count_malformed(reply.id);
            if attempts >= self.evaluator.patience.malformed {
                return Err(EvaluatorError::Malformed(malformed.to_string()));
            }
            self.pending
                .delay(reply.id, Instant::now() + self.retries.next_delay());
            return Ok(Continue(()));
        }
        self.retries.reset();
        if self.evaluator.trouble.0.settle() {
            tracing::info!(version = reply.version, "the inference server answers");
        }
        let is_new = !self.evaluator.versions.is_known(&reply.version);
        let version = self.evaluator.versions.answered(&reply.version, ask.stamp)?;
        if is_new {
            self.look_at(reply.version.clone());
        }
        metrics.requests.add(1);
        if let Some(took) = self.pending.remove(reply.id) {
            metrics::histogram!("minuet_actor_request_seconds").record(took.as_secs_f64());
            metrics::histogram!("minuet_actor_request_rows").record(reply.values.len() as f64);
        }
        let answer = Answer {
            id: reply.id,
            version,
            values: reply.values,
            priors,
        };
        // There is always room; only a worker that has ended makes this fail.
        match self.evaluator.answers.send(answer).await {
            Ok(()) => Ok(Continue(())),
            Err(_) => Ok(Break(())),
        }
    }

    /// A label may have moved on to a model of another game.
    fn look_at(&mut self, version: String) {
        let expected = Arc::clone(&self.evaluator.expected);
        let versions = Arc::clone(&self.evaluator.versions);
        let mut client = self.client.clone();
        let patience = self.evaluator.patience.answer;
        self.check = Some(tokio::spawn(async move {
            // A server that cannot say is asked again when the next stream is opened.
            match expected.check(&mut client, version, patience).await {
                Ok(checked) => checked.map(|model| versions.describe(model)),
                Err(_) => Ok(()),
            }
        }));
    }

    /// Lets the server finish what it has begun.
    async fn drain(
        &mut self,
        requests: Option<mpsc::Sender<EvaluateRequest>>,
        mut replies: Streaming<EvaluateReply>,
    ) {
        drop(requests);
        let rest = async { while let Ok(Some(_)) = replies.message().await {} };
        let _ = tokio::time::timeout(self.evaluator.patience.drain, rest).await;
    }
}

/// False where the stream takes no more.
async fn sent(requests: &Option<mpsc::Sender<EvaluateRequest>>, message: EvaluateRequest) -> bool {
    match requests {
        Some(requests) => requests.send(message).await.is_ok(),
        None => false,
    }
}

/// The server knows best when it has time again, within reason. What is added differs from client to client, so that not all
/// of them come back at once.
fn hinted(backoff: Duration, retry_after_ms: Option<u32>) -> Duration {
    match retry_after_ms {
        Some(hint) => {
            let hint = Duration::from_millis(hint.into()).min(LONGEST_HINT);
            hint + backoff.min(hint)
        }
        None => backoff,
    }
}

fn refused(code: Code, message: &str) -> EvaluatorError {
    EvaluatorError::Refused {
        code,
        message: message.into(),
    }
}

/// Completes when the check has; never where there is none.
async fn finished(check: &mut Option<Check>) -> Result<(), WrongModel> {
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
