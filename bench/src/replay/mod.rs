//! `minuet bench replay`: positions per second that a replay store flushes to its folder, and that it sends in batches.
//!
//! The store is the role's process, pinned to one core; the client is this process, pinned to another. They are connected by gRPC
//! on loopback. Games are random games by the rules, cut off after 64 positions, with a hundred visits over the legal actions. A position is counted as
//! appended when its game is acknowledged, so it is flushed then, and as sampled when its batch has been decoded. Figures are
//! medians of the rounds, by wall clock and per second of the store's processor time, which other work on the machine disturbs
//! less.

mod load;
mod pool;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use games::{Game as _, paco_sako::PacoSako, registry};
use proto::v1::{StatsReply, StatsRequest, replay_store_client::ReplayStoreClient};
use serde::Serialize;
use service::{filesystem::Filesystem, role::Role};

use self::{load::Load, pool::Pool};
use crate::harness::{
    measure::{Cores, Measured, measure},
    report,
    role::{RoleProcess, free_addresses},
    rounds, runtime,
};

/// Longest time in which the store opens an empty folder.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Arguments of `minuet bench replay`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  minuet bench replay --seconds 3 --json")]
pub struct Arguments {
    /// Game whose positions are stored.
    #[arg(long, default_value = PacoSako::NAME, value_parser = PossibleValuesParser::new(registry::NAMES))]
    game: String,
    /// Most positions in each game.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=2048))]
    positions: u16,
    /// Streams, each on a connection of its own.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    streams: u16,
    /// Positions in a batch.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    batch: u32,
    /// Positions in the store's window.
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(10_000..))]
    window: u64,
    /// Folder in which the store's own folder is made, and removed at the end; its file system is named in the result. Default:
    /// the system's folder of temporary files.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Number of rounds; results are medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    bench: &'static str,
    game: String,
    positions_per_game: u16,
    streams: u16,
    batch: u32,
    window: u64,
    rounds: u8,
    /// True if store and client each had a core of their own.
    is_pinned: bool,
    /// Name of the file system that the store writes to.
    filesystem: String,
    /// False if that file system lies in memory.
    durable: bool,
    appended: Rates,
    sampled: Rates,
    /// Bytes of a position: in the message, in its record, on the disk.
    message_bytes: f64,
    stored_bytes: f64,
    disk_bytes: f64,
    /// Bytes of a position in a batch.
    batch_bytes: f64,
    /// Resident memory of the store at the end, in MiB.
    memory_mib: f64,
}

/// Positions a second, medians over the rounds.
#[derive(Serialize)]
struct Rates {
    per_second: f64,
    per_cpu_second: f64,
}

impl Rates {
    fn median(rounds: &[Measured]) -> Self {
        Self {
            per_second: report::median_of(rounds, Measured::per_second),
            per_cpu_second: report::median_of(rounds, Measured::per_cpu_second),
        }
    }
}

/// Runs the benchmark and prints the result.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let pool = Pool::play(&arguments.game, usize::from(arguments.positions))?;
    let parent = arguments.folder.unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new()
        .prefix("minuet-replay-")
        .tempdir_in(&parent)
        .with_context(|| format!("cannot make a folder in {}", parent.display()))?;
    let filesystem = Filesystem::of(folder.path()).context("cannot find the file system of the folder")?;
    let cores = Cores::find()?;
    cores.use_first()?;
    let (mut store, address) = start_store(folder.path(), (&arguments.game, pool.options), arguments.window)?;
    cores.use_second()?;
    // Made after this thread was pinned, because the runtime's threads inherit its core.
    let runtime = runtime()?;
    store.wait_until(TIMEOUT, || runtime.block_on(stats(&address)))?;
    let load = {
        // A channel belongs to the runtime in which it is made.
        let _inside = runtime.enter();
        Load::new(&address, usize::from(arguments.streams))?
    };
    let count = usize::from(arguments.rounds);
    let appended = rounds(count, || {
        measure(store.pid(), || {
            runtime.block_on(load.append(&pool, arguments.seconds))
        })
    })?;
    // Fill the window, so that batches are drawn from all of it.
    while runtime.block_on(stats(&address))?.positions_inserted < arguments.window {
        runtime.block_on(load.append(&pool, 0.5))?;
    }
    let sampled = rounds(count, || {
        measure(store.pid(), || {
            runtime.block_on(load.sample(arguments.batch, arguments.seconds))
        })
    })?;
    let stats = runtime.block_on(stats(&address))?;
    let usage = service::process::usage(store.pid()).context("the store has ended")?;
    let each = |bytes: u64| bytes as f64 / stats.window_positions as f64;
    let found = Report {
        bench: "replay",
        game: arguments.game,
        positions_per_game: arguments.positions,
        streams: arguments.streams,
        batch: arguments.batch,
        window: arguments.window,
        rounds: arguments.rounds,
        is_pinned: cores.are_two(),
        filesystem: filesystem.name,
        durable: filesystem.durable,
        appended: Rates::median(&appended),
        sampled: Rates::median(&sampled),
        message_bytes: pool.message_bytes(),
        stored_bytes: each(stats.stored_bytes),
        disk_bytes: each(stats.disk_bytes),
        batch_bytes: runtime.block_on(load.batch_bytes(arguments.batch))?,
        memory_mib: usage.resident_bytes as f64 / f64::from(1 << 20),
    };
    report::print(&found, arguments.json)
}

/// Starts a store of a game and its options in `folder`; returns it with its address.
fn start_store(
    folder: &Path,
    (game, options): (&str, u32),
    window: u64,
) -> anyhow::Result<(RoleProcess, String)> {
    let address = free_addresses(1)?.first().map(ToString::to_string);
    let address = address.context("there is no free port")?;
    let settings = vec![
        format!("game.name={game}"),
        format!("game.options={options}"),
        format!("replay.address={address}"),
        format!("replay.folder={}", folder.join("replay").display()),
        format!("replay.window_positions={window}"),
        "replay.held_out=0".to_owned(),
    ];
    Ok((RoleProcess::start_with(Role::ReplayStore, settings)?, address))
}

async fn stats(address: &str) -> anyhow::Result<StatsReply> {
    let mut client = ReplayStoreClient::new(service::connect::channel(address)?);
    Ok(client.stats(StatsRequest::default()).await?.into_inner())
}
