//! The role: opens the store, serves it, and closes it in order.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use service::{
    config::RunConfig,
    serve::{Drained, listen, standard_routes},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{metrics, rpc::Rpc, settings::Settings, shared::State, store::Store};

/// Full name of the service, as health and reflection know it.
pub const SERVICE: &str = "minuet.v1.ReplayStore";

/// How long open streams get to end on shutdown.
const DRAIN: Duration = Duration::from_secs(10);

/// Runs the role until `shutdown`.
///
/// # Errors
/// Where the store cannot be opened or the address not be listened on; and where the store fails at work: what
/// is not acknowledged by then is the senders' to send again.
pub async fn run(config: RunConfig, shutdown: CancellationToken) -> anyhow::Result<()> {
    let listener = listen(&config.replay.address).await?;
    serve(listener, Settings::from_config(&config), shutdown).await
}

/// [`run`] on a listener.
///
/// # Errors
/// As [`run`].
pub async fn serve(
    listener: TcpListener,
    settings: Settings,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    metrics::describe();
    let address = listener.local_addr()?;
    let store = tokio::task::spawn_blocking(move || Store::open(settings))
        .await?
        .context("cannot open the replay store")?;
    let store = Arc::new(store);
    announce(&store, address);

    let (routes, health) = standard_routes(&[SERVICE], &[proto::DESCRIPTORS]).await?;
    let stopping = shutdown.child_token();
    let routes = routes.add_service(Rpc::new(Arc::clone(&store), stopping.clone()).into_service());
    health.set_serving(true).await;

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
    let drained = service::serve::serve(routes, listener, health, stopping, DRAIN).await;
    watch.abort();
    if let Ok(Drained::Cut) = drained {
        tracing::warn!("streams were still open when the time to drain was up");
    }
    let closed = tokio::task::spawn_blocking(move || store.close()).await?;
    drained?;
    closed.map_err(anyhow::Error::from)
}

fn announce(store: &Store, address: std::net::SocketAddr) {
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
