//! Batches from the replay store, fetched ahead of training.
//!
//! The source requests as many batches as the ledger allows and the queue can hold, packs them, and survives restarts of the
//! store.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use config::LearnerConfig;
use proto::v1::{
    Batch, Purpose, Redraw, SampleRequest, StatsRequest, replay_store_client::ReplayStoreClient,
};
use service::{
    backoff::Backoff,
    connect::{Link, MAX_MESSAGE_BYTES},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    data::{
        batches::{BatchError, HostBatch},
        ledger::{DrawCounts, Ledger, Waiting},
        loaders::{LedgerCounts, Loaders, Packed},
        packer::Packer,
        store_view::{StoreView, ValidationBatches},
    },
    metrics::Metrics,
};

/// Threads that check and pack batches ahead of training.
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

/// Error: no more batches can come.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The store holds another game.
    #[error(transparent)]
    Game(BatchError),
    /// The store refused the request, and would refuse it again.
    #[error("the replay store refused the request: {0}")]
    Refused(String),
    /// Too many batches in a row could not be used.
    #[error("{count} batches in a row could not be used, the last one because of {last}")]
    Unusable {
        /// Number of batches.
        count: u32,
        /// Error of the last batch.
        last: BatchError,
    },
}

/// Fetches batches and sends them to the training thread.
#[derive(Debug)]
pub struct Source {
    store: ReplayStoreClient<Link>,
    packer: Arc<Packer>,
    loaders: Loaders,
    batch_size: usize,
    min_positions: u64,
    seed: u64,
    ledger: Ledger,
    next_batch: u64,
    line: u64,
    view: Arc<StoreView>,
    metrics: Arc<Metrics>,
    out: mpsc::Sender<HostBatch>,
    stats_at: Option<Instant>,
    logged_waiting_at: Option<Instant>,
    unusable: u32,
    /// Validation batches are requested once for this many training batches.
    validation_interval: u64,
    validated_interval: Option<u64>,
    /// True if a batch has come since the last failure.
    has_delivered: bool,
}

/// Reason why a fetch ended early.
enum Interruption {
    /// The store does not answer or failed; another attempt may succeed.
    Store(tonic::Status),
    /// Another attempt would fail as well.
    Fatal(SourceError),
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
            | Code::PermissionDenied => Self::Fatal(SourceError::Refused(status.message().to_owned())),
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
        config: &LearnerConfig,
        seed: u64,
        counts: &DrawCounts,
        metrics: Arc<Metrics>,
        out: mpsc::Sender<HostBatch>,
    ) -> Self {
        let packer = Arc::new(packer);
        Self {
            store: ReplayStoreClient::new(link).max_decoding_message_size(MAX_MESSAGE_BYTES),
            loaders: Loaders::new(Arc::clone(&packer), LOADERS),
            packer,
            batch_size: config.batch_size,
            min_positions: config.min_positions,
            seed,
            ledger: Ledger::new(config.samples_per_position, config.min_positions, counts),
            next_batch: counts.next_batch,
            line: counts.line,
            view: Arc::default(),
            metrics,
            out,
            stats_at: None,
            logged_waiting_at: None,
            unusable: 0,
            validation_interval: config.checkpoint_steps,
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
    /// [`SourceError`] if no more batches can come.
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
                    // Logged at attempts 1, 2, 4, 8, …, so that an outage of a day does not fill the disk with log lines.
                    if (backoff.attempts() + 1).is_power_of_two() {
                        tracing::warn!(
                            code = ?status.code(),
                            message = status.message(),
                            "the replay store does not answer; trying again"
                        );
                    }
                    self.metrics.store_failed();
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
            match self.ledger.allowed(self.batch_size) {
                Ok(batches) => break batches,
                Err(waiting) => self.wait(waiting).await?,
            }
        };
        self.metrics.set_waiting(false);
        self.logged_waiting_at = None;
        self.draw_validation().await?;
        let batches = allowed.min(self.out.capacity().max(1) as u64);
        let drawn = self.draw(batches).await;
        // Batches that came before a failure are delivered.
        while self.deliver().await? {}
        drawn
    }

    async fn wait(&mut self, waiting: Waiting) -> Result<(), Interruption> {
        self.metrics.set_waiting(true);
        if self
            .logged_waiting_at
            .is_none_or(|at| at.elapsed() >= WAITING_LOG_INTERVAL)
        {
            tracing::info!("{waiting}");
            self.logged_waiting_at = Some(Instant::now());
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
        self.view.set_games_inserted(stats.games_inserted);
        self.stats_at = Some(Instant::now());
        self.metrics.set_store_counts(
            stats.positions_inserted,
            stats.window_positions,
            self.ledger.forgone(),
        );
        Ok(())
    }

    fn request(&self, batches: u64) -> SampleRequest {
        SampleRequest {
            batch_size: u32::try_from(self.batch_size).unwrap_or(u32::MAX),
            batches: u32::try_from(batches).unwrap_or(u32::MAX),
            seed: self.seed,
            first_batch: self.next_batch,
            min_positions: self.min_positions,
            purpose: Purpose::Training.into(),
            line: self.line,
            decisions: self.packer.wants_decisions(),
        }
    }

    /// Draws the validation batches of the next checkpoint, once for each checkpoint.
    async fn draw_validation(&mut self) -> Result<(), Interruption> {
        let interval = self.next_batch / self.validation_interval.max(1);
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
            Ok(batches) => self.view.set_validation(batches),
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
            if batch.number != self.next_batch {
                let text = format!("batch {} came, {} was requested", batch.number, self.next_batch);
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

    /// Begins to pack a batch. If all loaders are busy, waits for the oldest batch and delivers it.
    async fn begin_packing(&mut self, batch: Batch) -> Result<(), Interruption> {
        self.next_batch += 1;
        self.has_delivered = true;
        let counts = LedgerCounts {
            inserted: self.ledger.inserted(),
            forgone: self.ledger.forgone(),
        };
        self.loaders.begin(batch, counts);
        while self.loaders.are_busy() {
            self.deliver().await?;
        }
        Ok(())
    }

    /// Delivers the oldest batch that is being packed; returns `false` if there is none.
    async fn deliver(&mut self) -> Result<bool, Interruption> {
        match self.loaders.next().await {
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
                Some(packed) = self.loaders.next() => self.settle(packed).await?,
                done = &mut work => return Ok(done),
            }
        }
    }

    async fn settle(&mut self, (counts, packed): (LedgerCounts, Packed)) -> Result<(), Interruption> {
        match packed {
            Ok((batch, invalid)) => {
                // The store has counted them.
                self.ledger.take((batch.positions + invalid.len()) as u64);
                self.leave_out(&invalid);
                self.send(batch, counts).await
            }
            Err(error) => self.reject(error),
        }
    }

    /// Counts and logs samples that a batch was packed without.
    fn leave_out(&self, invalid: &[BatchError]) {
        self.metrics.unusable_positions(invalid.len());
        if let Some(error) = invalid.first() {
            tracing::warn!(
                positions = invalid.len(),
                %error,
                "positions of a batch cannot be used and are left out"
            );
        }
    }

    async fn send(&mut self, mut batch: HostBatch, counts: LedgerCounts) -> Result<(), Interruption> {
        self.unusable = 0;
        batch.inserted = counts.inserted;
        batch.forgone = counts.forgone;
        self.out.send(batch).await.map_err(|_| Interruption::Closed)?;
        self.metrics
            .set_prefetched_batches(self.out.max_capacity() - self.out.capacity());
        Ok(())
    }

    /// Counts a batch that cannot be used.
    ///
    /// # Errors
    /// [`Interruption::Fatal`] if the store holds another game, or too many batches in a row could not be used.
    fn reject(&mut self, error: BatchError) -> Result<(), Interruption> {
        if matches!(error, BatchError::Game { .. }) {
            return Err(Interruption::Fatal(SourceError::Game(error)));
        }
        self.unusable += 1;
        self.metrics.unusable_batch();
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

/// Waits for an answer for at most [`STORE_TIMEOUT`].
async fn in_time<T>(answer: impl Future<Output = Result<T, tonic::Status>>) -> Result<T, tonic::Status> {
    tokio::time::timeout(STORE_TIMEOUT, answer)
        .await
        .unwrap_or_else(|_| Err(tonic::Status::deadline_exceeded("the store is silent")))
}
