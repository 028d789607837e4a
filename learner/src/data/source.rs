//! Batches from the replay store, or from several ([`crate::data::stores`]), fetched ahead of training: asks for what the ledger
//! allows and the queue can hold, checks and packs what comes, and survives the stores' restarts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use config::LearnerConfig;
use parking_lot::Mutex;
use proto::v1::{Batch, Purpose, SampleRequest, StatsRequest, replay_store_client::ReplayStoreClient};
use service::{
    backoff::Backoff,
    connect::{Link, MAX_MESSAGE_BYTES},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    data::{
        batches::{BatchError, HostBatch, Packer},
        ledger::{Ledger, Waiting},
        loaders::{Counted, Loaders, Packed},
        stores::{Stores, merged},
    },
    training::{train::Progress, validation::Measured},
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
/// Positions to validate on.
const VALIDATION_POSITIONS: u32 = 1024;
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
    measured: Mutex<Option<Measured>>,
}

impl StoreView {
    /// Games inserted into the store.
    pub fn games_inserted(&self) -> u64 {
        self.games_inserted.load(Ordering::Relaxed)
    }

    /// Positions to measure a network by, drawn not long ago; once.
    pub fn take_measured(&self) -> Option<Measured> {
        self.measured.lock().take()
    }
}

/// Where batches come from.
#[derive(Clone, Debug)]
enum Origin {
    /// One store.
    One {
        name: String,
        client: ReplayStoreClient<Link>,
    },
    /// Several.
    Several(Arc<Stores>),
}

/// Fetches batches.
#[derive(Debug)]
pub struct Source {
    from: Origin,
    packer: Arc<Packer>,
    loaders: Loaders,
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
    /// Held-out games are asked for once for so many batches.
    validation_batches: u64,
    validated_at: Option<u64>,
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
    /// Batches from the stores of these names, at least one, for training that stands at `progress`, packed by `packer`, to be
    /// sent to `out`; the draws are decided by `seed`. Call it within a runtime.
    pub fn new(
        mut stores: Vec<(String, Link)>,
        packer: Packer,
        config: &LearnerConfig,
        seed: u64,
        progress: &Progress,
        out: mpsc::Sender<HostBatch>,
    ) -> Self {
        let packer = Arc::new(packer);
        let names: Vec<String> = stores.iter().map(|(name, _)| name.clone()).collect();
        let ratio = config.samples_per_position;
        let ledger = Ledger::new(ratio, config.min_positions, progress, &names);
        let from = match stores.pop() {
            Some((name, link)) if stores.is_empty() => Origin::One {
                name,
                client: ReplayStoreClient::new(link).max_decoding_message_size(MAX_MESSAGE_BYTES),
            },
            last => Origin::Several(Arc::new(Stores::new(
                stores.into_iter().chain(last).collect(),
                seed,
            ))),
        };
        Self {
            from,
            loaders: Loaders::new(Arc::clone(&packer), config.loaders),
            packer,
            batch_size: config.batch_size,
            min_positions: config.min_positions,
            seed,
            ledger,
            next_batch: progress.next_batch,
            view: Arc::default(),
            out,
            stats_at: None,
            mentioned_at: None,
            unusable: 0,
            validation_batches: config.checkpoint_steps,
            validated_at: None,
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
            self.ask_stats(false).await?;
        }
        let allowed = loop {
            match self.ledger.allowed(self.batch_size) {
                Ok(batches) => break batches,
                Err(waiting) => self.wait(waiting).await?,
            }
        };
        metrics::gauge!("minuet_learner_waiting").set(0.0);
        self.mentioned_at = None;
        let batches = allowed.min(self.out.capacity().max(1) as u64);
        self.draw_measured().await?;
        let drawn = match self.from.clone() {
            Origin::One { name, client } => self.draw(client, &name, batches).await,
            Origin::Several(stores) => {
                stores.set_waiting(false);
                self.draw_parts(&stores, batches).await
            }
        };
        // What came counts, whatever came after it.
        while self.deliver().await? {}
        drawn
    }

    async fn wait(&mut self, waiting: Waiting) -> Result<(), Interruption> {
        metrics::gauge!("minuet_learner_waiting").set(1.0);
        if self.mentioned_at.is_none_or(|at| at.elapsed() >= MENTION) {
            tracing::info!("{waiting}");
            self.mentioned_at = Some(Instant::now());
        }
        if let Origin::Several(stores) = &self.from {
            stores.set_waiting(true);
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = self.out.closed() => return Err(Interruption::Closed),
        }
        self.ask_stats(true).await
    }

    /// Learns what the stores hold. One that hears that its positions are waited for holds no games back.
    async fn ask_stats(&mut self, awaits_positions: bool) -> Result<(), Interruption> {
        let (games, inserted, window, everywhere) = match &mut self.from {
            Origin::One { name, client } => {
                let mut request = tonic::Request::new(StatsRequest { awaits_positions });
                request.set_timeout(SILENCE);
                let stats = client.stats(request).await?.into_inner();
                self.ledger.observe(name, stats.positions_inserted);
                (
                    stats.games_inserted,
                    stats.positions_inserted,
                    stats.window_positions,
                    stats.window_positions,
                )
            }
            Origin::Several(stores) => {
                // They are asked all the time; what is known of them is looked at here.
                stores.known().await;
                let (mut games, mut inserted, mut window, mut everywhere) = (0, 0, 0, 0);
                for (name, counts, is_there) in stores.counts() {
                    self.ledger.observe(name, counts.positions_inserted);
                    games += counts.games_inserted;
                    inserted += counts.positions_inserted;
                    window += if is_there { counts.window_positions } else { 0 };
                    everywhere += counts.window_positions;
                }
                metrics::gauge!("minuet_learner_stores_away").set(stores.away() as f64);
                (games, inserted, window, everywhere)
            }
        };
        self.ledger.set_window(window, everywhere);
        self.view.games_inserted.store(games, Ordering::Relaxed);
        self.stats_at = Some(Instant::now());
        metrics::gauge!("minuet_learner_positions_inserted").set(inserted as f64);
        metrics::gauge!("minuet_learner_window_positions").set(window as f64);
        metrics::gauge!("minuet_learner_samples_forgone").set(self.ledger.forgone() as f64);
        Ok(())
    }

    /// What is asked for next.
    fn request(&self, batches: u64) -> SampleRequest {
        SampleRequest {
            batch_size: u32::try_from(self.batch_size).unwrap_or(u32::MAX),
            batches: u32::try_from(batches).unwrap_or(u32::MAX),
            seed: self.seed,
            first_batch: self.next_batch,
            min_positions: self.min_positions,
            auxiliary: self.packer.wants_auxiliary(),
            purpose: Purpose::Training.into(),
        }
    }

    /// Draws positions to validate on, in time for the next checkpoint. Of several stores one has its turn.
    async fn draw_measured(&mut self) -> Result<(), Interruption> {
        let period = self.next_batch / self.validation_batches.max(1);
        if self.validated_at.replace(period) == Some(period) {
            return Ok(());
        }
        let Some(held_out) = self.draw_for(Purpose::HeldOut, period).await? else {
            return Ok(());
        };
        let Some(trained) = self.draw_for(Purpose::Trained, period).await? else {
            return Ok(());
        };
        match self.packer.pack(&held_out).and_then(|held_out| {
            let trained = self.packer.pack(&trained)?;
            Ok(Measured { held_out, trained })
        }) {
            Ok(measured) => *self.view.measured.lock() = Some(measured),
            Err(error) => self.refuse(error)?,
        }
        Ok(())
    }

    async fn draw_for(&self, purpose: Purpose, turn: u64) -> Result<Option<Batch>, Interruption> {
        let request = SampleRequest {
            batch_size: VALIDATION_POSITIONS,
            min_positions: 0,
            purpose: purpose.into(),
            ..self.request(1)
        };
        Ok(match self.from.clone() {
            Origin::One { client, .. } => first_batch(client, request).await?,
            Origin::Several(stores) => stores.by_turns(request, turn).await?,
        })
    }

    /// Draws from several stores, a batch at a time.
    async fn draw_parts(&mut self, stores: &Stores, batches: u64) -> Result<(), Interruption> {
        for _ in 0..batches {
            let request = self.request(1);
            let drawn = async {
                let mut drawing = std::pin::pin!(stores.batch(request));
                tokio::select! {
                    parts = &mut drawing => parts,
                    () = tokio::time::sleep(POLL) => {
                        // A store holds its part back until more is inserted: none of them is to hold back games.
                        stores.set_waiting(true);
                        let parts = drawing.await;
                        stores.set_waiting(false);
                        parts
                    }
                }
            };
            let parts = self.while_packing(drawn).await??;
            for (name, part) in &parts {
                self.ledger.observe(name, part.positions_inserted);
                // One that holds another game is no part of this run, whatever the others hold.
                if let Err(error) = self.packer.check_game(part) {
                    return self.refuse(error);
                }
            }
            self.take(merged(parts.into_iter().map(|(_, part)| part).collect()))
                .await?;
        }
        // Their windows have grown meanwhile.
        self.ask_stats(false).await
    }

    async fn draw(
        &mut self,
        mut client: ReplayStoreClient<Link>,
        name: &str,
        batches: u64,
    ) -> Result<(), Interruption> {
        let request = self.request(batches);
        let mut stream = in_time(client.sample(request)).await?.into_inner();
        while let Some(batch) = self.while_packing(in_time(stream.message())).await?? {
            if batch.number != self.next_batch {
                let text = format!("batch {} came, {} was asked for", batch.number, self.next_batch);
                return Err(tonic::Status::data_loss(text).into());
            }
            self.ledger.observe(name, batch.positions_inserted);
            self.ledger
                .set_window(batch.window_positions, batch.window_positions);
            self.take(batch).await?;
        }
        Ok(())
    }

    /// Checks, packs and hands on a batch.
    async fn take(&mut self, batch: Batch) -> Result<(), Interruption> {
        self.next_batch += 1;
        self.has_delivered = true;
        let has_several = matches!(self.from, Origin::Several(_));
        let counted = Counted {
            inserted: self.ledger.inserted(),
            forgone: self.ledger.forgone(),
            stores: has_several.then(|| (self.ledger.store_inserted(), self.ledger.stores())),
        };
        self.loaders.begin(batch, counted);
        while self.loaders.are_busy() {
            self.deliver().await?;
        }
        Ok(())
    }

    /// Hands on the oldest batch that is being packed; `false` where there is none.
    async fn deliver(&mut self) -> Result<bool, Interruption> {
        match self.loaders.next().await {
            None => return Ok(false),
            Some(packed) => self.settle(packed).await?,
        }
        Ok(true)
    }

    /// Hands on batches as they are packed, until `work` is done.
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

    async fn settle(&mut self, (counted, packed): (Counted, Packed)) -> Result<(), Interruption> {
        match packed {
            Ok(batch) => self.hand_on(batch, counted).await,
            Err(error) => self.refuse(error),
        }
    }

    async fn hand_on(&mut self, mut batch: HostBatch, counted: Counted) -> Result<(), Interruption> {
        self.unusable = 0;
        self.ledger.take(batch.positions as u64);
        batch.inserted = counted.inserted;
        batch.forgone = counted.forgone;
        if let Some((inserted, stores)) = counted.stores {
            batch.positions_inserted = inserted;
            batch.stores = stores;
        }
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

/// The first batch of a request; `None` where there is none.
pub(crate) async fn first_batch(
    mut client: ReplayStoreClient<Link>,
    request: SampleRequest,
) -> Result<Option<Batch>, tonic::Status> {
    in_time(async { client.sample(request).await?.into_inner().message().await }).await
}

/// An answer, or an error once the store has been silent for too long.
pub(crate) async fn in_time<T>(
    answer: impl Future<Output = Result<T, tonic::Status>>,
) -> Result<T, tonic::Status> {
    tokio::time::timeout(SILENCE, answer)
        .await
        .unwrap_or_else(|_| Err(tonic::Status::deadline_exceeded("the store is silent")))
}
