//! A replay store over gRPC that serves synthetic positions of a real game, and fails if a test says so.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use config::GameConfig;
use games::RowLayout;
use learner::data::game::TrainingGame;
use parking_lot::Mutex;
use proto::v1::{Batch, Purpose, SampleRequest, StatsReply};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;
use test_support::{Batches, FakeStore};
use tonic::{Status, service::Routes};

#[derive(Debug, Default)]
pub struct State {
    /// Game of the positions.
    pub game: GameConfig,
    /// Positions inserted; also the size of the window.
    pub inserted: AtomicU64,
    /// True if every stream ends with an error after its first batch.
    pub breaks: AtomicBool,
    /// True if no position of a batch is valid.
    pub is_damaged: AtomicBool,
    /// Numbers of the batches that were sent.
    pub handed_out: Mutex<Vec<u64>>,
    /// True if some games are held out of training.
    pub holds_out: AtomicBool,
    /// Positions that are inserted only after a client has said that it waits for positions.
    pub held_back: AtomicU64,
    /// True if batches are of another game than requested.
    pub other_game: AtomicBool,
}

impl State {
    pub fn insert(&self, positions: u64) {
        self.inserted.fetch_add(positions, Ordering::SeqCst);
    }

    /// Returns the gRPC service.
    pub fn routes(self: &Arc<Self>) -> Routes {
        let game = TrainingGame::new(&self.game, 300, 77).unwrap();
        let positions = Positions {
            state: Arc::clone(self),
            rows: game.layout.split(&game.rows).map(<[u32]>::to_vec).collect(),
            layout: game.layout,
        };
        let state = Arc::clone(self);
        let store = FakeStore::with_batches(
            move |request| positions.sample(request),
            move |request| {
                if request.awaits_positions {
                    state.insert(state.held_back.swap(0, Ordering::SeqCst));
                }
                let inserted = state.inserted.load(Ordering::SeqCst);
                StatsReply {
                    games: inserted / 10,
                    games_inserted: inserted / 10,
                    window_positions: inserted,
                    positions_inserted: inserted,
                    ..StatsReply::default()
                }
            },
        );
        store.routes()
    }
}

struct Positions {
    state: Arc<State>,
    layout: RowLayout,
    rows: Vec<Vec<u32>>,
}

impl Positions {
    /// Returns batch `number`, which depends only on the seed and the number.
    fn batch(&self, positions: usize, seed: u64, number: u64) -> Batch {
        let mut draw = ChaCha20Rng::seed_from_u64(seed);
        draw.set_stream(number);
        let inserted = self.state.inserted.load(Ordering::SeqCst);
        let mut batch = Batch {
            number,
            positions: positions as u32,
            positions_inserted: inserted,
            window_positions: inserted,
            game: self.layout.game.clone(),
            options: self.layout.options,
            ..Batch::default()
        };
        let is_generator = self.layout.row_len().is_none();
        for _ in 0..positions {
            let at = draw.random_range(0..self.rows.len());
            let row = &self.rows[at];
            batch.rows.extend(row);
            batch.visit_counts.push(2);
            if is_generator {
                batch.row_lengths.push(row.len() as u32);
                // The root's mark and a fresh dot: every position has these moves.
                batch.visit_actions.extend([1, 2]);
                batch.results.push([0.0, 0.9][at % 2]);
            } else {
                let action = (at % 100) as u32;
                batch.visit_actions.extend([action, action + 20]);
                batch.results.push([-1.0, 1.0][at % 2]);
            }
            batch.visits.extend([70, 30]);
            batch.root_values.push(0.0);
            batch.game_sequences.push(at as u64);
            batch.plies.push(0);
        }
        if self.state.is_damaged.load(Ordering::SeqCst) {
            batch.root_values.fill(f32::NAN);
        }
        if self.state.other_game.load(Ordering::SeqCst) {
            batch.game = "chess".into();
        }
        batch
    }

    fn sample(&self, request: &SampleRequest) -> Batches {
        if request.purpose() != Purpose::Training {
            let is_there =
                request.purpose() == Purpose::Trained || self.state.holds_out.load(Ordering::SeqCst);
            // Validation draws differ from those of training.
            let seed = !request.seed ^ request.purpose as u64;
            let batch = is_there.then(|| Ok(self.batch(64, seed, request.first_batch)));
            return Ok(batch.into_iter().collect());
        }
        if request.batch_size > 256 {
            return Err(Status::invalid_argument("batch_size: 256 are possible"));
        }
        let breaks = self.state.breaks.load(Ordering::SeqCst);
        let count = if breaks { 1 } else { request.batches };
        let numbers = request.first_batch..request.first_batch + u64::from(count);
        let mut batches: Vec<Result<Batch, Status>> = numbers
            .map(|number| {
                self.state.handed_out.lock().push(number);
                Ok(self.batch(request.batch_size as usize, request.seed, number))
            })
            .collect();
        if breaks {
            batches.push(Err(Status::unavailable("the store is stopping")));
        }
        Ok(batches)
    }
}
