//! [`Store`]: the stored games of the run, from the store that serves them or from the folder of a stopped run.
//!
//! The folder of a stopped run is opened for reading only, and closed soon after the last request or the start of the run, so that
//! the run can start.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use launcher::run::addresses::is_at_work;
use proto::v1::{Game, GameFilter, GetGameRequest, ListGamesReply};
use replay_store::{
    client::{self, Client, Order, PrivateStore},
    settings::Settings,
    store::Store as Folder,
};
use tokio::{sync::Mutex, time::Instant};
use tonic::{Code, Response, Status};

use crate::{failure::Failure, run::Run};

/// Time after the last request at which the folder of a stopped run is closed.
const IDLE: Duration = Duration::from_secs(3);
/// Time between two looks whether the folder can be closed.
const LOOK: Duration = Duration::from_millis(250);
/// Longest time for a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The stored games of a run.
#[derive(Debug)]
pub struct Store {
    run: Run,
    opened: Arc<Mutex<Option<Opened>>>,
}

/// The folder of a stopped run, served to this process alone.
#[derive(Debug)]
struct Opened {
    store: PrivateStore,
    used: Instant,
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
        let request = order.request(filter, limit, cursor);
        let Some(mut client) = self.client().await? else {
            return Ok(ListGamesReply::default());
        };
        let reply = in_time(client.list_games(request)).await?;
        reply.map_err(|status| refused(&status))
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
        let reply = in_time(client.get_game(request)).await?;
        reply.map_err(|status| match status.code() {
            Code::NotFound => missing(),
            _ => refused(&status),
        })
    }

    fn connect(&self, address: &str) -> Result<Option<Client>, Failure> {
        Ok(Some(client::connect(address, &self.run.config.security)?))
    }

    /// Returns a client of the store; `None` if the run has no games yet.
    async fn client(&self) -> Result<Option<Client>, Failure> {
        if self.run.is_elsewhere {
            return self.connect(&self.run.config.replay.address);
        }
        let folder = &self.run.config.replay.folder;
        if !folder.join("store.json").exists() {
            return Ok(None);
        }
        let mut opened = self.opened.lock().await;
        if let Some(address) = replay_store::serve::address(folder).filter(|_| opened.is_none()) {
            return self.connect(&address.to_string());
        }
        if is_at_work(&self.run.folder) {
            // The start of the run waits until the folder is closed.
            *opened = None;
            return Err(Failure::Unavailable(
                "The replay store does not answer yet: the run starts or stops. Load the page again soon."
                    .into(),
            ));
        }
        if let Some(opened) = opened.as_mut() {
            opened.used = Instant::now();
            return Ok(Some(opened.store.client()));
        }
        let fresh = open(&self.run).await?;
        let client = fresh.store.client();
        *opened = Some(fresh);
        tokio::spawn(close_when_idle(Arc::clone(&self.opened), self.run.folder.clone()));
        Ok(Some(client))
    }
}

/// Content of the reply to a request, which must not take longer than [`TIMEOUT`].
async fn in_time<T>(
    reply: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<Result<T, Status>, Failure> {
    let reply = tokio::time::timeout(TIMEOUT, reply).await;
    let slow = |_| Failure::Unavailable("The replay store does not answer in time.".into());
    Ok(reply.map_err(slow)?.map(Response::into_inner))
}

fn refused(status: &Status) -> Failure {
    match status.code() {
        Code::InvalidArgument => Failure::BadRequest(status.message().into()),
        _ => Failure::Unavailable(format!("The replay store does not answer: {}", status.message())),
    }
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
    Ok(Opened {
        store: PrivateStore::serve(store).await?,
        used: Instant::now(),
    })
}

async fn close_when_idle(opened: Arc<Mutex<Option<Opened>>>, run: PathBuf) {
    loop {
        tokio::time::sleep(LOOK).await;
        let mut opened = opened.lock().await;
        let is_used = |opened: &Opened| opened.used.elapsed() < IDLE && !is_at_work(&run);
        if !opened.as_ref().is_some_and(is_used) {
            *opened = None;
            return;
        }
    }
}
