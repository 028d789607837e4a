//! A learner that is killed again and again, on a real replay store that is killed too while games keep coming, publishes bit for bit
//! the checkpoints of a learner that is never killed.

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use checkpoints::Repository;
use config::{LearnerConfig, ModelConfig, Precision, RunConfig};
use proto::v1::{StatsReply, StatsRequest, replay_store_client::ReplayStoreClient};
use tokio::time::{sleep, timeout};

use crate::support::{program::Killed, run::program_of, synthetic};
use tonic::transport::Channel;

/// Longest wait; a test that waits this long is assumed to hang.
const TIMEOUT: Duration = Duration::from_secs(240);
/// Interval between two looks at a condition.
const INTERVAL: Duration = Duration::from_millis(10);
const BATCH: u64 = 32;
const CHECKPOINT_STEPS: u64 = 6;
const KILLS: u64 = 4;
const STEPS: u64 = 30;
const POSITIONS: usize = 20;

fn start(role: &str, config: &Path) -> Killed {
    let mut command = Command::new(program_of(role));
    command.arg("--config").arg(config).env("MINUET_LOG", "warn");
    Killed(command.stdin(Stdio::null()).spawn().unwrap())
}

/// Writes the configuration of a run in `home` whose store listens at `address`.
fn write_config(home: &Path, address: &str) -> RunConfig {
    fs::create_dir_all(home).unwrap();
    let mut config = RunConfig {
        model: ModelConfig {
            blocks: 1,
            filters: 8,
            value_hidden: 16,
            ..ModelConfig::default()
        },
        learner: LearnerConfig {
            batch_size: BATCH as usize,
            warmup_steps: 3,
            threads: 1,
            min_positions: 50,
            checkpoint_steps: CHECKPOINT_STEPS,
            average_decay: 0.9,
            precision: Precision::F32,
            health: String::new(),
            metrics: String::new(),
            ..LearnerConfig::default()
        },
        ..RunConfig::default()
    };
    config.replay.address = address.into();
    config.replay.metrics = String::new();
    config.replay.health = String::new();
    fs::write(home.join("run.toml"), config::template(&config)).unwrap();
    config::load(&home.join("run.toml")).unwrap()
}

async fn until<T>(what: &str, condition: impl AsyncFn() -> Option<T>) -> T {
    let holds = async {
        loop {
            if let Some(found) = condition().await {
                return found;
            }
            sleep(INTERVAL).await;
        }
    };
    timeout(TIMEOUT, holds).await.unwrap_or_else(|_| panic!("{what}"))
}

fn client(address: &str) -> ReplayStoreClient<Channel> {
    let endpoint = Channel::from_shared(format!("http://{address}")).unwrap();
    ReplayStoreClient::new(endpoint.connect_lazy())
}

async fn stats(address: &str) -> Option<StatsReply> {
    let reply = client(address).stats(StatsRequest::default()).await;
    reply.ok().map(tonic::Response::into_inner)
}

/// Appends one game after the other until `is_over`. A game without acknowledgement is sent again.
async fn append(address: String, appended: Arc<AtomicU64>, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        let number = appended.load(Ordering::Relaxed);
        let game = synthetic::game(number, POSITIONS);
        let acknowledged = async {
            let mut acks = client(&address)
                .append(tokio_stream::iter([game]))
                .await
                .ok()?
                .into_inner();
            let ack = acks.message().await.ok()??;
            ack.refused.is_empty().then_some(())
        };
        if acknowledged.await.is_some() {
            appended.store(number + 1, Ordering::Relaxed);
        }
        sleep(INTERVAL).await;
    }
}

/// Returns the digests of each checkpoint's files by step.
async fn digests(repository: &Repository) -> BTreeMap<u64, Vec<String>> {
    let list = repository.list().await.unwrap();
    list.iter()
        .map(|manifest| {
            let digests = manifest.files.values().map(|file| file.sha256.clone());
            (manifest.draft.step, digests.collect())
        })
        .collect()
}

async fn reaches(repository: &Repository, step: u64) {
    until(&format!("step {step} does not come"), async || {
        let newest = repository.newest().await.unwrap()?;
        (newest.draft.step >= step).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_on_a_growing_store_change_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = port.to_string();
    let (home, reference_home) = (folder.path().join("killed"), folder.path().join("reference"));
    let config = write_config(&home, &address);
    let run = home.join("run.toml");
    let repository = Repository::open(&config.checkpoints.store).unwrap();

    // Both learners begin with the same first checkpoint. The store is empty, so that the learner waits after it.
    let mut store = start("replay-store", &run);
    let learner = start("learner", &run);
    reaches(&repository, 0).await;
    drop(learner);
    let reference = write_config(&reference_home, &address);
    for place in ["checkpoints", "learner"] {
        test_support::copy_folder(&home.join(place), &reference_home.join(place));
    }

    let (appended, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let appending = tokio::spawn(append(address.clone(), appended.clone(), is_over.clone()));
    for kill in 1..=KILLS {
        let before = stats(&address).await.map_or(0, |stats| stats.positions_sampled);
        let learner = start("learner", &run);
        let step = kill * CHECKPOINT_STEPS;
        reaches(&repository, step).await;
        // Batches after the checkpoint were given to it, some of which it has trained on.
        until("no batch is given", async || {
            let sampled = stats(&address).await?.positions_sampled;
            (sampled >= (step + 3) * BATCH && sampled > before).then_some(())
        })
        .await;
        drop(learner);
        if kill % 2 == 0 {
            drop(store);
            store = start("replay-store", &run);
        }
        // The window is another one when the next learner begins.
        let then = appended.load(Ordering::Relaxed);
        until("no game is stored", async || {
            (appended.load(Ordering::Relaxed) >= then + 10).then_some(())
        })
        .await;
    }
    let learner = start("learner", &run);
    reaches(&repository, STEPS).await;
    drop(learner);

    let killed = digests(&repository).await;
    let games = appended.load(Ordering::Relaxed);
    let repository = Repository::open(&reference.checkpoints.store).unwrap();
    // The reference begins at step 0.
    assert_eq!(digests(&repository).await.len(), 1);
    let learner = start("learner", &reference_home.join("run.toml"));
    reaches(&repository, STEPS).await;
    drop(learner);
    assert!(appended.load(Ordering::Relaxed) > games, "games kept coming");
    is_over.store(true, Ordering::Relaxed);
    appending.await.unwrap();
    drop(store);
    let unkilled = digests(&repository).await;
    for step in [0, 6, 12, 18, 24, STEPS] {
        assert_eq!(killed[&step], unkilled[&step], "checkpoints of step {step}");
    }
    assert_ne!(killed[&0], killed[&STEPS]);
}
