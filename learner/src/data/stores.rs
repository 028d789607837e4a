//! Several replay stores: what they hold, and batches drawn from all of them.
//!
//! A batch is divided among the stores in proportion to the positions that each draws from, so that every position of all
//! windows together is as likely as every other. A share that is no whole number is rounded up or down at random, without
//! bias: with `C(i)` the exact share of the first `i` stores and one draw `u` from [0, 1) for the batch, store `i` gives
//! `⌊C(i) + u⌋ − ⌊C(i−1) + u⌋` positions (systematic sampling, Madow 1949). The draw is keyed by (seed, batch number), the draws
//! within each store by that and its name: a batch is determined by seed, number and windows.
//!
//! A store that does not answer is left out, and its positions are not drawn, until it answers again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use proto::v1::{Batch, SampleRequest, StatsReply, StatsRequest, replay_store_client::ReplayStoreClient};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use service::connect::{Link, MAX_MESSAGE_BYTES};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tonic::Status;

use crate::data::source::{first_batch, in_time};

/// Between two looks at a store.
const LOOK: Duration = Duration::from_secs(1);
/// The same while positions are waited for.
const CLOSE_LOOK: Duration = Duration::from_millis(250);
/// A store that takes longer to say how much it holds is away.
const ANSWER: Duration = Duration::from_secs(5);
/// Keeps the draws of the division apart from others by the same seed.
const DIVISION_DRAWS: u64 = 0x6469_7669_7369_6f6e;

/// What a store held when it last said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Games ever inserted.
    pub games_inserted: u64,
    /// Positions ever inserted.
    pub positions_inserted: u64,
    /// Positions in its window.
    pub window_positions: u64,
    /// Positions of the window that it draws from.
    pub drawn_from: u64,
}

impl From<StatsReply> for Counts {
    fn from(stats: StatsReply) -> Self {
        Self {
            games_inserted: stats.games_inserted,
            positions_inserted: stats.positions_inserted,
            window_positions: stats.window_positions,
            drawn_from: stats.sampled_window_positions,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    counts: Option<Counts>,
    is_away: bool,
}

#[derive(Debug)]
struct Store {
    name: String,
    client: ReplayStoreClient<Link>,
    seed: u64,
    seen: watch::Sender<Seen>,
}

/// The stores of a run, looked at all the time for as long as this lives.
#[derive(Debug)]
pub struct Stores {
    stores: Vec<Arc<Store>>,
    seed: u64,
    is_waiting: Arc<AtomicBool>,
    // Ends the looks.
    _looking: JoinSet<()>,
}

impl Stores {
    /// Begins to look at these stores; `seed` decides the draws. Call it within a runtime.
    pub fn new(links: Vec<(String, Link)>, seed: u64) -> Self {
        let is_waiting = Arc::new(AtomicBool::new(false));
        let mut looking = JoinSet::new();
        let stores = links.into_iter().map(|(name, link)| {
            let store = Arc::new(Store {
                seed: own_seed(seed, &name),
                client: ReplayStoreClient::new(link).max_decoding_message_size(MAX_MESSAGE_BYTES),
                name,
                seen: watch::Sender::default(),
            });
            looking.spawn(look(Arc::clone(&store), Arc::clone(&is_waiting)));
            store
        });
        Self {
            stores: stores.collect(),
            seed,
            is_waiting,
            _looking: looking,
        }
    }

    /// Says whether positions are waited for. The stores are told, and hold no games back meanwhile: each may be behind in its own
    /// way, and what one holds back may be what keeps games from another.
    pub fn set_waiting(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    /// Waits until each store has answered or failed to: whoever is fastest after a start would give the first batches alone.
    pub async fn known(&self) {
        for store in &self.stores {
            let mut seen = store.seen.subscribe();
            // The sender lives as long as this.
            let _ = seen.wait_for(|seen| seen.counts.is_some() || seen.is_away).await;
        }
    }

    /// What each store held when it last answered, and whether it answers now; those that never did are left out.
    pub fn counts(&self) -> Vec<(&str, Counts, bool)> {
        let known = self.stores.iter().filter_map(|store| {
            let Seen { counts, is_away } = *store.seen.borrow();
            Some((store.name.as_str(), counts?, !is_away))
        });
        known.collect()
    }

    /// Number of stores that do not answer.
    pub fn away(&self) -> usize {
        let seen = self.stores.iter().map(|store| *store.seen.borrow());
        seen.filter(|seen| seen.is_away).count()
    }

    /// A batch to measure by from the store whose `turn` it is among those that answer; `None` where it has none.
    ///
    /// # Errors
    /// The store's status.
    pub async fn by_turns(&self, request: SampleRequest, turn: u64) -> Result<Option<Batch>, Status> {
        let present: Vec<&Arc<Store>> = self
            .stores
            .iter()
            .filter(|store| !store.seen.borrow().is_away)
            .collect();
        let Some(store) = present.get((turn % present.len().max(1) as u64) as usize) else {
            return Ok(None);
        };
        first_batch(store.client.clone(), request).await
    }

    /// The first batch of a request from all stores that answer, in parts: from whom, and what. At least one.
    ///
    /// # Errors
    /// The status of the first part that does not come; its store is left out of the next batch unless it answers.
    pub async fn batch(&self, request: SampleRequest) -> Result<Vec<(String, Batch)>, Status> {
        let present: Vec<(&Arc<Store>, u64)> = self
            .stores
            .iter()
            .filter_map(|store| {
                let seen = *store.seen.borrow();
                Some((store, seen.counts.filter(|_| !seen.is_away)?.drawn_from))
            })
            .collect();
        let windows: Vec<u64> = present.iter().map(|(_, window)| *window).collect();
        let Some(shares) = shares(
            self.seed,
            request.first_batch,
            u64::from(request.batch_size),
            &windows,
        ) else {
            return Err(Status::unavailable("no replay store answers that has positions"));
        };
        let mut drawing = JoinSet::new();
        for (place, ((store, _), share)) in present.iter().zip(shares).enumerate() {
            if share > 0 {
                let store = Arc::clone(store);
                drawing.spawn(async move {
                    let part = store.part(share, request).await?;
                    Ok::<_, Status>((place, store.name.clone(), part))
                });
            }
        }
        let mut parts = Vec::new();
        while let Some(part) = drawing.join_next().await {
            parts.push(part.map_err(|error| Status::internal(error.to_string()))??);
        }
        parts.sort_by_key(|(place, ..)| *place);
        Ok(parts.into_iter().map(|(_, name, part)| (name, part)).collect())
    }
}

impl Store {
    /// So many positions of the first batch that is asked for.
    async fn part(&self, positions: u64, request: SampleRequest) -> Result<Batch, Status> {
        let number = request.first_batch;
        let request = SampleRequest {
            batch_size: u32::try_from(positions).unwrap_or(u32::MAX),
            batches: 1,
            seed: self.seed,
            min_positions: 0,
            ..request
        };
        let mut client = self.client.clone();
        let drawn = in_time(async {
            let mut stream = client.sample(request).await?.into_inner();
            let batch = stream.message().await?;
            let batch = batch.ok_or_else(|| Status::unavailable("the store ended the stream"))?;
            if (batch.number, u64::from(batch.positions)) != (number, positions) {
                return Err(Status::data_loss("another batch came than was asked for"));
            }
            Ok(batch)
        });
        let mut seen = self.seen.subscribe();
        let goes_away = async {
            // A store that is being dropped with its task never goes away.
            if seen.wait_for(|seen| seen.is_away).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let drawn = tokio::select! {
            biased;
            drawn = drawn => drawn,
            () = goes_away => Err(Status::unavailable("the store does not answer any more")),
        };
        drawn.map_err(|status| {
            if status.code() == tonic::Code::Unavailable {
                // The next look may find it there again.
                self.seen.send_modify(|seen| seen.is_away = true);
            }
            Status::new(status.code(), format!("{}: {}", self.name, status.message()))
        })
    }
}

/// Asks a store again and again what it holds.
async fn look(store: Arc<Store>, is_waiting: Arc<AtomicBool>) {
    let mut client = store.client.clone();
    let mut failures = 0u64;
    loop {
        let awaits_positions = is_waiting.load(Ordering::Relaxed);
        let asked = timeout(ANSWER, client.stats(StatsRequest { awaits_positions })).await;
        match asked.unwrap_or_else(|_| Err(Status::deadline_exceeded("it is silent"))) {
            Ok(reply) => {
                if std::mem::take(&mut failures) > 0 {
                    tracing::info!(
                        store = store.name,
                        "the replay store is back, and drawn from again"
                    );
                }
                store.seen.send_replace(Seen {
                    counts: Some(reply.into_inner().into()),
                    is_away: false,
                });
            }
            Err(status) => {
                failures += 1;
                // At 1, 2, 4, 8, … looks: an outage of a day must not fill the disk with its own log.
                if failures.is_power_of_two() {
                    tracing::warn!(
                        store = store.name,
                        code = ?status.code(),
                        message = status.message(),
                        "a replay store does not answer; its positions are not drawn until it does"
                    );
                }
                metrics::counter!("minuet_learner_store_failures_total").increment(1);
                store.seen.send_modify(|seen| seen.is_away = true);
            }
        }
        let pause = if awaits_positions { CLOSE_LOOK } else { LOOK };
        sleep(pause).await;
    }
}

/// The seed of a store's draws: stores that drew by the same numbers would give positions of the same age.
fn own_seed(seed: u64, name: &str) -> u64 {
    // FNV-1a over the name, from the seed.
    name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// How many of a batch's positions each store gives, in proportion to `windows`; `None` where those are empty.
fn shares(seed: u64, number: u64, positions: u64, windows: &[u64]) -> Option<Vec<u64>> {
    let all: u128 = windows.iter().map(|&window| u128::from(window)).sum();
    if all == 0 {
        return None;
    }
    let mut draw = ChaCha8Rng::seed_from_u64(seed ^ DIVISION_DRAWS);
    draw.set_stream(number);
    let offset = draw.random_range(0..all);
    let (mut sum, mut given) = (0u128, 0u64);
    let each = windows.iter().map(|&window| {
        sum += u128::from(window);
        // Below 2^64, since `sum` is at most `all`.
        let so_far = ((u128::from(positions) * sum + offset) / all) as u64;
        std::mem::replace(&mut given, so_far).abs_diff(so_far)
    });
    Some(each.collect())
}

/// One batch of the parts that several stores gave, which is not empty. Sequence numbers are each store's own.
pub fn merged(parts: Vec<Batch>) -> Batch {
    let mut parts = parts.into_iter();
    let mut whole = parts.next().unwrap_or_default();
    for part in parts {
        // Every field is named, so that one more is not forgotten here.
        let Batch {
            number: _,
            positions,
            rows,
            row_lengths,
            visit_counts,
            visit_actions,
            visits,
            results,
            root_values,
            game_sequences,
            plies,
            positions_inserted,
            window_positions,
            game: _,
            options: _,
            reply_counts,
            reply_actions,
            reply_visits,
            moves_left,
        } = part;
        whole.positions += positions;
        whole.rows.extend(rows);
        whole.row_lengths.extend(row_lengths);
        whole.visit_counts.extend(visit_counts);
        whole.visit_actions.extend(visit_actions);
        whole.visits.extend(visits);
        whole.results.extend(results);
        whole.root_values.extend(root_values);
        whole.game_sequences.extend(game_sequences);
        whole.plies.extend(plies);
        whole.reply_counts.extend(reply_counts);
        whole.reply_actions.extend(reply_actions);
        whole.reply_visits.extend(reply_visits);
        whole.moves_left.extend(moves_left);
        whole.positions_inserted += positions_inserted;
        whole.window_positions += window_positions;
    }
    whole
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_add_up_and_are_as_near_as_whole_numbers_can_be(
            seed: u64,
            number: u64,
            positions in 1u64..100_000,
            windows in prop::collection::vec(prop_oneof![Just(0u64), 1u64..10, 1u64..10_000_000, Just(u64::MAX / 8)], 1..8),
        ) {
            let all: u128 = windows.iter().map(|&window| u128::from(window)).sum();
            let Some(found) = shares(seed, number, positions, &windows) else {
                prop_assert_eq!(all, 0);
                return Ok(());
            };
            prop_assert_eq!(found.iter().sum::<u64>(), positions);
            let again = shares(seed, number, positions, &windows);
            prop_assert_eq!(Some(&found), again.as_ref());
            for (share, window) in found.into_iter().zip(windows) {
                let exact = u128::from(positions) * u128::from(window);
                prop_assert!(u128::from(share) <= exact.div_ceil(all));
                prop_assert!(u128::from(share) >= exact / all);
            }
        }
    }

    /// Over many batches each window gets its share, to within five deviations of sums of rounded numbers.
    #[test]
    fn rounding_is_fair() {
        const BATCHES: u64 = 20_000;
        let windows = [3, 50, 7, 0, 1];
        let mut sums = [0u64; 5];
        for number in 0..BATCHES {
            for (sum, share) in sums.iter_mut().zip(shares(9, number, 32, &windows).unwrap()) {
                *sum += share;
            }
        }
        for (sum, window) in sums.into_iter().zip(windows) {
            let expected = 32.0 * BATCHES as f64 * window as f64 / 61.0;
            let deviation = (BATCHES as f64).sqrt() / 2.0;
            assert!(
                (sum as f64 - expected).abs() <= 5.0 * deviation,
                "{sum}, {expected}"
            );
        }
    }

    #[test]
    fn stores_draw_by_seeds_of_their_own() {
        let seeds = ["a", "b", "a:1", "a:2"].map(|name| own_seed(1, name));
        let distinct: std::collections::BTreeSet<u64> = seeds.into();
        assert_eq!(distinct.len(), 4);
        assert_ne!(own_seed(1, "a"), own_seed(2, "a"));
    }

    #[test]
    fn parts_become_one_batch() {
        let part = |positions: u32| Batch {
            number: 7,
            positions,
            rows: (0..positions * 3).collect(),
            visit_counts: vec![1; positions as usize],
            positions_inserted: 10,
            window_positions: 5,
            game: "g".into(),
            ..Batch::default()
        };
        let whole = merged(vec![part(2), part(3)]);
        assert_eq!((whole.number, whole.positions, whole.rows.len()), (7, 5, 15));
        assert_eq!((whole.positions_inserted, whole.window_positions), (20, 10));
        assert_eq!((whole.visit_counts.len(), whole.game.as_str()), (5, "g"));
        assert_eq!(merged(vec![part(4)]), part(4));
    }
}
