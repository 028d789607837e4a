//! [`Store`]: the stored games of the run, from the store that serves them or from the folder of a stopped run.
//!
//! The folder of a stopped run is opened for reading only, and closed soon after the last request, so that the run can start.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use anyhow::Context as _;
use config::SecurityConfig;
use proto::v1::{
    Game, GameFilter, GameSort, GetGameRequest, ListGamesReply, ListGamesRequest,
    replay_store_client::ReplayStoreClient,
};
use replay_store::{settings::Settings, store::Store as Folder};
use service::connect::{self, Link, MAX_MESSAGE_BYTES};
use tokio::{net::TcpListener, sync::Mutex, time::Instant};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use crate::{app::Run, failure::Failure};

/// Time after the last request at which the folder of a stopped run is closed.
const IDLE: Duration = Duration::from_secs(3);
/// Longest time for a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Order and direction of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Order.
    pub sort: GameSort,
    /// True for the newest, longest or most surprising games first.
    pub descending: bool,
}

/// The newest games first.
pub const NEWEST: Order = Order {
    sort: GameSort::Time,
    descending: true,
};

type Client = ReplayStoreClient<Link>;

/// The stored games of a run.
#[derive(Debug)]
pub struct Store {
    run: Run,
    opened: Arc<Mutex<Option<Opened>>>,
}

/// The folder of a stopped run, served to this process alone.
#[derive(Debug)]
struct Opened {
    client: Client,
    shutdown: CancellationToken,
    used: Instant,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Store {
    /// Store of a run. Nothing is opened yet.
    pub fn new(run: &Run) -> Self {
        Self {
            run: run.clone(),
            opened: Arc::default(),
        }
    }

    /// Returns at most `limit` games in an order, from after `cursor` on (empty: from the beginning).
    ///
    /// # Errors
    /// [`Failure`] if the store does not answer, or refuses the request.
    pub async fn list(
        &self,
        order: Order,
        filter: GameFilter,
        limit: u32,
        cursor: Vec<u8>,
    ) -> Result<ListGamesReply, Failure> {
        let request = ListGamesRequest {
            limit,
            newest_first: order.descending,
            filter: Some(filter),
            sort: order.sort.into(),
            cursor: cursor.into(),
            ..ListGamesRequest::default()
        };
        let Some(mut client) = self.client().await? else {
            return Ok(ListGamesReply::default());
        };
        let reply = tokio::time::timeout(TIMEOUT, client.list_games(request)).await;
        Ok(reply
            .map_err(|_| slow())?
            .map_err(|status| refused(&status))?
            .into_inner())
    }

    /// Returns a whole game.
    ///
    /// # Errors
    /// [`Failure`] if there is no such game, or the store does not answer.
    pub async fn game(&self, id: &[u8]) -> Result<Game, Failure> {
        let missing = || {
            Failure::Missing(
                "The run has no game with this id; it may have left the window of kept games.".into(),
            )
        };
        let mut client = self.client().await?.ok_or_else(missing)?;
        let request = GetGameRequest {
            id: id.to_vec().into(),
        };
        let reply = tokio::time::timeout(TIMEOUT, client.get_game(request)).await;
        match reply.map_err(|_| slow())? {
            Ok(game) => Ok(game.into_inner()),
            Err(status) if status.code() == Code::NotFound => Err(missing()),
            Err(status) => Err(refused(&status)),
        }
    }

    /// Returns a client of the store; `None` if the run has no games yet.
    async fn client(&self) -> Result<Option<Client>, Failure> {
        let folder = &self.run.config.replay.folder;
        if !folder.join("store.json").exists() {
            return Ok(None);
        }
        let mut opened = self.opened.lock().await;
        if let Some(address) = replay_store::serve::address(folder).filter(|_| opened.is_none()) {
            return Ok(Some(client(&address.to_string(), &self.run.config.security)?));
        }
        if let Some(opened) = opened.as_mut() {
            opened.used = Instant::now();
            return Ok(Some(opened.client.clone()));
        }
        let fresh = open(&self.run).await?;
        let client = fresh.client.clone();
        *opened = Some(fresh);
        tokio::spawn(close_when_idle(Arc::clone(&self.opened)));
        Ok(Some(client))
    }
}

fn slow() -> Failure {
    Failure::Unavailable("The replay store does not answer in time.".into())
}

fn refused(status: &Status) -> Failure {
    match status.code() {
        Code::InvalidArgument => Failure::BadRequest(status.message().into()),
        _ => Failure::Unavailable(format!("The replay store does not answer: {}", status.message())),
    }
}

fn client(address: &str, security: &SecurityConfig) -> Result<Client, Failure> {
    let link = connect::link(address, security).map_err(|error| Failure::from(anyhow::Error::from(error)))?;
    Ok(ReplayStoreClient::new(link).max_decoding_message_size(MAX_MESSAGE_BYTES))
}

async fn open(run: &Run) -> Result<Opened, Failure> {
    let settings = Settings::from_config(&run.config);
    let store = tokio::task::spawn_blocking(move || Folder::open_to_read(settings));
    let store = store.await.context("opening the store failed")?;
    let store = store.map_err(|error| {
        Failure::Unavailable(format!(
            "The stored games cannot be opened: {}",
            service::chain(&error)
        ))
    })?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .context("cannot serve the stored games")?;
    let address = listener
        .local_addr()
        .context("cannot serve the stored games")?
        .to_string();
    let shutdown = CancellationToken::new();
    tokio::spawn(replay_store::serve::serve_privately(
        listener,
        store,
        shutdown.clone(),
    ));
    Ok(Opened {
        // No other process knows this address.
        client: client(&address, &SecurityConfig::default())?,
        shutdown,
        used: Instant::now(),
    })
}

async fn close_when_idle(opened: Arc<Mutex<Option<Opened>>>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let mut opened = opened.lock().await;
        if opened.as_ref().is_none_or(|opened| opened.used.elapsed() >= IDLE) {
            *opened = None;
            return;
        }
    }
}
