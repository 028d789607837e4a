//! A replay store over gRPC that serves synthetic positions of a real game, and fails if a test says so.
#![allow(dead_code, missing_docs)]

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use config::GameConfig;
use futures::Stream;
use games::RowLayout;
use learner::data::game::TrainingGame;
use parking_lot::Mutex;
use proto::v1::{
    self,
    replay_store_server::{ReplayStore, ReplayStoreServer},
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, transport::server::TcpIncoming};

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
    /// Number of positions that were sent.
    pub positions: AtomicU64,
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
}

struct Store {
    state: Arc<State>,
    layout: RowLayout,
    rows: Vec<Vec<u32>>,
}

type Streaming<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Serves the store on `listener` until `stop`.
pub async fn serve(listener: TcpListener, state: Arc<State>, stop: CancellationToken) {
    let game = TrainingGame::new(&state.game, 300, 77).unwrap();
    let store = Store {
        state,
        rows: game.layout.split(&game.rows).map(<[u32]>::to_vec).collect(),
        layout: game.layout,
    };
    tonic::transport::Server::builder()
        .add_service(ReplayStoreServer::new(store))
        .serve_with_incoming_shutdown(TcpIncoming::from(listener), stop.cancelled_owned())
        .await
        .unwrap();
}

impl Store {
    /// Returns batch `number`, which depends only on the seed and the number.
    fn batch(&self, positions: usize, seed: u64, number: u64) -> v1::Batch {
        let mut draw = ChaCha20Rng::seed_from_u64(seed);
        draw.set_stream(number);
        let inserted = self.state.inserted.load(Ordering::SeqCst);
        let mut batch = v1::Batch {
            number,
            positions: positions as u32,
            positions_inserted: inserted,
            window_positions: inserted,
            game: self.layout.game.clone(),
            options: self.layout.options,
            ..v1::Batch::default()
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
}

#[tonic::async_trait]
impl ReplayStore for Store {
    type AppendStream = Streaming<v1::AppendAck>;
    type SampleStream = Streaming<v1::Batch>;
    type ExportStream = Streaming<v1::StoredGame>;

    async fn append(
        &self,
        _: Request<tonic::Streaming<v1::Game>>,
    ) -> Result<Response<Self::AppendStream>, Status> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn sample(
        &self,
        request: Request<v1::SampleRequest>,
    ) -> Result<Response<Self::SampleStream>, Status> {
        let request = request.into_inner();
        if request.purpose() != v1::Purpose::Training {
            let is_there =
                request.purpose() == v1::Purpose::Trained || self.state.holds_out.load(Ordering::SeqCst);
            let batches = is_there.then(|| {
                // Validation draws differ from those of training.
                let seed = !request.seed ^ request.purpose as u64;
                Ok(self.batch(64, seed, request.first_batch))
            });
            return Ok(Response::new(Box::pin(futures::stream::iter(batches))));
        }
        if request.batch_size > 256 {
            return Err(Status::invalid_argument("batch_size: 256 are possible"));
        }
        let breaks = self.state.breaks.load(Ordering::SeqCst);
        let count = if breaks { 1 } else { request.batches };
        let mut batches: Vec<Result<v1::Batch, Status>> = (0..u64::from(count))
            .map(|more| {
                let number = request.first_batch + more;
                self.state.handed_out.lock().push(number);
                let positions = u64::from(request.batch_size);
                self.state.positions.fetch_add(positions, Ordering::SeqCst);
                Ok(self.batch(request.batch_size as usize, request.seed, number))
            })
            .collect();
        if breaks {
            batches.push(Err(Status::unavailable("the store is stopping")));
        }
        Ok(Response::new(Box::pin(futures::stream::iter(batches))))
    }

    async fn stats(&self, request: Request<v1::StatsRequest>) -> Result<Response<v1::StatsReply>, Status> {
        if request.into_inner().awaits_positions {
            self.state.insert(self.state.held_back.swap(0, Ordering::SeqCst));
        }
        let inserted = self.state.inserted.load(Ordering::SeqCst);
        Ok(Response::new(v1::StatsReply {
            games: inserted / 10,
            games_inserted: inserted / 10,
            window_positions: inserted,
            positions_inserted: inserted,
            ..v1::StatsReply::default()
        }))
    }

    async fn list_games(
        &self,
        _: Request<v1::ListGamesRequest>,
    ) -> Result<Response<v1::ListGamesReply>, Status> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn get_game(&self, _: Request<v1::GetGameRequest>) -> Result<Response<v1::Game>, Status> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn export(&self, _: Request<v1::ExportRequest>) -> Result<Response<Self::ExportStream>, Status> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn known_games(
        &self,
        _: Request<v1::KnownGamesRequest>,
    ) -> Result<Response<v1::KnownGamesReply>, Status> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn delete_games(
        &self,
        _: Request<v1::DeleteGamesRequest>,
    ) -> Result<Response<v1::DeleteGamesReply>, Status> {
        Err(Status::unimplemented("not needed here"))
    }
}
