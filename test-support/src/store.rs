//! A replay store in memory over gRPC: [`FakeStore`]. A test says what happens to each game and which batches there are.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use proto::v1::{
    AppendAck, Batch, DeleteGamesReply, DeleteGamesRequest, ExportRequest, Game, GetGameRequest,
    KnownGamesReply, KnownGamesRequest, ListGamesReply, ListGamesRequest, SampleRequest, StatsReply,
    StatsRequest, StoredGame,
    replay_store_server::{ReplayStore, ReplayStoreServer},
};
use tokio::sync::mpsc;
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming, service::Routes};

/// Treatment of a game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GameFate {
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

/// Batches of a request, or the reason why it is refused.
pub type Batches = Result<Vec<Result<Batch, Status>>, Status>;

/// Decides about a game, from the number of earlier games and the game.
type Decide = Box<dyn Fn(u64, &Game) -> GameFate + Send + Sync>;

/// A replay store that breaks streams, refuses games and repeats acknowledgements if a test says so.
pub struct FakeStore {
    /// The games that were kept, by id.
    pub games: Mutex<HashMap<Vec<u8>, Game>>,
    /// Ids in the order of their arrival, with repetitions.
    pub seen: Mutex<Vec<Vec<u8>>>,
    /// Number of games that arrived again.
    pub duplicates: AtomicU64,
    /// Number of games that arrived with the id of a different game.
    pub conflicts: AtomicU64,
    fate: Decide,
    sample: Box<dyn Fn(&SampleRequest) -> Batches + Send + Sync>,
    stats: Box<dyn Fn(&StatsRequest) -> StatsReply + Send + Sync>,
}

impl FakeStore {
    fn of(fate: impl Fn(u64, &Game) -> GameFate + Send + Sync + 'static) -> Self {
        Self {
            games: Mutex::default(),
            seen: Mutex::default(),
            duplicates: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            fate: Box::new(fate),
            sample: Box::new(|_| Err(Status::unimplemented(""))),
            stats: Box::new(|_| StatsReply::default()),
        }
    }

    /// Makes a store that takes games. `fate` receives the number of earlier games and the game.
    pub fn new(fate: impl Fn(u64, &Game) -> GameFate + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self::of(fate))
    }

    /// Makes a store that keeps every game.
    pub fn good() -> Arc<Self> {
        Self::new(|_, _| GameFate::Keep)
    }

    /// Makes a store that gives these batches and counts.
    pub fn with_batches(
        sample: impl Fn(&SampleRequest) -> Batches + Send + Sync + 'static,
        stats: impl Fn(&StatsRequest) -> StatsReply + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            sample: Box::new(sample),
            stats: Box::new(stats),
            ..Self::of(|_, _| GameFate::Refuse)
        })
    }

    /// Returns the gRPC service.
    pub fn routes(self: &Arc<Self>) -> Routes {
        Routes::new(ReplayStoreServer::new(Service(Arc::clone(self))))
    }

    /// Returns the number of games that were kept.
    pub fn count(&self) -> usize {
        self.games.lock().len()
    }

    /// Returns the games by their number in the actor.
    pub fn by_number(&self) -> HashMap<u64, Game> {
        let games = self.games.lock();
        let numbered = games.values().map(|game| (game.game_number, game.clone()));
        numbered.collect()
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

struct Service(Arc<FakeStore>);

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
                    GameFate::Keep => store.keep(game),
                    GameFate::KeepAndBreak => {
                        store.keep(game);
                        return;
                    }
                    GameFate::KeepAndRepeat => {
                        let ack = store.keep(game);
                        for _ in 0..2 {
                            let _ = acks.send(Ok(ack.clone())).await;
                        }
                        ack
                    }
                    GameFate::Break => return,
                    GameFate::Refuse => refusal(false),
                    GameFate::Later => refusal(true),
                    GameFate::Silence => continue,
                };
                if acks.send(Ok(ack)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(outbound)))
    }

    async fn sample(&self, request: Request<SampleRequest>) -> Result<Response<Self::SampleStream>, Status> {
        let batches = (self.0.sample)(request.get_ref())?;
        let (sender, outbound) = mpsc::channel(batches.len().max(1));
        for batch in batches {
            // The channel has room for all of them.
            drop(sender.try_send(batch));
        }
        Ok(Response::new(ReceiverStream::new(outbound)))
    }

    async fn stats(&self, request: Request<StatsRequest>) -> Result<Response<StatsReply>, Status> {
        Ok(Response::new((self.0.stats)(request.get_ref())))
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

    async fn known_games(&self, _: Request<KnownGamesRequest>) -> Result<Response<KnownGamesReply>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn delete_games(
        &self,
        _: Request<DeleteGamesRequest>,
    ) -> Result<Response<DeleteGamesReply>, Status> {
        Err(Status::unimplemented(""))
    }
}
