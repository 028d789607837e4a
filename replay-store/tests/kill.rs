//! `kill -9` of the real process while real clients use it: no acknowledged game is lost, no game is stored twice, and each stored
//! game equals the one that was sent.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use crate::common::{Client, append, client, export, is_stored, stats, synthetic};
use proto::v1::{ExportRequest, Game, GameSort, ListGamesRequest, SampleRequest, StatsRequest};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::sync::Semaphore;
use tokio_stream::wrappers::ReceiverStream;

const ROUNDS: u64 = 20;
const STREAMS: u64 = 4;

pub fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// A process of the real program. It is killed when the value is dropped.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn command(folder: &Path, address: SocketAddr) -> Command {
    command_with(folder, address, &[])
}

fn command_with(folder: &Path, address: SocketAddr, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minuet-replay-store"));
    for set in [
        format!("replay.address=\"{address}\""),
        format!("replay.folder=\"{}\"", folder.display()),
        "replay.window_positions=1000000".into(),
        "replay.min_free_mib=0".into(),
    ] {
        command.args(["--set", &set]);
    }
    for set in more {
        command.args(["--set", set]);
    }
    command.env("MINUET_LOG", "warn").stdout(Stdio::null());
    command
}

pub async fn ready(client: &mut Client, process: &mut Process) {
    while client.stats(StatsRequest::default()).await.is_err() {
        assert_eq!(process.0.try_wait().unwrap(), None, "the store ended by itself");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Sends games until the store is killed, and adds a permit to `count` for each acknowledgement. Returns the sent games and
/// the ids of the acknowledged ones.
async fn send(mut client: Client, first: u64, count: Arc<Semaphore>) -> (Vec<Game>, HashSet<Vec<u8>>) {
    let (sender, games) = tokio::sync::mpsc::channel(32);
    let Ok(acks) = client.append(ReceiverStream::new(games)).await else {
        return (Vec::new(), HashSet::new());
    };
    let mut acks = acks.into_inner();
    let sending = tokio::spawn(async move {
        let mut sent = Vec::new();
        for number in first.. {
            let game = synthetic::game(number, 5 + number as usize % 25);
            sent.push(game.clone());
            if sender.send(game).await.is_err() {
                break;
            }
        }
        sent
    });
    let mut acknowledged = HashSet::new();
    while let Ok(Some(ack)) = acks.message().await {
        assert!(is_stored(&ack), "{ack:?}");
        acknowledged.insert(ack.id.to_vec());
        count.add_permits(1);
    }
    drop(acks);
    (sending.await.unwrap(), acknowledged)
}

async fn stored_games(client: &mut Client) -> Vec<(u64, Game)> {
    let stored = export(client, ExportRequest::default()).await.into_iter();
    stored
        .map(|stored| (stored.sequence, stored.game.unwrap()))
        .collect()
}

/// Checks that each order lists each stored game once, whatever state the kill left the index in.
async fn check_lists(client: &mut Client, stored: &[(u64, Game)], round: u64) {
    for sort in [GameSort::Time, GameSort::Length] {
        let mut expected: Vec<(u64, u64)> = stored
            .iter()
            .map(|(sequence, game)| match sort {
                GameSort::Length => (game.actions.len() as u64, *sequence),
                _ => (game.finished_at_ms, *sequence),
            })
            .collect();
        expected.sort_unstable();
        let mut found = Vec::new();
        let mut cursor = bytes::Bytes::new();
        loop {
            let request = ListGamesRequest {
                limit: 100,
                sort: sort.into(),
                cursor,
                ..ListGamesRequest::default()
            };
            let page = client.list_games(request).await.unwrap().into_inner();
            found.extend(page.games.iter().map(|game| game.sequence));
            cursor = page.next_cursor;
            if cursor.is_empty() {
                break;
            }
        }
        let expected: Vec<u64> = expected.into_iter().map(|(_, sequence)| sequence).collect();
        assert_eq!(found, expected, "round {round}: {sort:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_kills_lose_no_acknowledged_game() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("replay");
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut sent: HashMap<Vec<u8>, Game> = HashMap::new();
    let mut acknowledged: HashSet<Vec<u8>> = HashSet::new();
    let (mut sampled, mut unacknowledged_but_stored) = (0, 0);
    for round in 0..=ROUNDS {
        let address = free_address();
        let mut process = Process(command(&path, address).spawn().unwrap());
        let mut client = client(address);
        ready(&mut client, &mut process).await;

        let stored = stored_games(&mut client).await;
        let ids: HashSet<Vec<u8>> = stored.iter().map(|(_, game)| game.id.to_vec()).collect();
        assert_eq!(ids.len(), stored.len(), "round {round}: a game is there twice");
        assert!(
            acknowledged.is_subset(&ids),
            "round {round}: {} acknowledged games are lost",
            acknowledged.difference(&ids).count()
        );
        assert!(stored.is_sorted_by(|a, b| a.0 < b.0));
        check_lists(&mut client, &stored, round).await;
        let mut positions = 0;
        for (_, game) in &stored {
            assert_eq!(&sent[game.id.as_ref()], game, "round {round}");
            positions += game.actions.len() as u64;
        }
        let numbers = stats(&mut client).await;
        assert_eq!(numbers.games_inserted, stored.len() as u64, "round {round}");
        // Held-out games are in the window, but they are not trainable.
        let inserted = numbers.positions_inserted + numbers.held_out_positions;
        assert_eq!(inserted, positions, "round {round}");
        assert_eq!(numbers.damaged_games, 0, "round {round}");
        assert!(
            numbers.positions_sampled >= sampled,
            "round {round}: samples are forgotten"
        );
        assert!(
            numbers.positions_sampled <= sampled + sampled / 64 + 100,
            "round {round}"
        );
        sampled = numbers.positions_sampled;
        unacknowledged_but_stored = ids.difference(&acknowledged).count();
        // Games that were stored but not acknowledged are duplicates when they are sent again.
        acknowledged.extend(ids);
        if let Some((_, game)) = stored.last() {
            assert!(append(&mut client, vec![game.clone()]).await[0].duplicate);
            let request = SampleRequest {
                batch_size: 100,
                batches: 1,
                seed: round,
                ..SampleRequest::default()
            };
            let mut batches = client.sample(request).await.unwrap().into_inner();
            assert_eq!(batches.message().await.unwrap().unwrap().positions, 100);
            sampled += 100;
        }
        if round == ROUNDS {
            break;
        }

        let acks = Arc::new(Semaphore::new(0));
        let streams: Vec<_> = (0..STREAMS)
            .map(|stream| {
                let first = (round * STREAMS + stream) * 1_000_000;
                tokio::spawn(send(client.clone(), first, acks.clone()))
            })
            .collect();
        // The kill comes after a number of acknowledgements, on a slow machine too. The pause moves it between two writes.
        let wanted = random.random_range(10..100);
        let _permits = tokio::time::timeout(Duration::from_secs(60), acks.acquire_many(wanted))
            .await
            .expect("the store acknowledges games");
        tokio::time::sleep(Duration::from_micros(random.random_range(0..5000))).await;
        process.0.kill().unwrap();
        process.0.wait().unwrap();
        for stream in streams {
            let (games, acks) = stream.await.unwrap();
            sent.extend(games.into_iter().map(|game| (game.id.to_vec(), game)));
            acknowledged.extend(acks);
        }
    }
    println!(
        "{} games sent, {} acknowledged, {unacknowledged_but_stored} more stored by the last kill",
        sent.len(),
        acknowledged.len()
    );
}

/// A file-size limit makes the kernel refuse a write (`EFBIG`, because the signal is ignored). The store must stop with an error, and
/// all acknowledged games must be readable without the limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_disk_stops_the_store_and_loses_no_acknowledged_game() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("replay");
    let address = free_address();
    let real = command(&path, address);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$@\"", "sh"])
        .arg(real.get_program())
        .args(real.get_args())
        .env("MINUET_LOG", "off")
        .stdout(Stdio::null());
    let mut process = Process(limited.spawn().unwrap());
    let mut limited_client = client(address);
    ready(&mut limited_client, &mut process).await;
    let (sent, acknowledged) = send(limited_client, 0, Arc::new(Semaphore::new(0))).await;
    let status = tokio::task::spawn_blocking(move || process.0.wait().unwrap())
        .await
        .unwrap();
    assert_eq!(status.code(), Some(1), "a failed store ends with an error");
    assert!(!acknowledged.is_empty() && acknowledged.len() < sent.len());

    let address = free_address();
    let mut process = Process(command(&path, address).spawn().unwrap());
    let mut client = client(address);
    ready(&mut client, &mut process).await;
    let stored: HashMap<Vec<u8>, Game> = stored_games(&mut client)
        .await
        .into_iter()
        .map(|(_, game)| (game.id.to_vec(), game))
        .collect();
    for game in &sent {
        match stored.get(game.id.as_ref()) {
            Some(found) => assert_eq!(found, game),
            None => assert!(
                !acknowledged.contains(game.id.as_ref()),
                "an acknowledged game is lost"
            ),
        }
    }
    assert_eq!(stats(&mut client).await.damaged_games, 0);
    println!(
        "{} sent, {} acknowledged, {} stored",
        sent.len(),
        acknowledged.len(),
        stored.len()
    );
}

/// Sends games until the store is killed, and resends temporarily refused games as an actor does.
async fn keep_sending(mut client: Client, first: u64) {
    let mut number = first;
    loop {
        let game = synthetic::game(number, 20);
        let Ok(acks) = client.append(tokio_stream::iter([game])).await else {
            return;
        };
        match acks.into_inner().message().await {
            Ok(Some(ack)) if ack.retry => {}
            Ok(Some(_)) => number += 1,
            Ok(None) | Err(_) => return,
        }
    }
}

async fn keep_sampling(mut client: Client, seed: u64) {
    let request = SampleRequest {
        batch_size: 64,
        batches: u32::MAX,
        seed,
        min_positions: 200,
        ..SampleRequest::default()
    };
    let Ok(batches) = client.sample(request).await else {
        return;
    };
    let mut batches = batches.into_inner();
    while let Ok(Some(_)) = batches.message().await {}
}

/// Both bounds on uses hold after kills, and both sides continue after each restart. The slack is small, so that each side waits for
/// the other most of the time.
#[tokio::test(flavor = "multi_thread")]
async fn both_bounds_hold_after_kills_and_neither_side_waits_forever() {
    const SLACK: u64 = 400;
    // Games that were permitted but are not committed yet.
    const ON_THE_WAY: u64 = 2 * 20 + 64 * 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("replay");
    let bounds = [
        "replay.min_uses=1.0",
        "replay.max_uses=1.5",
        "replay.uses_slack=400",
        "learner.samples_per_position=1.2",
    ];
    let holds = |numbers: &proto::v1::StatsReply, context: &str| {
        let (inserted, sampled) = (numbers.positions_inserted, numbers.positions_sampled);
        // The reservation of a killed store counts as sampled.
        let reserved = (sampled / 128) as f64;
        assert!(
            sampled as f64 <= 1.5 * inserted as f64 + reserved,
            "{context}: {numbers:?}"
        );
        assert!(inserted <= sampled + SLACK + ON_THE_WAY, "{context}: {numbers:?}");
    };
    let (mut inserted, mut sampled) = (0, 0);
    for round in 0..8u64 {
        let address = free_address();
        let mut process = Process(command_with(&path, address, &bounds).spawn().unwrap());
        let mut own = client(address);
        ready(&mut own, &mut process).await;
        // The rounds use in turn both sides, only games, and only batches.
        let mut sides = tokio::task::JoinSet::new();
        if round % 4 != 3 {
            for stream in 0..2 {
                sides.spawn(keep_sending(client(address), (round * 2 + stream) * 1_000_000));
            }
        }
        if round % 4 != 1 {
            sides.spawn(keep_sampling(client(address), round));
        }
        let deadline = std::time::Instant::now() + Duration::from_secs(120);
        loop {
            let numbers = stats(&mut own).await;
            holds(&numbers, &format!("round {round}"));
            let is_done = match round % 4 {
                // Games stop when they are too far ahead, and so do batches.
                1 => numbers.appends_held,
                3 => numbers.samples_held,
                _ => numbers.positions_inserted > inserted + 600 && numbers.positions_sampled > sampled + 600,
            };
            if is_done {
                (inserted, sampled) = (numbers.positions_inserted, numbers.positions_sampled);
                break;
            }
            assert!(
                std::time::Instant::now() < deadline,
                "round {round}: nothing moves: {numbers:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        process.0.kill().unwrap();
        process.0.wait().unwrap();
        sides.shutdown().await;
    }
    println!("{inserted} positions inserted, {sampled} sampled through 8 kills");
}
