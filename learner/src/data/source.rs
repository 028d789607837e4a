//! Batches from the replay store, fetched ahead of training.
//!
//! The source requests as many batches as the ledger allows and the queue can hold, packs them, and survives restarts of the
//! store.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use anyhow::anyhow;
use config::LearnerConfig;
use futures::{StreamExt as _, stream::FuturesOrdered};
use proto::v1::{
    Batch, Purpose, Redraw, SampleRequest, StatsRequest, replay_store_client::ReplayStoreClient,
};
use service::{
    backoff::Backoff,
    connect::{Link, MAX_MESSAGE_BYTES},
    log_throttle::LogThrottle,
};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinHandle, spawn_blocking},
};
use tokio_util::sync::CancellationToken;

use crate::{
    data::{
        batches::{BatchError, HostBatch, StoreView, ValidationBatches},
        ledger::{DrawCounts, Ledger},
        packer::Packer,
    },
    metrics::Metrics,
};

/// Number of batches that are checked and packed at the same time, on threads for blocking work.
const LOADERS: usize = 2;
/// Maximum number of packed batches that are held ready. It is limited because a batch is drawn from the window at the time of the
/// request.
pub const PREFETCHED: usize = 8;

/// Time between two requests for the store's counts while positions are waited for.
const WAITING_INTERVAL: Duration = Duration::from_millis(500);
/// Time between two log lines about the wait.
const WAITING_LOG_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two requests for the store's counts while batches flow.
const STATS_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum time without a message from the store, after which a request has failed.
const STORE_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of positions of a validation batch.
const VALIDATION_POSITIONS: u32 = 1024;
/// Number of consecutive unusable batches after which training ends.
const MAX_UNUSABLE: u32 = 100;

/// A packed batch with the errors of the samples that it lacks, or the reason why it cannot be trained on.
type Packed = Result<(HostBatch, Vec<BatchError>), BatchError>;

/// Fetches batches and sends them to the training thread.
#[derive(Debug)]
pub struct Source {
    store: ReplayStoreClient<Link>,
    packer: Arc<Packer>,
    /// Batches that are being packed. They come out in the order in which they went in, so that training stays repeatable.
    packing: FuturesOrdered<JoinHandle<Packed>>,
    config: LearnerConfig,
    seed: u64,
    /// The counts, those of the batches that were requested included.
    ledger: Ledger,
    view: Arc<StoreView>,
    metrics: Arc<Metrics>,
    out: mpsc::Sender<HostBatch>,
    stats_at: Option<Instant>,
    waiting_log: LogThrottle,
    unusable: u32,
    /// Number of the interval between two checkpoints for which validation batches were requested last.
    validated_interval: Option<u64>,
    /// True if a batch has come since the last failure.
    has_delivered: bool,
}

/// Reason why a fetch ended early.
enum Interruption {
    /// The store does not answer or failed; another attempt may succeed.
    Store(tonic::Status),
    /// Another attempt would fail as well.
    Fatal(anyhow::Error),
    /// The training thread takes no more batches.
    Closed,
}

impl From<tonic::Status> for Interruption {
    fn from(status: tonic::Status) -> Self {
        use tonic::Code;

        match status.code() {
            // The request is invalid, and would be refused again.
            Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::Unimplemented
            | Code::Unauthenticated
            | Code::PermissionDenied => Self::Fatal(anyhow!(
                "the replay store refused the request: {}",
                status.message()
            )),
            _ => Self::Store(status),
        }
    }
}

impl Source {
    /// Makes a source of batches from the store at `link`, for training that resumes from `counts`. Batches are packed by `packer`
    /// and sent to `out`; `seed` decides the draws. Must be called within a Tokio runtime.
    pub fn new(
        link: Link,
        packer: Packer,
        config: LearnerConfig,
        seed: u64,
        counts: DrawCounts,
        metrics: Arc<Metrics>,
        out: mpsc::Sender<HostBatch>,
    ) -> Self {
        Self {
            store: ReplayStoreClient::new(link).max_decoding_message_size(MAX_MESSAGE_BYTES),
            packing: FuturesOrdered::new(),
            packer: Arc::new(packer),
            seed,
            ledger: Ledger::new(config.samples_per_position, config.min_positions, counts),
            config,
            view: Arc::default(),
            metrics,
            out,
            stats_at: None,
            waiting_log: LogThrottle::new(WAITING_LOG_INTERVAL),
            unusable: 0,
            validated_interval: None,
            has_delivered: false,
        }
    }

    /// Returns the view that this source updates.
    pub fn view(&self) -> Arc<StoreView> {
        self.view.clone()
    }

    /// Fetches until `shutdown`, or until the receiver of the batches is dropped.
    ///
    /// # Errors
    /// No more batches can come: the store holds another game, refuses the requests, or sends too many unusable batches in a row.
    pub async fn run(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
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
                    // Logged at attempts 1, 2, 4, 8, …, so that an outage of a day does not fill the disk with log lines.
                    if (backoff.attempts() + 1).is_power_of_two() {
                        tracing::warn!(
                            code = ?status.code(),
                            message = status.message(),
                            "the replay store does not answer; trying again"
                        );
                    }
                    self.metrics.store_failures.increment(1);
                    if !backoff.wait(&shutdown).await {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Waits until the queue has room and the ledger allows a batch, then fetches as many batches as both admit.
    async fn fetch(&mut self) -> Result<(), Interruption> {
        // This is the only sender, so space that is free now stays free.
        drop(self.out.reserve().await.map_err(|_| Interruption::Closed)?);
        if self.stats_at.is_none_or(|at| at.elapsed() >= STATS_INTERVAL) {
            self.read_stats(false).await?;
        }
        let allowed = loop {
            match self.ledger.allowed(self.config.batch_size) {
                Ok(batches) => break batches,
                Err(reason) => self.wait(&reason).await?,
            }
        };
        self.metrics.waiting.set(0.0);
        self.waiting_log.reset();
        self.draw_validation().await?;
        let batches = allowed.min(self.out.capacity().max(1) as u64);
        let drawn = self.draw(batches).await;
        // Batches that came before a failure are delivered.
        while self.deliver().await? {}
        drawn
    }

    async fn wait(&mut self, reason: &str) -> Result<(), Interruption> {
        self.metrics.waiting.set(1.0);
        if self.waiting_log.allows() {
            tracing::info!("{reason}");
        }
        tokio::select! {
            () = tokio::time::sleep(WAITING_INTERVAL) => {}
            () = self.out.closed() => return Err(Interruption::Closed),
        }
        self.read_stats(true).await
    }

    /// Reads the store's counts. `awaits_positions` tells the store that this learner waits for positions, so that the store does not
    /// hold games back.
    async fn read_stats(&mut self, awaits_positions: bool) -> Result<(), Interruption> {
        let mut request = tonic::Request::new(StatsRequest { awaits_positions });
        request.set_timeout(STORE_TIMEOUT);
        let stats = self.store.stats(request).await?.into_inner();
        self.ledger
            .observe(stats.positions_inserted, stats.window_positions);
        self.view
            .games_inserted
            .store(stats.games_inserted, Ordering::Relaxed);
        self.stats_at = Some(Instant::now());
        let Metrics {
            positions_inserted,
            window_positions,
            samples_forgone,
            ..
        } = &*self.metrics;
        positions_inserted.set(stats.positions_inserted as f64);
        window_positions.set(stats.window_positions as f64);
        samples_forgone.set(self.ledger.counts.forgone as f64);
        Ok(())
    }

    fn request(&self, batches: u64) -> SampleRequest {
        SampleRequest {
            batch_size: u32::try_from(self.config.batch_size).unwrap_or(u32::MAX),
            batches: u32::try_from(batches).unwrap_or(u32::MAX),
            seed: self.seed,
            first_batch: self.ledger.counts.next_batch,
            min_positions: self.config.min_positions,
            purpose: Purpose::Training.into(),
            line: self.ledger.counts.line,
            decisions: self.packer.completed_q.is_some(),
        }
    }

    /// Draws the validation batches of the next checkpoint, once for each checkpoint.
    async fn draw_validation(&mut self) -> Result<(), Interruption> {
        let interval = self.ledger.counts.next_batch / self.config.checkpoint_steps.max(1);
        if self.validated_interval.replace(interval) == Some(interval) {
            return Ok(());
        }
        let Some(held_out) = self.draw_for(Purpose::HeldOut).await? else {
            return Ok(());
        };
        let Some(trained) = self.draw_for(Purpose::Trained).await? else {
            return Ok(());
        };
        match self.packer.pack_valid(&held_out).and_then(|(held_out, invalid)| {
            self.leave_out(&invalid);
            let (trained, invalid) = self.packer.pack_valid(&trained)?;
            self.leave_out(&invalid);
            Ok(ValidationBatches { held_out, trained })
        }) {
            Ok(batches) => *self.view.validation.lock() = Some(batches),
            Err(error) => self.reject(error)?,
        }
        Ok(())
    }

    /// Draws one validation batch; `None` if the store has no such positions.
    async fn draw_for(&mut self, purpose: Purpose) -> Result<Option<Batch>, Interruption> {
        let request = SampleRequest {
            batch_size: VALIDATION_POSITIONS,
            min_positions: 0,
            purpose: purpose.into(),
            ..self.request(1)
        };
        let store = &mut self.store;
        let first = in_time(async { store.sample(request).await?.into_inner().message().await });
        Ok(first.await?)
    }

    /// Draws training batches, and delivers packed ones while it waits for the next.
    async fn draw(&mut self, batches: u64) -> Result<(), Interruption> {
        let request = self.request(batches);
        let mut stream = in_time(self.store.sample(request)).await?.into_inner();
        while let Some(batch) = self.while_packing(in_time(stream.message())).await?? {
            if batch.number != self.ledger.counts.next_batch {
                let text = format!(
                    "batch {} came, {} was requested",
                    batch.number, self.ledger.counts.next_batch
                );
                return Err(tonic::Status::data_loss(text).into());
            }
            self.ledger
                .observe(batch.positions_inserted, batch.window_positions);
            self.compare(&batch);
            self.begin_packing(batch).await?;
        }
        Ok(())
    }

    /// Counts a batch that an earlier process was given before, and logs if it has other positions now.
    fn compare(&self, batch: &Batch) {
        self.metrics.redrawn(batch.redraw());
        if batch.redraw() == Redraw::Other {
            tracing::warn!(
                batch = batch.number,
                "a batch that was given before has other positions now, because games are gone; training does not repeat exactly"
            );
        }
    }

    /// Begins to pack a batch. If enough batches are being packed, waits for the oldest one and delivers it.
    async fn begin_packing(&mut self, batch: Batch) -> Result<(), Interruption> {
        self.ledger.counts.next_batch += 1;
        self.has_delivered = true;
        let packer = Arc::clone(&self.packer);
        let (inserted, forgone) = (self.ledger.counts.inserted, self.ledger.counts.forgone);
        self.packing.push_back(spawn_blocking(move || {
            let (packed, invalid) = packer.pack_valid(&batch)?;
            let packed = HostBatch {
                inserted,
                forgone,
                ..packed
            };
            Ok((packed, invalid))
        }));
        while self.packing.len() >= LOADERS {
            self.deliver().await?;
        }
        Ok(())
    }

    /// Delivers the oldest batch that is being packed; returns `false` if there is none.
    async fn deliver(&mut self) -> Result<bool, Interruption> {
        match self.packing.next().await {
            None => return Ok(false),
            Some(packed) => self.settle(packed).await?,
        }
        Ok(true)
    }

    /// Delivers batches as they are packed until `work` is done.
    async fn while_packing<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Interruption> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                Some(packed) = self.packing.next() => self.settle(packed).await?,
                done = &mut work => return Ok(done),
            }
        }
    }

    async fn settle(&mut self, packed: Result<Packed, JoinError>) -> Result<(), Interruption> {
        let packed = packed.unwrap_or_else(|error| Err(BatchError::Packing(error.to_string())));
        let (batch, invalid) = match packed {
            Ok(packed) => packed,
            Err(error) => return self.reject(error),
        };
        // The store has counted them.
        self.ledger.take((batch.positions + invalid.len()) as u64);
        self.leave_out(&invalid);
        self.unusable = 0;
        self.out.send(batch).await.map_err(|_| Interruption::Closed)?;
        let prefetched = self.out.max_capacity() - self.out.capacity();
        self.metrics.prefetched_batches.set(prefetched as f64);
        Ok(())
    }

    /// Counts and logs samples that a batch was packed without.
    fn leave_out(&self, invalid: &[BatchError]) {
        self.metrics.unusable_positions.increment(invalid.len() as u64);
        if let Some(error) = invalid.first() {
            tracing::warn!(
                positions = invalid.len(),
                %error,
                "positions of a batch cannot be used and are left out"
            );
        }
    }

    /// Counts a batch that cannot be used.
    ///
    /// # Errors
    /// [`Interruption::Fatal`] if the store holds another game, or too many batches in a row could not be used.
    fn reject(&mut self, error: BatchError) -> Result<(), Interruption> {
        if matches!(error, BatchError::Game { .. }) {
            return Err(Interruption::Fatal(error.into()));
        }
        self.unusable += 1;
        self.metrics.unusable_batches.increment(1);
        tracing::warn!(%error, "a batch cannot be used; taking the next one");
        if self.unusable >= MAX_UNUSABLE {
            return Err(Interruption::Fatal(anyhow!(
                "{MAX_UNUSABLE} batches in a row could not be used, the last one because of {error}"
            )));
        }
        Ok(())
    }
}

/// Waits for an answer for at most [`STORE_TIMEOUT`].
async fn in_time<T>(answer: impl Future<Output = Result<T, tonic::Status>>) -> Result<T, tonic::Status> {
    tokio::time::timeout(STORE_TIMEOUT, answer)
        .await
        .unwrap_or_else(|_| Err(tonic::Status::deadline_exceeded("the store is silent")))
}
