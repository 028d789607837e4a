//! `minuet.v1.ReplayStore`: the gRPC service of the store. Calls that block on the disk run on blocking threads.
//!
//! | module | contents |
//! |---|---|
//! | [`appending`] | one `Append` stream: games in, acknowledgements out |
//! | [`exporting`] | one `Export` stream: games out |
//! | [`sampling`] | one `Sample` stream: batches out |

mod appending;
mod exporting;
mod sampling;

use std::sync::Arc;

use futures::stream::BoxStream;
use prost::Message as _;

use proto::v1::{
    AppendAck, Batch, DeleteGamesReply, DeleteGamesRequest, ExportRequest, Game, GameFilter, GameSort,
    GetGameRequest, KnownGamesReply, KnownGamesRequest, ListGamesReply, ListGamesRequest, SampleRequest,
    StatsReply, StatsRequest, StoredGame,
    replay_store_server::{ReplayStore, ReplayStoreServer},
};
use service::{calls::replies::Replies, connect::MAX_MESSAGE_BYTES, process::cores};
use tokio::sync::Semaphore;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::{
    log::frame::Id,
    record::filter::Filter,
    settings::{MAX_GAME_BYTES, MAX_KNOWN_IDS, MAX_LISTED},
    store::{DeleteError, GetError, Listing, Store},
    window::catalog::{Cursor, Place},
};

/// Memory that a reply with one game needs, in bytes. A longer game takes more after it was read.
const GAME_BYTES: usize = 64 << 10;

/// Memory that the summary of one game in a list needs, in bytes.
const SUMMARY_BYTES: usize = 512;

/// The service of a store.
#[derive(Clone, Debug)]
pub struct Rpc {
    store: Arc<Store>,
    shutdown: CancellationToken,
    /// Limits the threads that read stored games. Batches have their own, so that they do not wait for exports.
    scans: Arc<Semaphore>,
    /// Limits the threads that draw batches.
    draws: Arc<Semaphore>,
}

impl Rpc {
    /// Serves `store`. Streams end when `shutdown` is cancelled.
    pub fn new(store: Arc<Store>, shutdown: CancellationToken) -> Self {
        let [scans, draws] = [(); 2].map(|()| Arc::new(Semaphore::new(cores().max(2))));
        Self {
            store,
            shutdown,
            scans,
            draws,
        }
    }

    /// Returns the tonic service with its message limits.
    pub fn into_service(self) -> ReplayStoreServer<Self> {
        ReplayStoreServer::new(self)
            .max_decoding_message_size(MAX_GAME_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Refuses calls that change a store which is open for reading only.
    fn writable(&self) -> Result<(), Status> {
        match self.store.is_read_only() {
            true => Err(Status::failed_precondition("the store is open for reading only")),
            false => Ok(()),
        }
    }

    /// Runs `work`, which blocks on the disk, on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let store = Arc::clone(&self.store);
        tokio::task::spawn_blocking(move || work(&store))
            .await
            .map_err(|error| Status::internal(error.to_string()))
    }

    /// Runs `work`, which reads stored games, on one of the threads for that.
    async fn scanning<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> T + Send + 'static,
    ) -> Result<T, Status> {
        self.on_thread_of(&self.scans, work).await
    }

    /// Waits for a thread of `threads`, and runs `work` there.
    async fn on_thread_of<T: Send + 'static>(
        &self,
        threads: &Arc<Semaphore>,
        work: impl FnOnce(&Store) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let thread = Arc::clone(threads).acquire_owned().await;
        // The work continues if the caller goes away, and then still has its thread.
        self.blocking(move |store| {
            let _thread = thread;
            work(store)
        })
        .await
    }
}

#[tonic::async_trait]
impl ReplayStore for Rpc {
    type AppendStream = ReceiverStream<Result<AppendAck, Status>>;
    type SampleStream = BoxStream<'static, Result<Batch, Status>>;
    type ExportStream = BoxStream<'static, Result<StoredGame, Status>>;

    async fn append(
        &self,
        request: Request<Streaming<Game>>,
    ) -> Result<Response<Self::AppendStream>, Status> {
        self.writable()?;
        let acks = appending::start(
            Arc::clone(&self.store),
            self.shutdown.clone(),
            request.into_inner(),
        );
        Ok(Response::new(acks))
    }

    async fn sample(&self, request: Request<SampleRequest>) -> Result<Response<Self::SampleStream>, Status> {
        self.writable()?;
        let replies = Replies::of(&request);
        sampling::start(self.clone(), replies, request.into_inner()).map(Response::new)
    }

    async fn known_games(
        &self,
        request: Request<KnownGamesRequest>,
    ) -> Result<Response<KnownGamesReply>, Status> {
        let ids = request.into_inner().ids;
        if ids.len() > MAX_KNOWN_IDS {
            let reason = format!("ids: {} ids, but at most {MAX_KNOWN_IDS} are accepted", ids.len());
            return Err(Status::invalid_argument(reason));
        }
        let parsed = ids
            .iter()
            .map(|id| id.as_ref().try_into().map_err(|_| invalid_id(id)));
        let parsed: Vec<Id> = parsed.collect::<Result<_, _>>()?;
        let known = self.blocking(move |store| store.are_known(&parsed)).await?;
        let ids = ids
            .into_iter()
            .zip(known)
            .filter_map(|(id, is_known)| is_known.then_some(id));
        Ok(Response::new(KnownGamesReply { ids: ids.collect() }))
    }

    async fn stats(&self, request: Request<StatsRequest>) -> Result<Response<StatsReply>, Status> {
        if request.into_inner().awaits_positions {
            self.store.uses_bound().record_waiting_learner();
        }
        self.blocking(Store::stats).await.map(Response::new)
    }

    async fn list_games(
        &self,
        request: Request<ListGamesRequest>,
    ) -> Result<Response<ListGamesReply>, Status> {
        let replies = Replies::of(&request);
        let ListGamesRequest {
            after_sequence,
            limit,
            newest_first,
            filter,
            sort,
            cursor,
        } = request.into_inner();
        if limit == 0 || limit > MAX_LISTED {
            return Err(Status::invalid_argument(format!(
                "limit: {limit} is not between 1 and {MAX_LISTED}"
            )));
        }
        let filter = parse_filter(filter)?;
        let sort = GameSort::try_from(sort)
            .map_err(|_| Status::invalid_argument(format!("sort: {sort} is unknown to this build")))?;
        let limit = limit as usize;
        let listing = Listing {
            sort,
            descending: newest_first,
            limit,
            after: parse_cursor(sort, &cursor)?,
        };
        let mut reserved = replies.reserve(limit * SUMMARY_BYTES).await;
        let listed = self.scanning(move |store| match sort {
            GameSort::Sequence => ListGamesReply {
                games: store.list(after_sequence, limit, newest_first, &filter),
                ..ListGamesReply::default()
            },
            _ => {
                let page = store.page(&listing, &filter);
                ListGamesReply {
                    games: page.games,
                    next_cursor: page.next.map(Cursor::pack).unwrap_or_default().into(),
                    unreadable: page.unreadable,
                }
            }
        });
        let listed = listed.await?;
        reserved.resize(listed.encoded_len());
        reserved.hand_over();
        Ok(Response::new(listed))
    }

    async fn get_game(&self, request: Request<GetGameRequest>) -> Result<Response<Game>, Status> {
        let replies = Replies::of(&request);
        let id = request.into_inner().id;
        let id = id.as_ref().try_into().map_err(|_| invalid_id(&id))?;
        let mut reserved = replies.reserve(GAME_BYTES).await;
        let found = self.scanning(move |store| store.get(&id)).await?;
        let found = found.inspect(|game| reserved.resize(game.encoded_len()));
        reserved.hand_over();
        found.map(Response::new).map_err(|error| {
            let message = error.to_string();
            match error {
                GetError::Unknown | GetError::Retired => Status::not_found(message),
                GetError::Damaged { .. } => Status::data_loss(message),
            }
        })
    }

    async fn delete_games(
        &self,
        request: Request<DeleteGamesRequest>,
    ) -> Result<Response<DeleteGamesReply>, Status> {
        let DeleteGamesRequest { filter, dry_run } = request.into_inner();
        if !dry_run {
            self.writable()?;
        }
        let filter = parse_filter(filter)?;
        if filter.is_empty() {
            return Err(Status::invalid_argument(
                "filter: an empty filter would delete every game; name at least one condition",
            ));
        }
        let found = self.scanning(move |store| store.find(&filter)).await?;
        if dry_run {
            return Ok(Response::new(DeleteGamesReply {
                games: found.len() as u64,
                positions: found.iter().map(|&(_, positions)| u64::from(positions)).sum(),
            }));
        }
        let sequences = found.into_iter().map(|(sequence, _)| sequence).collect();
        let deleted = self.store.delete(sequences).await.map_err(|error| match error {
            DeleteError::Full => Status::resource_exhausted(error.to_string()),
            DeleteError::Failed(failure) => Status::unavailable(failure.to_string()),
        })?;
        tracing::warn!(
            games = deleted.games,
            positions = deleted.positions,
            "games were deleted on request"
        );
        Ok(Response::new(deleted))
    }

    async fn export(&self, request: Request<ExportRequest>) -> Result<Response<Self::ExportStream>, Status> {
        let replies = Replies::of(&request);
        exporting::start(self.clone(), replies, request.into_inner()).map(Response::new)
    }
}

/// Returns the status with which streams end on shutdown. Clients then connect again.
fn shutting_down() -> Status {
    Status::unavailable("the replay store is shutting down")
}

fn invalid_id(id: &[u8]) -> Status {
    Status::invalid_argument(format!("id: {} bytes, 16 expected", id.len()))
}

/// Returns the place that a request's cursor encodes; `None` for an empty cursor.
fn parse_cursor(sort: GameSort, cursor: &[u8]) -> Result<Option<Place>, Status> {
    if cursor.is_empty() {
        return Ok(None);
    }
    match Cursor::unpack(cursor) {
        Some(cursor) if i32::from(cursor.sort) == sort as i32 => Ok(Some(cursor.place)),
        Some(_) => Err(Status::invalid_argument(
            "cursor: it belongs to a list with another sort order",
        )),
        None => Err(Status::invalid_argument(
            "cursor: it was not returned by a store of this version",
        )),
    }
}

/// Returns the filter of a request.
fn parse_filter(filter: Option<GameFilter>) -> Result<Filter, Status> {
    Filter::new(filter).map_err(|error| Status::invalid_argument(error.to_string()))
}
