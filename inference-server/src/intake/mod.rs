//! Entry point of the requests of every protocol: finds the model, validates the request, looks in the cache, and queues
//! what is left.
//!
//! | module | contents |
//! |---|---|
//! | [`stream`] | an actor's stream of requests, with back-pressure |
//! | [`validate`] | checks every number of a request against the model's layout |
//! | [`deadline`] | reads a call's deadline |

pub mod deadline;
pub mod stream;
pub mod validate;

use std::{
    future::Future,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Duration,
};

use service::{listener::Peer, telemetry::steps::Cause};
use tokio::{sync::oneshot, time::timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{
    batching::{batcher::Batcher, cache::EvaluationCache, job::Job},
    metrics::Metrics,
    models::{library::Library, table::ResolvedModel},
    requests::{
        memory::{FREE_BYTES, MemoryCharge, MemoryLimits},
        refusal::Refusal,
        request::{Caller, ClientId, EvaluationRequest, Priority},
        response::{EvaluationResult, ReplyTo},
    },
};

/// Share of the queue's drain time for which a rejected client's connection is left unread.
const PAUSE_SHARE: u32 = 2;
/// Longest time for which a rejected client's connection is left unread.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Entry point of all requests, shared by all services.
#[derive(Debug)]
pub struct Intake {
    /// The models, loaded on demand.
    pub library: Arc<Library>,
    /// Queue of requests.
    pub batcher: Arc<Batcher>,
    /// Cache of evaluations, if one is configured.
    pub cache: Option<Arc<EvaluationCache>>,
    /// Largest number of positions in one request.
    pub max_request: usize,
    /// Limits on the memory of unread answers.
    pub unread: MemoryLimits,
    /// Metrics of the server.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the process shuts down. New requests are refused from then on.
    pub shutdown: CancellationToken,
    hasher: RandomState,
}

impl Intake {
    /// Makes an intake for requests of at most `max_request` positions, or fewer if the queue holds fewer.
    pub fn new(
        library: Arc<Library>,
        batcher: Arc<Batcher>,
        cache: Option<Arc<EvaluationCache>>,
        max_request: usize,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            library,
            max_request: max_request.min(batcher.most_of(Priority::Play)),
            unread: MemoryLimits::new(metrics.unread.clone()),
            batcher,
            cache,
            metrics,
            shutdown,
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
        let (sender, mut answer) = oneshot::channel();
        let model = match self.find(model) {
            Err(Refusal::NotLoaded(_)) => self.library.get(model).await?,
            found => found?,
        };
        self.queue(caller, model, request, ReplyTo::call(sender));
        let mut cancelled = Cancelled(Some((&self.batcher, client)));
        let answered = match deadline {
            None => answer.await,
            // The device may finish a request in vain if it has begun it. A request that still waits is removed.
            Some(deadline) => match timeout_at(deadline, &mut answer).await {
                Ok(answered) => answered,
                Err(_) => return Err(Refusal::Late),
            },
        };
        cancelled.0 = None;
        answered.map_err(|_| Refusal::Stopping)?
    }

    /// Queues a request; the answer or the refusal goes to `reply_to`. If the model must be loaded first, returns the
    /// future that loads it and then queues the request. The caller must run that future.
    pub fn submit(
        self: &Arc<Self>,
        caller: Caller,
        model: &str,
        request: EvaluationRequest,
        reply_to: ReplyTo,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        match self.find(model) {
            Err(Refusal::NotLoaded(name)) => {
                let intake = self.clone();
                Some(async move {
                    match intake.library.get(&name).await {
                        Ok(model) => intake.queue(caller, model, request, reply_to),
                        Err(refusal) => reply_to.send(Err(refusal)),
                    }
                })
            }
            Err(refusal) => {
                reply_to.send(Err(refusal));
                None
            }
            Ok(model) => {
                self.queue(caller, model, request, reply_to);
                None
            }
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

    fn find(&self, model: &str) -> Result<ResolvedModel, Refusal> {
        if self.shutdown.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        self.library.models().find(model)
    }

    /// Validates a request and queues it. Answers at once if it is refused, or if the cache knows every position.
    fn queue(&self, mut caller: Caller, model: ResolvedModel, request: EvaluationRequest, reply_to: ReplyTo) {
        let most = self.max_request.min(self.batcher.most_of(request.priority));
        if let Err(refusal) = validate::check(&request, &model.model.info.layout, most) {
            reply_to.send(Err(refusal));
            return;
        }
        let peer = caller.peer.take();
        let mut job = Job::new(model, request, caller, reply_to);
        if let Some(cache) = &self.cache {
            let (hits, misses) = cache.look_up(&mut job);
            match job.slot() {
                Some(slot) => slot.count_cache_use(hits, misses, &self.metrics),
                None => self.metrics.exact_cache_use.count(hits, misses),
            }
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
