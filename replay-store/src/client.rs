//! Clients of a store: of one that another process serves, and of the folder of a stopped run, which this process serves to itself.

use std::net::Ipv4Addr;

use anyhow::Context as _;
use config::SecurityConfig;
use proto::v1::{GameFilter, GameSort, ListGamesRequest, replay_store_client::ReplayStoreClient};
use service::connect::{self, Link, MAX_MESSAGE_BYTES};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{serve::serve_privately, store::Store};

/// Client of a store.
pub type Client = ReplayStoreClient<Link>;

/// Order and direction of a list of games.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Order.
    pub sort: GameSort,
    /// True for the newest, longest or most surprising games first.
    pub descending: bool,
}

/// The newest games first.
pub const NEWEST: Order = Order::from_most(GameSort::Time);

impl Order {
    /// Returns the order that begins with the newest, longest or most surprising game.
    pub const fn from_most(sort: GameSort) -> Self {
        Self {
            sort,
            descending: true,
        }
    }

    /// Returns a request for at most `limit` games in this order, from after `cursor` on (empty: from the beginning).
    pub fn request(self, filter: GameFilter, limit: u32, cursor: Vec<u8>) -> ListGamesRequest {
        ListGamesRequest {
            limit,
            newest_first: self.descending,
            filter: Some(filter),
            sort: self.sort.into(),
            cursor: cursor.into(),
            ..ListGamesRequest::default()
        }
    }
}

/// Returns a client of the store at `address` (`host:port`). The connection is made by the first request.
///
/// # Errors
/// The address or the security settings are not valid.
pub fn connect(address: &str, security: &SecurityConfig) -> anyhow::Result<Client> {
    let link = connect::link(address, security)?;
    Ok(Client::new(link)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES))
}

/// An open store that this process serves on an address that no other process knows. Dropping it ends the serving.
#[derive(Debug)]
pub struct PrivateStore {
    client: Client,
    shutdown: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
}

impl PrivateStore {
    /// Serves a store on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// No port can be listened on.
    pub async fn serve(store: Store) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot serve the stored games")?;
        let address = listener.local_addr()?.to_string();
        let shutdown = CancellationToken::new();
        Ok(Self {
            client: connect(&address, &SecurityConfig::default())?,
            serving: tokio::spawn(serve_privately(listener, store, shutdown.clone())),
            shutdown,
        })
    }

    /// Returns a client of the store.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Ends the serving and closes the store.
    ///
    /// # Errors
    /// The store failed while it was served, or cannot be closed.
    pub async fn close(mut self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        (&mut self.serving).await?
    }
}

impl Drop for PrivateStore {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
