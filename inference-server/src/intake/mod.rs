//! Entry point of the requests of every protocol: finds the model, validates the request, looks in the cache, and queues
//! what is left.
//!
//! | module | contents |
//! |---|---|
//! | [`stream`] | an actor's stream of requests, with back-pressure |
//! | [`request`] | a request in the form that all protocols share, the client that sent it, and its deadline |
//! | [`validate`] | checks every number of a request against the model's layout |
//! | [`refusal`] | the reasons for which a request is refused |
//! | [`memory`] | limits on the memory of answers that clients have not read yet |

pub mod memory;
pub mod refusal;
pub mod request;
pub mod stream;
pub mod validate;

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Duration,
};

use network::cache::Cache;
use service::{listener::Peer, telemetry::steps::Cause};
use tokio::{sync::mpsc, time::timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{
    batching::{
        batcher::Batcher,
        job::{EvaluationResult, Job, ReplyTo},
    },
    metrics::{CacheUse, Metrics},
    models::table::Models,
};
use memory::{FREE_BYTES, MemoryCharge, MemoryLimits};
use refusal::Refusal;
use request::{Caller, ClientId, EvaluationRequest, Priority};

/// Share of the queue's drain time for which a rejected client's connection is left unread.
const PAUSE_SHARE: u32 = 2;
/// Longest time for which a rejected client's connection is left unread.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Entry point of all requests, shared by all services.
#[derive(Debug)]
pub struct Intake {
    /// The served models.
    pub models: Arc<Models>,
    /// Queue of requests.
    pub batcher: Arc<Batcher>,
    /// Cache of evaluations, if one is configured.
    pub cache: Option<Arc<Cache>>,
    /// Largest number of positions in one request.
    pub max_request: usize,
    /// Limits on the memory of unread answers.
    pub unread: MemoryLimits,
    /// Metrics of the server.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the process shuts down. New requests are refused from then on.
    pub shutdown: CancellationToken,
    /// Use of the cache by requests that name a version.
    cache_use: CacheUse,
    hasher: RandomState,
}

impl Intake {
    /// Makes an intake for requests of at most `max_request` positions, or fewer if the queue holds fewer.
    pub fn new(
        models: Arc<Models>,
        batcher: Arc<Batcher>,
        cache: Option<Arc<Cache>>,
        max_request: usize,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            models,
            max_request: max_request.min(batcher.most_of(Priority::Play)),
            unread: MemoryLimits::new(metrics.unread.clone()),
            batcher,
            cache,
            metrics,
            shutdown,
            cache_use: CacheUse::new("by version"),
            hasher: RandomState::new(),
        })
    }

    /// Returns the caller of the current task's call. Each connection is one client. All calls without a known peer are
    /// one client together.
    pub fn caller(&self, peer: Option<Peer>) -> Caller {
        let address = peer.as_ref().and_then(Peer::address);
        Caller {
            client: ClientId(self.hasher.hash_one(address)),
            cause: Cause::current(),
            peer,
        }
    }

    /// Evaluates one request and returns no later than its deadline. Dropping the future removes the request from the
    /// queue. A refusal is not counted in the metrics here: the service counts it with the status that it sends.
    ///
    /// # Errors
    /// [`Refusal`] with the reason.
    pub async fn evaluate(
        &self,
        caller: Caller,
        model: &str,
        request: EvaluationRequest,
    ) -> EvaluationResult {
        let (client, deadline) = (caller.client, request.deadline);
        // Dropped after the receiver, so that the request is no longer wanted when the queue is swept.
        let mut cancelled = Cancelled(Some((&self.batcher, client)));
        let (sender, mut replies) = mpsc::unbounded_channel();
        self.submit(caller, model, request, ReplyTo::new(0, sender, None));
        let reply = match deadline {
            None => replies.recv().await,
            // The device may compute a request whose caller has timed out, if it has begun it. A request that still waits is
            // removed.
            Some(deadline) => timeout_at(deadline, replies.recv())
                .await
                .map_err(|_| Refusal::Late)?,
        };
        cancelled.0 = None;
        reply.ok_or(Refusal::Stopping)?.answer
    }

    /// Validates a request for the model with this name and queues it. The answer or the refusal goes to `reply_to`; at once
    /// if the request is refused, or if the cache knows every position.
    pub fn submit(&self, mut caller: Caller, model: &str, request: EvaluationRequest, reply_to: ReplyTo) {
        let most = self.max_request.min(self.batcher.most_of(request.priority));
        let valid = self.models.find(model).and_then(|model| {
            validate::check(&request, &model.model.info.layout, most)?;
            Ok(model)
        });
        let model = match valid {
            Ok(model) => model,
            Err(refusal) => return reply_to.send(Err(refusal)),
        };
        let peer = caller.peer.take();
        let mut job = Job::new(model, request, caller, reply_to);
        if let Some(cache) = &self.cache {
            let (hits, misses) = job.look_up(cache);
            let cache_use = job.slot().map_or(&self.cache_use, |slot| &slot.cache_use);
            cache_use.count(hits, misses);
            if let Some(positions) = job.answer_if_complete() {
                self.metrics.answered(positions);
                return;
            }
        }
        let job = Arc::new(job);
        if let Err(refusal) = self.batcher.push(job.clone()) {
            pause_reading(peer, job.priority(), &refusal);
            job.refuse(refusal);
        }
    }

    /// Waits until the caller's connection may hold `bytes` more of unread answers. The charge ends when it is dropped.
    pub(crate) async fn charge(&self, caller: &Caller, bytes: usize) -> Option<MemoryCharge> {
        // Small requests are not charged: the look-up of the connection would cost more than it is worth.
        if bytes < FREE_BYTES {
            return None;
        }
        self.unread.connection(caller.client).charge(bytes).await
    }
}

/// Leaves a client's connection unread for a moment when the queue is full: for far less time than the queue takes to
/// drain, so that the device always has work. Requests of priority play are never held back: they are few, and a person
/// or a match waits for them.
fn pause_reading(peer: Option<Peer>, priority: Priority, refusal: &Refusal) {
    if priority == Priority::Play {
        return;
    }
    if let (Some(peer), &Refusal::QueueFull { retry_after_ms, .. }) = (peer, refusal) {
        let share = Duration::from_millis(retry_after_ms) / PAUSE_SHARE;
        peer.pause(share.min(MAX_PAUSE));
    }
}

/// Removes an abandoned call from the queue when it is dropped.
struct Cancelled<'a>(Option<(&'a Batcher, ClientId)>);

impl Drop for Cancelled<'_> {
    fn drop(&mut self) {
        if let Some((batcher, client)) = self.0 {
            batcher.sweep(client);
        }
    }
}
