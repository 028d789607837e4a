//! Shared parts of the tests of the replay store: settings, a served store, a client.
#![allow(dead_code, unused_imports, reason = "each test binary uses some of it")]

pub mod synthetic;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use proto::v1::{
    AppendAck, Batch, ExportRequest, Game, GameFilter, GameSummary, ListGamesRequest, SampleRequest,
    StatsReply, StatsRequest, StoredGame, replay_store_client::ReplayStoreClient,
};
use replay_store::{
    error::OpenError, settings::Settings, store::Store, store::append::Verdict, window::held_out::HeldOut,
    window::uses_bound::Bounds,
};
use service::connect::{MAX_MESSAGE_BYTES, channel};
use tempfile::TempDir;
pub use test_support::{copy_folder, snapshot};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_stream::{StreamExt as _, iter};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

pub type Client = ReplayStoreClient<Channel>;

/// Returns the settings of a store of synthetic games in `folder`, with a window of `window_positions`.
pub fn settings(folder: &Path, window_positions: u64) -> Settings {
    Settings {
        folder: folder.join("replay"),
        game: "paco-sako".into(),
        options: 1,
        window_positions,
        held_out: HeldOut::default(),
        bounds: Bounds::default(),
        cache_bytes: 64 << 20,
        max_disk_bytes: 1 << 40,
        min_free_bytes: 0,
        archive: String::new(),
    }
}

/// Opens a store.
///
/// A child process of another test holds a copy of this process's locks until it runs its own program. A store that was closed a moment
/// ago may therefore still seem to be in use, so opening is tried again for two seconds.
pub fn open(settings: &Settings) -> Store {
    for _ in 0..200 {
        match Store::open(settings.clone()) {
            Err(OpenError::InUse { .. }) => std::thread::sleep(std::time::Duration::from_millis(10)),
            opened => return opened.unwrap(),
        }
    }
    Store::open(settings.clone()).unwrap()
}

/// Returns a client of the service at `address`.
pub fn client(address: SocketAddr) -> Client {
    ReplayStoreClient::new(channel(&address.to_string()).unwrap())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
}

/// A store that is served by this process.
pub struct Served {
    pub address: SocketAddr,
    pub shutdown: CancellationToken,
    pub ended: JoinHandle<anyhow::Result<()>>,
}

impl Served {
    /// Serves a store on a free port, and waits until it answers.
    pub async fn start(settings: Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let ended = tokio::spawn(replay_store::serve(listener, settings, shutdown.clone()));
        let served = Self {
            address,
            shutdown,
            ended,
        };
        stats(&mut served.client()).await;
        served
    }

    /// Serves a new store with a window of `window_positions`. Returns its folder, the store and a client.
    pub async fn new(window_positions: u64) -> (TempDir, Self, Client) {
        let folder = tempfile::tempdir().unwrap();
        let served = Self::start(settings(folder.path(), window_positions)).await;
        let client = served.client();
        (folder, served, client)
    }

    pub fn client(&self) -> Client {
        client(self.address)
    }

    /// Shuts the service down and waits for its end.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.ended.await.unwrap().unwrap();
    }
}

/// Appends games on one stream and returns the acknowledgements in the order of their arrival.
pub async fn append(client: &mut Client, games: Vec<Game>) -> Vec<AppendAck> {
    let count = games.len();
    let mut acks = client.append(iter(games)).await.unwrap().into_inner();
    let mut all = Vec::new();
    while let Some(ack) = acks.message().await.unwrap() {
        all.push(ack);
    }
    assert_eq!(all.len(), count);
    all
}

/// Returns `count` games of 20 to 49 positions.
pub fn games(count: u64) -> Vec<Game> {
    (0..count)
        .map(|number| synthetic::game(number, 20 + number as usize % 30))
        .collect()
}

/// Returns a filter that selects one game.
pub fn only(game: &Game) -> Option<GameFilter> {
    Some(GameFilter {
        ids: vec![game.id.clone()],
        ..GameFilter::default()
    })
}

/// Returns all batches of a request.
pub async fn sample(client: &mut Client, request: SampleRequest) -> Vec<Batch> {
    let stream = client.sample(request).await.unwrap().into_inner();
    stream.map(Result::unwrap).collect().await
}

/// Returns all games of an export.
pub async fn export(client: &mut Client, request: ExportRequest) -> Vec<StoredGame> {
    let stream = client.export(request).await.unwrap().into_inner();
    stream.map(Result::unwrap).collect().await
}

/// Returns the first page of a list.
pub async fn list(client: &mut Client, request: ListGamesRequest) -> Vec<GameSummary> {
    client.list_games(request).await.unwrap().into_inner().games
}

/// Returns the statistics of the store.
pub async fn stats(client: &mut Client) -> StatsReply {
    client.stats(StatsRequest::default()).await.unwrap().into_inner()
}

/// True if the game was stored now, not refused and not a duplicate.
pub fn is_stored(ack: &AppendAck) -> bool {
    !ack.duplicate && ack.refused.is_empty()
}

/// Returns the id of a game.
pub fn id(game: &Game) -> [u8; 16] {
    game.id.as_ref().try_into().unwrap()
}

/// Stores games several at a time, so that a commit contains several games.
pub async fn put_all(store: &Store, games: &[Game]) {
    for group in games.chunks(7) {
        let verdicts = group.iter().map(|game| store.put(game));
        for verdict in futures::future::join_all(verdicts).await {
            assert_eq!(verdict.unwrap(), Verdict::Stored);
        }
    }
}

/// Stores games as [`put_all`] does, outside of a runtime.
pub fn put_all_blocking(store: &Store, games: &[Game]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(put_all(store, games));
}

/// Closes a store. Blocks.
pub fn close(store: Store) {
    tokio::task::block_in_place(|| store.close().unwrap());
}

/// Returns the log files of all volumes that hold games, ascending.
pub fn logs(settings: &Settings) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(settings.folder.join("volumes"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("games.log"))
        .collect();
    // The log of a new volume is empty.
    files.retain(|file| std::fs::metadata(file).unwrap().len() > 0);
    files.sort();
    files
}

/// Flips a bit of the first game in a log, which may be open.
pub fn damage_first_game(log: &Path) {
    let bytes = std::fs::read(log).unwrap();
    let at = memchr::memmem::find(&bytes, b"MnG").unwrap() + 60;
    let file = std::fs::OpenOptions::new().write(true).open(log).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[bytes[at] ^ 4], at as u64).unwrap();
}
