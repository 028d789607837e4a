//! The replay-store role: opens the store, serves it until shutdown, and closes it.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use config::{RunConfig, SecurityConfig};
use service::{
    backoff::Backoff,
    listener::ConnectionPolicy,
    log_throttle::LogThrottle,
    role::Work,
    security::{
        methods::{Access, Method},
        tokens::Right,
    },
    serve::{Drained, listen, serve_health_beside, standard_routes},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    error::OpenError,
    rpc::Rpc,
    settings::{MAX_GAME_BYTES, MAX_KNOWN_IDS, Settings},
    store::{Store, identity::LOCK, shared::StoreState},
};

/// Full name of the gRPC service, used for health checks and reflection.
pub const SERVICE: &str = "minuet.v1.ReplayStore";

/// Maximum time for open streams to end on shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum length of a request that names games, in bytes: space for [`MAX_KNOWN_IDS`] ids of 18 bytes each, and as much again.
const MAX_IDS_BYTES: usize = 36 * MAX_KNOWN_IDS;

/// File in the store's folder that contains the address on which the store is served.
const ADDRESS_FILE: &str = "address";

/// Time between two attempts to open a folder that is in use.
const RETRY: Duration = Duration::from_millis(250);

/// Timeout of a connection to a store on this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs the role until `shutdown` is cancelled.
///
/// # Errors
/// The store cannot be opened, the address cannot be listened on, or the store fails while it runs. Senders send games that are not
/// acknowledged again.
pub fn run(config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let connection_policy = ConnectionPolicy::new(&config.security, method)?;
        let listener = listen(config.replay.listen_address()).await?;
        serve_with(
            connection_policy,
            &config.replay.health,
            listener,
            Settings::from_config(&config),
            shutdown,
        )
        .await
    })
}

/// Returns the address on which the store in `folder` is served. Returns `None` if no process accepts connections there.
pub fn address(folder: &Path) -> Option<SocketAddr> {
    let text = fs::read_to_string(folder.join(ADDRESS_FILE)).ok()?;
    let mut address: SocketAddr = text.trim().parse().ok()?;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)
        .ok()
        .map(|_| address)
}

/// Returns the rules of the method at `path`. Every token may request statistics, which actors and learners use for pacing.
fn method(path: &str) -> Method {
    match path.strip_prefix("/minuet.v1.ReplayStore/") {
        Some("Append") => Method::needs(Right::Append)
            .with_max_message(MAX_GAME_BYTES)
            .with_request_stream(),
        Some("KnownGames") => Method::needs(Right::Append).with_max_message(MAX_IDS_BYTES),
        Some("Stats") => Method::new(Access::AnyToken),
        Some("ListGames") => Method::needs(Right::Sample).with_max_message(MAX_IDS_BYTES),
        Some("Export") => Method::needs(Right::Sample)
            .with_max_message(MAX_IDS_BYTES)
            .with_long_reply(),
        Some("Sample") => Method::needs(Right::Sample).with_long_reply(),
        Some("GetGame") => Method::needs(Right::Sample),
        Some("DeleteGames") => Method::needs(Right::Administer).with_max_message(MAX_IDS_BYTES),
        _ => Method::needs(Right::Administer),
    }
}

/// Runs the role on a listener, with the default `[security]` settings.
///
/// # Errors
/// The errors of [`run`].
pub fn serve(listener: TcpListener, settings: Settings, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let connection_policy = ConnectionPolicy::new(&SecurityConfig::default(), method)?;
        serve_with(connection_policy, "", listener, settings, shutdown).await
    })
}

/// Serves an open store to this process, with the default `[security]` settings. The address is not written to the store's folder.
///
/// # Errors
/// The errors of [`run`].
pub(crate) fn serve_privately(listener: TcpListener, store: Store, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let connection_policy = ConnectionPolicy::new(&SecurityConfig::default(), method)?;
        connection_policy.check(listener.local_addr()?)?;
        let store = Arc::new(store);
        let served = serve_open(connection_policy, "", listener, Arc::clone(&store), shutdown).await;
        let closed = close(store).await;
        served.and(closed)
    })
}

async fn serve_with(
    connection_policy: ConnectionPolicy,
    probed_at: &str,
    listener: TcpListener,
    settings: Settings,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    connection_policy.check(listener.local_addr()?)?;
    let address = listener.local_addr()?;
    let opening = open_when_free(settings);
    let store = tokio::select! {
        () = shutdown.cancelled() => return Ok(()),
        store = opening => store.context("cannot open the replay store")?,
    };
    let store = Arc::new(store);
    store
        .metrics()
        .disk_limit_bytes
        .set(store.settings().max_disk_bytes as f64);
    log_opened(&store, address);

    let address_file = store.settings().folder.join(ADDRESS_FILE);
    let writing = async {
        write_address(&address_file, address, &shutdown).await;
        std::future::pending().await
    };
    let served = tokio::select! {
        // The address is written before the store is served.
        biased;
        never = writing => never,
        served = serve_open(connection_policy, probed_at, listener, Arc::clone(&store), shutdown.clone()) => served,
    };
    // If this fails, `address` finds that no process accepts connections there.
    let _ = fs::remove_file(&address_file);
    let closed = close(store).await;
    served.and(closed)
}

/// Opens a store. While a command reads or changes the folder, for example an export, waits for its end. A store that another process
/// serves is not waited for.
async fn open_when_free(settings: Settings) -> anyhow::Result<Store> {
    let log = LogThrottle::default();
    let lock = settings.folder.join(LOCK);
    loop {
        let opened = {
            let settings = settings.clone();
            tokio::task::spawn_blocking(move || Store::open(settings)).await?
        };
        match opened {
            Err(OpenError::InUse { .. }) if address(&settings.folder).is_none() => {
                if log.allows() {
                    let users = service::process::users(&lock).join(", ");
                    tracing::warn!(
                        users,
                        "the store is served when these have finished with its folder"
                    );
                }
                tokio::time::sleep(RETRY).await;
            }
            opened => return Ok(opened?),
        }
    }
}

async fn close(store: Arc<Store>) -> anyhow::Result<()> {
    let closed = tokio::task::spawn_blocking(move || store.close()).await?;
    closed.map_err(anyhow::Error::from)
}

/// Serves an open store until shutdown.
async fn serve_open(
    connection_policy: ConnectionPolicy,
    probed_at: &str,
    listener: TcpListener,
    store: Arc<Store>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let (routes, health) = standard_routes(&[SERVICE], &[proto::REPLAY_DESCRIPTORS]).await?;
    let streams_shutdown = shutdown.child_token();
    let routes = routes.add_service(Rpc::new(Arc::clone(&store), streams_shutdown.clone()).into_service());
    health.set_serving(true).await;
    if !probed_at.is_empty() {
        serve_health_beside(probed_at, health.clone(), shutdown.clone()).await?;
    }

    let mut state = store.state();
    let failure = async {
        let has_failed = state.wait_for(|state| matches!(state, StoreState::Failed(_)));
        if has_failed.await.is_ok() {
            streams_shutdown.cancel();
        }
        std::future::pending().await
    };
    let serving = service::serve::serve_with(
        connection_policy,
        routes,
        listener,
        health,
        streams_shutdown.clone(),
        DRAIN_TIMEOUT,
    );
    let drained = tokio::select! {
        drained = serving => drained?,
        never = failure => never,
    };
    if let Drained::Cut = drained {
        tracing::warn!("streams were still open at the end of the drain timeout");
    }
    Ok(())
}

/// Writes the address file, for commands on this machine, and repeats this until it succeeds. Nothing else depends on the file, so a
/// full disk does not prevent the store from serving.
async fn write_address(file: &Path, address: SocketAddr, shutdown: &CancellationToken) {
    let mut backoff = Backoff::for_connections();
    while let Err(error) = fs::write(file, address.to_string()) {
        if backoff.attempts() == 0 {
            tracing::warn!(
                file = %file.display(),
                %error,
                "cannot write the address file, without which `minuet games` does not find the running store; trying again"
            );
        }
        if !backoff.wait(shutdown).await {
            return;
        }
    }
}

fn log_opened(store: &Store, address: SocketAddr) {
    let stats = store.stats();
    tracing::info!(
        %address,
        folder = %store.settings().folder.display(),
        games = stats.games,
        positions = stats.window_positions,
        inserted = stats.positions_inserted,
        sampled = stats.positions_sampled,
        damaged = stats.damaged_games,
        "the replay store is open"
    );
    // A full window needs about 2.5 times the bytes of its records, which includes volumes that are not retired yet. The bytes of a
    // position are those of the stored games, and at least 30.
    let settings = store.settings();
    let each = stats
        .stored_bytes
        .checked_div(stats.window_positions)
        .unwrap_or(0)
        .max(30);
    let expected = settings.window_positions.saturating_mul(each) * 5 / 2;
    if expected > settings.max_disk_bytes {
        tracing::warn!(
            expected_mib = expected >> 20,
            limit_mib = settings.max_disk_bytes >> 20,
            "a full window needs more than replay.max_disk_mib; games will be refused when the limit is reached"
        );
    }
}

#[cfg(test)]
mod tests {
    use proto::v1::{StatsRequest, replay_store_client::ReplayStoreClient};

    use super::*;

    #[tokio::test]
    async fn a_store_serves_before_its_address_file_can_be_written() {
        let home = tempfile::tempdir().unwrap();
        let mut config = RunConfig::default();
        config.replay.folder = home.path().join("replay");
        let settings = Settings::from_config(&config);
        let folder = settings.folder.clone();
        let made = settings.clone();
        let made = tokio::task::spawn_blocking(move || Store::open(made).unwrap().close());
        made.await.unwrap().unwrap();
        // A folder of the same name makes writing the file fail, as a full disk would.
        let file = folder.join(ADDRESS_FILE);
        fs::create_dir(&file).unwrap();

        let listener = listen("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, settings, shutdown.clone()));
        let mut client = ReplayStoreClient::connect(format!("http://{at}")).await.unwrap();
        client.stats(StatsRequest::default()).await.unwrap();
        assert_eq!(address(&folder), None);
        fs::remove_dir(&file).unwrap();
        while fs::read_to_string(&file).unwrap_or_default() != at.to_string() {
            assert!(!serving.is_finished());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(address(&folder), Some(at));
        drop(client);
        shutdown.cancel();
        serving.await.unwrap().unwrap();
        assert!(!file.exists());
    }

    #[tokio::test]
    async fn a_store_is_served_when_the_last_reader_has_finished() {
        let home = tempfile::tempdir().unwrap();
        let mut config = RunConfig::default();
        config.replay.folder = home.path().join("replay");
        let settings = Settings::from_config(&config);
        let made = settings.clone();
        let reader = tokio::task::spawn_blocking(move || {
            Store::open(made.clone()).unwrap().close().unwrap();
            Store::open_to_read(made).unwrap()
        });
        let reader = reader.await.unwrap();
        let mut opening = Box::pin(open_when_free(settings.clone()));
        assert!(tokio::time::timeout(2 * RETRY, &mut opening).await.is_err());
        close(Arc::new(reader)).await.unwrap();
        let store = opening.await.unwrap();
        // Another process serves the folder.
        let listener = listen("127.0.0.1:0").await.unwrap();
        fs::write(
            settings.folder.join(ADDRESS_FILE),
            listener.local_addr().unwrap().to_string(),
        )
        .unwrap();
        let refused = open_when_free(settings).await.unwrap_err();
        assert!(refused.to_string().contains("is in use"), "{refused}");
        close(Arc::new(store)).await.unwrap();
    }
}
