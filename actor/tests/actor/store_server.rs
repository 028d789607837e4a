//! A replay store in memory that breaks streams, refuses games and repeats acknowledgements at a test's choice.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use proto::v1::{
    AppendAck, Batch, ExportRequest, Game, GetGameRequest, ListGamesReply, ListGamesRequest, SampleRequest,
    StatsReply, StatsRequest, StoredGame,
    replay_store_server::{ReplayStore, ReplayStoreServer},
};
use tokio::sync::mpsc;
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming, service::Routes};

/// Treatment of a game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// The game is kept and acknowledged.
    Keep,
    /// The game is kept, but the stream breaks before the acknowledgement.
    KeepAndBreak,
    /// The game is kept and acknowledged three times.
    KeepAndRepeat,
    /// The stream breaks and the game is not kept.
    Break,
    /// The game is refused permanently.
    Refuse,
    /// The game is refused temporarily.
    Later,
    /// The game is ignored.
    Silence,
}

type Decide = Box<dyn Fn(u64, &Game) -> Fate + Send + Sync>;

pub struct Store {
    pub games: Mutex<HashMap<Vec<u8>, Game>>,
    /// Ids in the order of their arrival, with repetitions.
    pub seen: Mutex<Vec<Vec<u8>>>,
    pub duplicates: AtomicU64,
    /// Games that arrived with the id of a different game.
    pub conflicts: AtomicU64,
    fate: Decide,
}

impl Store {
    /// Makes a store. `fate` receives the number of earlier games and the game.
    pub fn new(fate: impl Fn(u64, &Game) -> Fate + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            games: Mutex::default(),
            seen: Mutex::default(),
            duplicates: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            fate: Box::new(fate),
        })
    }

    pub fn good() -> Arc<Self> {
        Self::new(|_, _| Fate::Keep)
    }

    pub fn routes(self: &Arc<Self>) -> Routes {
        Routes::new(ReplayStoreServer::new(Service(Arc::clone(self))))
    }

    pub fn count(&self) -> usize {
        self.games.lock().len()
    }

    /// Returns the games by their number in the actor.
    pub fn by_number(&self) -> HashMap<u64, Game> {
        let games = self.games.lock();
        games
            .values()
            .map(|game| (game.game_number, game.clone()))
            .collect()
    }

    fn keep(&self, game: Game) -> AppendAck {
        let id = game.id.clone();
        let before = self.games.lock().insert(id.to_vec(), game.clone());
        let duplicate = before.is_some();
        let is_another = before.is_some_and(|before| before != game);
        self.conflicts.fetch_add(u64::from(is_another), Ordering::SeqCst);
        self.duplicates.fetch_add(u64::from(duplicate), Ordering::SeqCst);
        AppendAck {
            id,
            duplicate,
            ..Default::default()
        }
    }
}

struct Service(Arc<Store>);

type Replies<T> = ReceiverStream<Result<T, Status>>;

#[tonic::async_trait]
impl ReplayStore for Service {
    type AppendStream = Replies<AppendAck>;
    type SampleStream = Replies<Batch>;
    type ExportStream = Replies<StoredGame>;

    async fn append(&self, games: Request<Streaming<Game>>) -> Result<Response<Self::AppendStream>, Status> {
        let store = Arc::clone(&self.0);
        let mut games = games.into_inner();
        let (acks, outbound) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(Ok(game)) = games.next().await {
                let nth = {
                    let mut seen = store.seen.lock();
                    seen.push(game.id.to_vec());
                    seen.len() as u64 - 1
                };
                let fate = (store.fate)(nth, &game);
                let id = game.id.clone();
                let refusal = |retry| AppendAck {
                    id,
                    refused: "as the test wishes".into(),
                    retry,
                    ..Default::default()
                };
                let ack = match fate {
                    Fate::Keep => store.keep(game),
                    Fate::KeepAndBreak => {
                        store.keep(game);
                        return;
                    }
                    Fate::KeepAndRepeat => {
                        let ack = store.keep(game);
                        for _ in 0..2 {
                            let _ = acks.send(Ok(ack.clone())).await;
                        }
                        ack
                    }
                    Fate::Break => return,
                    Fate::Refuse => refusal(false),
                    Fate::Later => refusal(true),
                    Fate::Silence => continue,
                };
                if acks.send(Ok(ack)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(outbound)))
    }

    async fn sample(&self, _: Request<SampleRequest>) -> Result<Response<Self::SampleStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn stats(&self, _: Request<StatsRequest>) -> Result<Response<StatsReply>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_games(&self, _: Request<ListGamesRequest>) -> Result<Response<ListGamesReply>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_game(&self, _: Request<GetGameRequest>) -> Result<Response<Game>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn export(&self, _: Request<ExportRequest>) -> Result<Response<Self::ExportStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn known_games(
        &self,
        _: Request<proto::v1::KnownGamesRequest>,
    ) -> Result<Response<proto::v1::KnownGamesReply>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn delete_games(
        &self,
        _: Request<proto::v1::DeleteGamesRequest>,
    ) -> Result<Response<proto::v1::DeleteGamesReply>, Status> {
        Err(Status::unimplemented(""))
    }
}
