//! Where requests of every protocol come in: their model is found, they are validated and queued.

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
    batching::{batcher::Batcher, cache::Evaluations, draft::Draft},
    metrics::Metrics,
    models::{library::Library, table::Named},
    requests::{
        memory::{Charge, FREE_BYTES, Ledger},
        refusal::Refusal,
        request::{Asked, Caller, ClientId, Priority},
        response::{Answer, Evaluation, ReplyTo},
    },
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
    /// Positions that a request may hold; no more than may wait.
    pub max_request: usize,
    /// Memory of answers that wait to be read.
    pub unread: Ledger,
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
            max_request: max_request.min(batcher.most_of(Priority::Play)),
            unread: Ledger::new(metrics.unread.clone()),
            batcher,
            cache,
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

    /// Answers one request, at its deadline at the latest. Dropping the future takes it out of the queue. What it is refused
    /// with is not counted: that is for who says so to the client, in the words of its protocol.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn evaluate(&self, caller: Caller, model: &str, asked: Asked) -> Answer {
        let (client, deadline) = (caller.client, asked.deadline);
        let (sender, mut answer) = oneshot::channel();
        let reply_to = ReplyTo::call(sender);
        match self.find(model) {
            Ok(named) => self.queue(caller, named, asked, reply_to)?,
            Err(Refusal::NotLoaded(_)) => {
                let named = self.library.get(model).await?;
                self.queue(caller, named, asked, reply_to)?;
            }
            Err(refusal) => return Err(refusal),
        }
        let mut cancelled = Cancelled(Some((&self.batcher, client)));
        let answered = match deadline {
            None => answer.await,
            // What the device has begun may be finished in vain; what still waits is taken out.
            Some(deadline) => match timeout_at(deadline, &mut answer).await {
                Ok(answered) => answered,
                Err(_) => return Err(Refusal::Late),
            },
        };
        cancelled.0 = None;
        answered.map_err(|_| Refusal::Stopping)?
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
                        Err(refusal) => reply_to.send(Err(refusal)),
                    }
                })
            }
            Err(refusal) => {
                reply_to.send(Err(refusal));
                None
            }
            Ok(named) => {
                self.queue_or_refuse(caller, named, asked, reply_to);
                None
            }
        }
    }

    /// Waits until a call's connection may hold so many bytes more, to be given back when this is dropped.
    pub(crate) async fn charge(&self, caller: &Caller, bytes: usize) -> Option<Charge> {
        // Looking for the account would cost more than the small ones are worth.
        if bytes < FREE_BYTES {
            return None;
        }
        self.unread.account(caller.client).charge(bytes).await
    }

    fn find(&self, model: &str) -> Result<Named, Refusal> {
        if self.stopping.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        self.library.models().find(model)
    }

    fn queue_or_refuse(&self, mut caller: Caller, named: Named, asked: Asked, reply_to: ReplyTo) {
        match self.check(named, asked) {
            Err(refusal) => reply_to.send(Err(refusal)),
            Ok(draft) if draft.is_known() => reply_to.send(Ok(self.known(draft))),
            Ok(draft) => {
                let peer = caller.peer.take();
                let job = Arc::new(draft.into_job(caller, reply_to));
                if let Err(refusal) = self.batcher.push(job.clone()) {
                    hold_back(peer, job.priority(), &refusal);
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
        let job = Arc::new(draft.into_job(caller, reply_to));
        let priority = job.priority();
        let pushed = self.batcher.push(job);
        pushed.inspect_err(|refusal| hold_back(peer, priority, refusal))
    }

    fn check(&self, named: Named, asked: Asked) -> Result<Draft, Refusal> {
        let most = self.max_request.min(self.batcher.most_of(asked.priority));
        validate::check(&asked, &named.model.info.layout, most)?;
        let mut draft = Draft::new(named, asked);
        if let Some(cache) = &self.cache {
            let (hits, misses) = cache.look_up(&mut draft);
            match draft.slot() {
                Some(slot) => slot.count_cache_use(hits, misses, &self.metrics),
                None => self.metrics.exact_cache_use.count(hits, misses),
            }
        }
        Ok(draft)
    }

    fn known(&self, draft: Draft) -> Evaluation {
        self.metrics.answered(draft.positions());
        draft.into_answer()
    }
}

/// Leaves a client's connection unread for a moment where the queue is full. Far less than the queue takes to empty, so that
/// the device always has something. Not where somebody waits for the answer: there is less of that than of anything else,
/// and it should come in as soon as there is room.
fn hold_back(peer: Option<Peer>, priority: Priority, refusal: &Refusal) {
    if priority == Priority::Play {
        return;
    }
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
