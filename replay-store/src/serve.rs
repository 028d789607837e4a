//! The role: opens the store, serves it, and closes it in order.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use config::{RunConfig, SecurityConfig};
use service::{
    backoff::Backoff,
    listener::ConnectionPolicy,
    role::Work,
    security::tokens::Right,
    serve::{Drained, listen, serve_health_beside, standard_routes},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{rpc::Rpc, settings::Settings, store::Store, store::shared::State};

/// Full name of the service, as health and reflection know it.
pub const SERVICE: &str = "minuet.v1.ReplayStore";

/// How long open streams get to end on shutdown.
const DRAIN: Duration = Duration::from_secs(10);

/// The file in a store's folder that says where it is served.
const ADDRESS: &str = "address";

/// How long a connection to a store on this machine may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the role until `shutdown`.
///
/// # Errors
/// Where the store cannot be opened or the address not be listened on; and where the store fails at work: what
/// is not acknowledged by then is the senders' to send again.
pub fn run(config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let connection_policy = ConnectionPolicy::new(&config.security, right)?;
        let listener = listen(config.replay.listen_address()?).await?;
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

/// Where the store in `folder` is served; `None` where nobody answers there.
pub fn address(folder: &Path) -> Option<SocketAddr> {
    let text = fs::read_to_string(folder.join(ADDRESS)).ok()?;
    let mut address: SocketAddr = text.trim().parse().ok()?;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    TcpStream::connect_timeout(&address, PATIENCE)
        .ok()
        .map(|_| address)
}

/// The right that a call of the service needs. Any token may ask for statistics: actors and learners pace themselves by them.
fn right(path: &str) -> Option<Right> {
    let method = path.strip_prefix("/minuet.v1.ReplayStore/");
    match method {
        Some("Append" | "KnownGames") => Some(Right::Append),
        Some("Stats") => None,
        Some("Sample" | "ListGames" | "GetGame" | "Export") => Some(Right::Sample),
        _ => Some(Right::Administer),
    }
}

/// [`run`] on a listener, with `[security]` as it is by default.
///
/// # Errors
/// As [`run`].
pub fn serve(listener: TcpListener, settings: Settings, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let connection_policy = ConnectionPolicy::new(&SecurityConfig::default(), right)?;
        serve_with(connection_policy, "", listener, settings, shutdown).await
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
    let store = tokio::task::spawn_blocking(move || Store::open(settings))
        .await?
        .context("cannot open the replay store")?;
    let store = Arc::new(store);
    store
        .metrics()
        .disk_limit_changed(store.settings().max_disk_bytes);
    announce(&store, address);

    let address_file = store.settings().folder.join(ADDRESS);
    let telling = match fs::write(&address_file, address.to_string()) {
        Ok(()) => None,
        Err(error) => {
            tracing::warn!(
                file = %address_file.display(),
                %error,
                "cannot write down where the store is served: `minuet games` does not find it; trying again"
            );
            let telling = tell(address_file.clone(), address, shutdown.clone());
            Some(tokio::spawn(telling))
        }
    };

    let (routes, health) = standard_routes(&[SERVICE], &[proto::DESCRIPTORS]).await?;
    let stopping = shutdown.child_token();
    let routes = routes.add_service(Rpc::new(Arc::clone(&store), stopping.clone()).into_service());
    health.set_serving(true).await;
    if !probed_at.is_empty() {
        serve_health_beside(probed_at, health.clone(), shutdown.clone()).await?;
    }

    let mut state = store.state();
    let failed = {
        let stopping = stopping.clone();
        async move {
            let has_failed = state
                .wait_for(|state| matches!(state, State::Failed(_)))
                .await
                .is_ok();
            if has_failed {
                stopping.cancel();
            }
        }
    };
    let watch = tokio::spawn(failed);
    let drained =
        service::serve::serve_with(connection_policy, routes, listener, health, stopping, DRAIN).await;
    watch.abort();
    if let Ok(Drained::Cut) = drained {
        tracing::warn!("streams were still open when the time to drain was up");
    }
    if let Some(telling) = telling {
        telling.abort();
    }
    // A file that stays behind is noticed by who finds nobody there.
    let _ = fs::remove_file(&address_file);
    let closed = tokio::task::spawn_blocking(move || store.close()).await?;
    drained?;
    closed.map_err(anyhow::Error::from)
}

/// Writes down where the store is served, for commands on this machine. Nothing else rests on it, so a disk that is full keeps no store from
/// serving: it is tried until it is done.
async fn tell(file: PathBuf, address: SocketAddr, shutdown: CancellationToken) {
    let mut backoff = Backoff::for_connections();
    while backoff.wait(&shutdown).await && fs::write(&file, address.to_string()).is_err() {}
}

fn announce(store: &Store, address: SocketAddr) {
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
    // Twice the window's bytes and what is not yet retired, by what games have taken so far (60 bytes a
    // position before there are any).
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
            "a full window will not fit replay.max_disk_mib: games will be refused then"
        );
    }
}

#[cfg(test)]
mod tests {
    use proto::v1::{StatsRequest, replay_store_client::ReplayStoreClient};

    use super::*;

    #[tokio::test]
    async fn a_store_serves_although_its_address_cannot_be_written_down_yet() {
        let home = tempfile::tempdir().unwrap();
        let mut config = RunConfig::default();
        config.replay.folder = home.path().join("replay");
        let settings = Settings::from_config(&config);
        let folder = settings.folder.clone();
        let made = settings.clone();
        let made = tokio::task::spawn_blocking(move || Store::open(made).unwrap().close());
        made.await.unwrap().unwrap();
        // In the way of the file, as no room for it would be.
        let file = folder.join(ADDRESS);
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
}
