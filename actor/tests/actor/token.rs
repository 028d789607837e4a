//! An actor whose token is replaced while it plays.

use std::{path::Path, time::Duration};

use config::SecurityConfig;
use service::{
    listener::ConnectionPolicy,
    security::methods::{Access, Method},
    serve,
};
use test_support::FakeStore;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::{config, evaluator_server::Server, start};

const OLD: &str = "0123456789abcdef";
const NEW: &str = "fedcba9876543210";

/// Time after which a client has read its token again: more than the interval of 10 s.
const READ_AGAIN: Duration = Duration::from_secs(11);

/// Replaces a file in one step.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    durable::rename(&new, path).unwrap();
}

/// Serves `routes` to clients with a token of the file `tokens`, which is read again all the time.
async fn serve_with_tokens(routes: Routes, tokens: &Path) -> String {
    let security = SecurityConfig {
        tokens: tokens.into(),
        ..SecurityConfig::default()
    };
    let mut policy = ConnectionPolicy::new(&security, |_| {
        Method::new(Access::AnyToken)
            .with_max_message(usize::MAX)
            .with_request_stream()
    })
    .unwrap();
    policy.renewal = Duration::from_millis(10);
    let listener = serve::listen("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (_, health) = serve::standard_routes(&[], &[]).await.unwrap();
    let never = CancellationToken::new();
    tokio::spawn(serve::serve_with(
        policy,
        routes,
        listener,
        health,
        never,
        Duration::ZERO,
    ));
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_actor_goes_on_when_its_token_is_replaced_in_the_right_order() {
    let folder = tempfile::tempdir().unwrap();
    let (tokens, token) = (folder.path().join("tokens"), folder.path().join("token"));
    let line = |token: &str| format!("actor evaluate,append {token}\n");
    replace(&tokens, &line(OLD));
    replace(&token, OLD);
    let (server, store) = (Server::good(), FakeStore::good());
    let mut config = config(
        &folder.path().join("spool"),
        &serve_with_tokens(server.routes(), &tokens).await,
        &serve_with_tokens(store.routes(), &tokens).await,
    );
    config.security.token = token.clone();
    let actor = start(config);
    actor.until(|| store.count() >= 10).await;

    replace(&tokens, &(line(OLD) + &line(NEW)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    replace(&token, NEW);
    tokio::time::sleep(READ_AGAIN).await;
    replace(&tokens, &line(NEW));
    // The stream of games was opened with the old token and ends.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = store.count();
    actor.until(|| store.count() >= before + 10).await;

    // While the servers cannot read their tokens, the actor waits.
    replace(&tokens, "");
    tokio::time::sleep(Duration::from_secs(1)).await;
    replace(&tokens, &line(NEW));
    let before = store.count();
    actor.until(|| store.count() >= before + 10).await;
    actor.stop().await;
}
