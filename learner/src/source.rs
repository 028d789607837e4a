//! Batches from the replay store, fetched ahead of training: asks for what the ledger allows and the queue can hold,
//! checks and packs what comes, and survives the store's restarts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use proto::v1::{SampleRequest, StatsRequest, replay_store_client::ReplayStoreClient};
use service::{
    backoff::Backoff,
    config::LearnerConfig,
    connect::{Link, MAX_MESSAGE_BYTES},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    batches::{BatchError, HostBatch, Packer},
    ledger::{Ledger, Waiting},
    train::Progress,
};

/// Batches that are held ready, checked and packed. A limit in time as well: a batch is drawn from the window of its moment.
pub const PREFETCHED: usize = 8;

/// How often the store is asked whether it holds enough.
const POLL: Duration = Duration::from_millis(500);
/// How often the wait is mentioned in the log.
const MENTION: Duration = Duration::from_secs(10);
/// How often the store's counts are asked for while batches flow.
const STATS: Duration = Duration::from_secs(10);
/// A store that sends nothing for this long is asked again.
const SILENCE: Duration = Duration::from_secs(60);
/// So many unusable batches in a row are no accident.
const MAX_UNUSABLE: u32 = 100;

/// Why no more batches can come.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The store holds another game.
    #[error(transparent)]
    Game(BatchError),
    /// The store will never answer this.
    #[error("the replay store refused: {0}")]
    Refused(String),
    /// One unusable batch after the other.
    #[error("{count} batches in a row could not be used, the last one because of {last}")]
    Unusable {
        /// How many.
        count: u32,
        /// What was wrong with the last one.
        last: BatchError,
    },
}

/// What the store said last, for those who do not talk to it themselves.
#[derive(Debug, Default)]
pub struct StoreView {
    games_inserted: AtomicU64,
}

impl StoreView {
    /// Games inserted into the store.
    pub fn games_inserted(&self) -> u64 {
        self.games_inserted.load(Ordering::Relaxed)
    }
}

/// Fetches batches.
#[derive(Debug)]
pub struct Source {
    client: ReplayStoreClient<Link>,
    packer: Packer,
    batch_size: usize,
    min_positions: u64,
    seed: u64,
    ledger: Ledger,
    next_batch: u64,
    view: Arc<StoreView>,
    out: mpsc::Sender<HostBatch>,
    stats_at: Option<Instant>,
    mentioned_at: Option<Instant>,
    unusable: u32,
    /// A batch has come since the last failure.
    has_delivered: bool,
}

/// What interrupted a fetch.
enum Interruption {
    /// The store is away or failed; trying again may help.
    Store(tonic::Status),
    /// It does not.
    Fatal(SourceError),
    /// Nobody takes batches any more.
    Closed,
}

impl From<tonic::Status> for Interruption {
    fn from(status: tonic::Status) -> Self {
        use tonic::Code;

        match status.code() {
            // What was asked is wrong, not the moment.
            Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::Unimplemented
            | Code::Unauthenticated
            | Code::PermissionDenied => Self::Fatal(SourceError::Refused(status.message().to_owned())),
            _ => Self::Store(status),
        }
    }
}

impl Source {
    /// Batches for training that stands at `progress`, packed by `packer`, to be sent to `out`; the draws are decided
    /// by `seed`.
    pub fn new(
        channel: Link,
        packer: Packer,
        config: &LearnerConfig,
        seed: u64,
        progress: &Progress,
        out: mpsc::Sender<HostBatch>,
    ) -> Self {
        Self {
            client: ReplayStoreClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES),
            packer,
            batch_size: config.batch_size,
            min_positions: config.min_positions,
            seed,
            ledger: Ledger::new(config.samples_per_position, config.min_positions, progress),
            next_batch: progress.next_batch,
            view: Arc::default(),
            out,
            stats_at: None,
            mentioned_at: None,
            unusable: 0,
            has_delivered: false,
        }
    }

    /// What the store said last.
    pub fn view(&self) -> Arc<StoreView> {
        self.view.clone()
    }

    /// Fetches until `shutdown`, or until nobody takes batches any more.
    ///
    /// # Errors
    /// [`SourceError`] where it makes no sense to go on.
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<(), SourceError> {
        let mut backoff = Backoff::for_connections();
        loop {
            let fetched = tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(()),
                fetched = self.fetch() => fetched,
            };
            match fetched {
                Ok(()) => backoff.reset(),
                Err(Interruption::Closed) => return Ok(()),
                Err(Interruption::Fatal(error)) => return Err(error),
                Err(Interruption::Store(status)) => {
                    if std::mem::take(&mut self.has_delivered) {
                        backoff.reset();
                    }
                    // At 1, 2, 4, 8, … attempts: an outage of a day must not fill the disk with its own log.
                    if (backoff.attempts() + 1).is_power_of_two() {
                        tracing::warn!(
                            code = ?status.code(),
                            message = status.message(),
                            "the replay store does not answer; trying again"
                        );
                    }
                    metrics::counter!("minuet_learner_store_failures_total").increment(1);
                    if !backoff.wait(&shutdown).await {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Waits until a batch can be held and is allowed, then fetches as many as can be.
    async fn fetch(&mut self) -> Result<(), Interruption> {
        // There is one sender, so what is free stays free.
        drop(self.out.reserve().await.map_err(|_| Interruption::Closed)?);
        if self.stats_at.is_none_or(|at| at.elapsed() >= STATS) {
            self.ask_stats().await?;
        }
        let allowed = loop {
            match self.ledger.allowed(self.batch_size) {
                Ok(batches) => break batches,
                Err(waiting) => self.wait(waiting).await?,
            }
        };
        metrics::gauge!("minuet_learner_waiting").set(0.0);
        self.mentioned_at = None;
        self.draw(allowed.min(self.out.capacity().max(1) as u64)).await
    }

    async fn wait(&mut self, waiting: Waiting) -> Result<(), Interruption> {
        metrics::gauge!("minuet_learner_waiting").set(1.0);
        if self.mentioned_at.is_none_or(|at| at.elapsed() >= MENTION) {
            tracing::info!("{waiting}");
            self.mentioned_at = Some(Instant::now());
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = self.out.closed() => return Err(Interruption::Closed),
        }
        self.ask_stats().await
    }

    async fn ask_stats(&mut self) -> Result<(), Interruption> {
        let mut request = tonic::Request::new(StatsRequest {});
        request.set_timeout(SILENCE);
        let stats = self.client.stats(request).await?.into_inner();
        self.ledger
            .observe(stats.positions_inserted, stats.window_positions);
        self.view
            .games_inserted
            .store(stats.games_inserted, Ordering::Relaxed);
        self.stats_at = Some(Instant::now());
        metrics::gauge!("minuet_learner_positions_inserted").set(stats.positions_inserted as f64);
        metrics::gauge!("minuet_learner_window_positions").set(stats.window_positions as f64);
        Ok(())
    }

    async fn draw(&mut self, batches: u64) -> Result<(), Interruption> {
        let request = SampleRequest {
            batch_size: u32::try_from(self.batch_size).unwrap_or(u32::MAX),
            batches: u32::try_from(batches).unwrap_or(u32::MAX),
            seed: self.seed,
            first_batch: self.next_batch,
            min_positions: self.min_positions,
        };
        let mut stream = in_time(self.client.sample(request)).await?.into_inner();
        while let Some(batch) = in_time(stream.message()).await? {
            if batch.number != self.next_batch {
                let text = format!("batch {} came, {} was asked for", batch.number, self.next_batch);
                return Err(tonic::Status::data_loss(text).into());
            }
            self.next_batch += 1;
            self.has_delivered = true;
            self.ledger
                .observe(batch.positions_inserted, batch.window_positions);
            match self.packer.pack(&batch) {
                Ok(batch) => self.hand_on(batch).await?,
                Err(error) => self.refuse(error)?,
            }
        }
        Ok(())
    }

    async fn hand_on(&mut self, mut batch: HostBatch) -> Result<(), Interruption> {
        self.unusable = 0;
        self.ledger.take(batch.positions as u64);
        batch.inserted = self.ledger.inserted();
        self.out.send(batch).await.map_err(|_| Interruption::Closed)?;
        let held = self.out.max_capacity() - self.out.capacity();
        metrics::gauge!("minuet_learner_prefetched_batches").set(held as f64);
        Ok(())
    }

    fn refuse(&mut self, error: BatchError) -> Result<(), Interruption> {
        if matches!(error, BatchError::Game { .. }) {
            return Err(Interruption::Fatal(SourceError::Game(error)));
        }
        self.unusable += 1;
        metrics::counter!("minuet_learner_unusable_batches_total").increment(1);
        tracing::warn!(%error, "a batch cannot be used; taking the next one");
        if self.unusable >= MAX_UNUSABLE {
            return Err(Interruption::Fatal(SourceError::Unusable {
                count: self.unusable,
                last: error,
            }));
        }
        Ok(())
    }
}

/// An answer, or an error once the store has been silent for too long.
async fn in_time<T>(answer: impl Future<Output = Result<T, tonic::Status>>) -> Result<T, tonic::Status> {
    tokio::time::timeout(SILENCE, answer)
        .await
        .unwrap_or_else(|_| Err(tonic::Status::deadline_exceeded("the store is silent")))
}
