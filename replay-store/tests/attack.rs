//! One client attacks a served store, the real program, while an honest client of the same address calls it.
//!
//! `cargo test --release -p replay-store --test store attack -- --ignored --nocapture` prints the memory of the store and the calls per
//! second of the honest client, before each attack and during it.

use std::{any::Any, net::SocketAddr, time::Duration};

use proto::v1::{ExportRequest, Game, SampleRequest, StatsRequest, replay_store_client::ReplayStoreClient};
use service::process;
use tokio::{task::JoinSet, time::Instant};
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    common::{Client, append, client, games, is_stored},
    kill::{Process, command, free_address, ready},
};

/// Time of one measurement of the honest client.
const TIME: Duration = Duration::from_secs(5);
/// Calls that the honest client makes on one connection.
const CALLS: usize = 50;
/// Memory that the store may take at most, in MiB: its limits of requests and replies, and what it needs without an attack.
const MOST_MIB: u64 = 800;

type Held = Box<dyn Any + Send>;

/// Connects with a window of one byte, so that no reply is read.
async fn narrow(address: SocketAddr) -> Channel {
    let endpoint = Endpoint::new(format!("http://{address}")).unwrap();
    let endpoint = endpoint.initial_stream_window_size(1);
    endpoint
        .initial_connection_window_size(65_535)
        .connect()
        .await
        .unwrap()
}

/// Makes calls for a while, each group on a new connection. Returns the calls per second, and the number of refused ones.
async fn honest(address: SocketAddr) -> (f64, usize) {
    let began = Instant::now();
    let (mut answered, mut refused) = (0u32, 0);
    while began.elapsed() < TIME {
        let mut client = client(address);
        for _ in 0..CALLS {
            match client.stats(StatsRequest::default()).await {
                Ok(_) => answered += 1,
                Err(_) => refused += 1,
            }
        }
    }
    (f64::from(answered) / began.elapsed().as_secs_f64(), refused)
}

/// Opens streams that nobody reads, on one connection. Returns those that the store accepted.
async fn unread(address: SocketAddr, count: usize, samples: bool) -> Vec<Held> {
    let connection = ReplayStoreClient::new(narrow(address).await);
    let mut opening = JoinSet::new();
    for seed in 0..count as u64 {
        let mut client = connection.clone();
        opening.spawn(async move {
            let request = SampleRequest {
                batch_size: 65_536,
                batches: 1_000,
                seed,
                ..SampleRequest::default()
            };
            let opened = match samples {
                true => client.sample(request).await.map(|reply| Box::new(reply) as Held),
                false => client
                    .export(ExportRequest::default())
                    .await
                    .map(|reply| Box::new(reply) as Held),
            };
            opened.ok()
        });
    }
    accepted(opening).await
}

/// Opens streams of games on many connections and sends no game.
async fn half_sent(address: SocketAddr, connections: usize, calls: usize) -> Vec<Held> {
    let mut opening = JoinSet::new();
    for _ in 0..connections {
        let connection: Client = client(address);
        for _ in 0..calls {
            let mut client = connection.clone();
            opening.spawn(async move {
                let opened = client.append(tokio_stream::pending::<Game>()).await;
                opened.ok().map(|reply| Box::new(reply) as Held)
            });
        }
    }
    accepted(opening).await
}

/// Watches the health on many connections.
async fn watching(address: SocketAddr, connections: usize, calls: usize) -> Vec<Held> {
    let mut opening = JoinSet::new();
    for _ in 0..connections {
        let channel = service::connect::channel(&address.to_string()).unwrap();
        for _ in 0..calls {
            let mut client = HealthClient::new(channel.clone());
            opening.spawn(async move {
                let request = HealthCheckRequest::default();
                client
                    .watch(request)
                    .await
                    .ok()
                    .map(|reply| Box::new(reply) as Held)
            });
        }
    }
    accepted(opening).await
}

async fn accepted(mut opening: JoinSet<Option<Held>>) -> Vec<Held> {
    let waiting = async {
        let mut held = Vec::new();
        while let Some(opened) = opening.join_next().await {
            held.extend(opened.unwrap());
        }
        held
    };
    let held = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    held.expect("the store accepts or refuses each call")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures on an otherwise idle machine"]
async fn attacks_of_one_client() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let mut process = Process(command(&folder.path().join("replay"), address).spawn().unwrap());
    let pid = process.0.id();
    let mut own = client(address);
    ready(&mut own, &mut process).await;
    assert!(append(&mut own, games(400)).await.iter().all(is_stored));
    let mib = |bytes: u64| bytes >> 20;
    let memory =
        || process::usage(pid).map(|usage| (mib(usage.resident_bytes), mib(usage.peak_resident_bytes)));

    for attack in [
        "40 unread samples",
        "6400 unread exports",
        "100 x 100 half-sent calls",
        "10000 watches",
    ] {
        let (before, refused) = honest(address).await;
        assert_eq!(refused, 0, "{attack}: before it");
        let (at_first, _) = memory().unwrap();
        let held = match attack {
            "40 unread samples" => unread(address, 40, true).await,
            "6400 unread exports" => unread(address, 6_400, false).await,
            "100 x 100 half-sent calls" => half_sent(address, 100, 100).await,
            _ => watching(address, 100, 100).await,
        };
        let (meanwhile, refused) = honest(address).await;
        let (now, peak) = memory().unwrap();
        println!(
            "{attack}: {} accepted; honest client {before:.0} calls/s before, {meanwhile:.0} meanwhile ({:.2}), {refused} refused; \
             memory {at_first} MiB before, {now} MiB meanwhile, {peak} MiB at most",
            held.len(),
            meanwhile / before
        );
        assert_eq!(refused, 0, "{attack}");
        assert!(peak < MOST_MIB, "{attack}: {peak} MiB");
        drop(held);
    }
}
