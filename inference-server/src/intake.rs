//! Where requests of every protocol come in: their model is found, they are validated and queued.

use std::{
    future::Future,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Duration,
};

use service::{door::Peer, telemetry::steps::Cause};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    batcher::Batcher,
    cache::Evaluations,
    job::{Answer, Asked, Caller, ClientId, Draft, Evaluation, ReplyTo},
    library::Library,
    metrics::Metrics,
    models::Named,
    refusal::Refusal,
    validate,
};

/// Who is refused is not listened to for this part of the time that the queue takes to empty.
const PAUSE_SHARE: u32 = 2;
/// Nor for longer than this.
const MOST_PAUSE: Duration = Duration::from_millis(50);

/// What requests need. All services share one.
#[derive(Debug)]
pub struct Intake {
    /// The models.
    pub library: Arc<Library>,
    /// Where requests wait.
    pub batcher: Arc<Batcher>,
    /// What is known already.
    pub cache: Option<Arc<Evaluations>>,
    /// Positions that a request may hold.
    pub max_request: usize,
    /// Told what becomes of requests.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the process is asked to stop: nothing new is taken then.
    pub stopping: CancellationToken,
    hasher: RandomState,
}

impl Intake {
    /// An intake of requests of at most `max_request` positions, until `stopping`.
    pub fn new(
        library: Arc<Library>,
        batcher: Arc<Batcher>,
        cache: Option<Arc<Evaluations>>,
        max_request: usize,
        metrics: Arc<Metrics>,
        stopping: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            library,
            batcher,
            cache,
            max_request,
            metrics,
            stopping,
            hasher: RandomState::new(),
        })
    }

    /// Who makes the call that this task answers. Every connection is a client; calls whose peer is not known are one
    /// together.
    pub fn caller(&self, peer: Option<Peer>) -> Caller {
        let address = peer.as_ref().and_then(Peer::address);
        Caller {
            client: ClientId(self.hasher.hash_one(address)),
            cause: Cause::current(),
            peer,
        }
    }

    /// Answers one request. Dropping the future takes it out of the queue.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn evaluate(&self, caller: Caller, model: &str, asked: Asked) -> Answer {
        let client = caller.client;
        let (sender, answer) = oneshot::channel();
        let reply_to = ReplyTo::call(sender);
        let queued = match self.find(model) {
            Ok(named) => self.queue(caller, named, asked, reply_to),
            Err(Refusal::NotLoaded(_)) => match self.library.get(model).await {
                Ok(named) => self.queue(caller, named, asked, reply_to),
                Err(refusal) => Err(refusal),
            },
            Err(refusal) => Err(refusal),
        };
        queued.inspect_err(|refusal| self.metrics.refused(refusal))?;
        let mut cancelled = Cancelled(Some((&self.batcher, client)));
        let answered = answer.await.map_err(|_| Refusal::Stopping)?;
        cancelled.0 = None;
        answered
    }

    /// Queues a request, to be answered to `reply_to`, with a refusal too. Where its model is to be loaded first, the
    /// future that is given does so, and must be run.
    pub fn submit(
        self: &Arc<Self>,
        caller: Caller,
        model: &str,
        asked: Asked,
        reply_to: ReplyTo,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        match self.find(model) {
            Err(Refusal::NotLoaded(name)) => {
                let intake = self.clone();
                Some(async move {
                    match intake.library.get(&name).await {
                        Ok(named) => intake.queue_or_refuse(caller, named, asked, reply_to),
                        Err(refusal) => intake.refuse(refusal, &reply_to),
                    }
                })
            }
            Err(refusal) => {
                self.refuse(refusal, &reply_to);
                None
            }
            Ok(named) => {
                self.queue_or_refuse(caller, named, asked, reply_to);
                None
            }
        }
    }

    fn find(&self, model: &str) -> Result<Named, Refusal> {
        if self.stopping.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        self.library.models().find(model)
    }

    fn queue_or_refuse(&self, mut caller: Caller, named: Named, asked: Asked, reply_to: ReplyTo) {
        match self.check(named, asked) {
            Err(refusal) => self.refuse(refusal, &reply_to),
            Ok(draft) if draft.is_known() => reply_to.send(Ok(self.known(draft))),
            Ok(draft) => {
                let peer = caller.peer.take();
                let job = Arc::new(draft.into_job(caller, reply_to));
                if let Err(refusal) = self.batcher.push(job.clone()) {
                    hold_back(peer, &refusal);
                    self.metrics.refused(&refusal);
                    job.refuse(refusal);
                }
            }
        }
    }

    fn queue(
        &self,
        mut caller: Caller,
        named: Named,
        asked: Asked,
        reply_to: ReplyTo,
    ) -> Result<(), Refusal> {
        let draft = self.check(named, asked)?;
        if draft.is_known() {
            reply_to.send(Ok(self.known(draft)));
            return Ok(());
        }
        let peer = caller.peer.take();
        let pushed = self.batcher.push(Arc::new(draft.into_job(caller, reply_to)));
        pushed.inspect_err(|refusal| hold_back(peer, refusal))
    }

    fn check(&self, named: Named, asked: Asked) -> Result<Draft, Refusal> {
        validate::check(&asked, &named.model.info.layout, self.max_request)?;
        let mut draft = Draft::new(named, asked);
        if let Some(cache) = &self.cache {
            let (hits, misses) = cache.look_up(&mut draft);
            match draft.slot() {
                Some(slot) => slot.cache_use.count(hits, misses),
                None => self.metrics.exact_cache_use.count(hits, misses),
            }
        }
        Ok(draft)
    }

    fn known(&self, draft: Draft) -> Evaluation {
        self.metrics.answered(draft.positions());
        draft.into_answer()
    }

    fn refuse(&self, refusal: Refusal, reply_to: &ReplyTo) {
        self.metrics.refused(&refusal);
        reply_to.send(Err(refusal));
    }
}

/// Leaves a client's connection unread for a moment where the queue is full. Far less than the queue takes to empty, so that
/// the device always has something.
fn hold_back(peer: Option<Peer>, refusal: &Refusal) {
    if let (Some(peer), &Refusal::QueueFull { retry_after_ms, .. }) = (peer, refusal) {
        let share = Duration::from_millis(retry_after_ms) / PAUSE_SHARE;
        peer.pause(share.min(MOST_PAUSE));
    }
}

/// Takes a call that is given up on out of the queue.
struct Cancelled<'a>(Option<(&'a Batcher, ClientId)>);

impl Drop for Cancelled<'_> {
    fn drop(&mut self) {
        if let Some((batcher, client)) = self.0 {
            batcher.sweep(client);
        }
    }
}
