//! `minuet bench selfplay`: the whole system except the learner, on this machine.
//!
//! A trained network, or one of random weights, is published to an empty model repository; inference server, replay store and actor are
//! started as `minuet up` starts them, each as a process, over real gRPC. The figures are the growth of the processes' counters
//! after a warm-up. Visits are also reported by their source: fresh evaluation, cache, gray or terminal.
//!
//! | module | content |
//! |---|---|
//! | [`device`] | a simulated device in place of ONNX Runtime |
//! | [`system`] | starts and stops the processes, and reads their counters at one moment |

pub mod device;
mod system;

use std::{thread, time::Duration};

use anyhow::ensure;
use config::Override;
use network::ModelName;
use serde::Serialize;
use service::role::Role;

use self::system::{Sample, System};
use crate::harness::report;

/// Arguments of `minuet bench selfplay`.
#[derive(clap::Args)]
#[command(after_help = "Example: minuet bench selfplay --blocks 4 --filters 64 --seconds 30 --json")]
pub struct Arguments {
    /// The game.
    #[arg(long, default_value = "paco-sako")]
    game: String,
    /// Length of the measurement, in seconds.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Length of the warm-up from the first visit on, in seconds.
    #[arg(long, default_value_t = 10)]
    warm_up: u64,
    /// Trained network: a run, a checkpoint's folder or an .onnx file. Default: a network of random weights.
    #[arg(long, conflicts_with_all = ["blocks", "filters"])]
    model: Option<ModelName>,
    /// Residual blocks of the random network. [default: those of a new run of the game]
    #[arg(long)]
    blocks: Option<u32>,
    /// Filters of the random network. [default: those of a new run of the game]
    #[arg(long)]
    filters: Option<u32>,
    /// Visits per move. [default: those of a new run of the game]
    #[arg(long)]
    visits: Option<u32>,
    /// Answer batches by a simulated device as fast as a GPU (300 µs and 2 µs for each row), which uses no core meanwhile. Without
    /// it, the network is evaluated.
    #[arg(long)]
    simulated_device: bool,
    /// Set another key of the run's configuration, e.g. --set actor.games_per_thread=128. May be repeated.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    overrides: Vec<Override>,
    /// Show the logs of the processes.
    #[arg(long)]
    logs: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Result of the benchmark.
#[derive(Debug, Serialize)]
struct Report {
    /// Always `selfplay`.
    bench: &'static str,
    game: String,
    /// Version of the network, or `random weights` with its blocks and filters.
    network: String,
    /// Execution provider of the network, or `simulated`.
    provider: String,
    cores: usize,
    /// Threads that compute a batch each, and the measured speeds from which the server has chosen them.
    inference_threads: u32,
    thread_speeds: Vec<(u32, f64)>,
    actor_threads: usize,
    games_in_progress: usize,
    visits_per_move: u32,
    leaves: u32,
    /// Requests that each actor thread may have in flight.
    requests_in_flight: usize,
    /// Largest batch that the device is given, in positions.
    largest_batch: usize,
    cache_mib: usize,
    /// Length of the measurement after the warm-up, in seconds.
    seconds: f64,
    visits_per_second: f64,
    /// Visits per second with a fresh evaluation; the fields after it are the other sources of visits.
    fresh_evaluations_per_second: f64,
    cache_hits_per_second: f64,
    duplicates_in_flight_per_second: f64,
    gray_visits_per_second: f64,
    terminal_visits_per_second: f64,
    /// Actions played per second; each is a position in the replay store.
    positions_per_second: f64,
    /// Number of games that ended during the measurement. All games begin at the same time, so a short run sees few ends.
    games: u64,
    games_per_hour: f64,
    /// Mean share of a batch that is filled with positions, and mean number of positions per batch.
    batch_fill: f64,
    positions_per_batch: f64,
    rows_per_request: f64,
    /// Share of time in which the device computed; of a simulated device, the share that its batches take by its pace.
    device_busy: f64,
    /// Share of time in which worker threads had work.
    worker_busy: f64,
    /// Processor time per process, in cores; for the actor also per visit, in microseconds.
    actor_cores: f64,
    inference_cores: f64,
    replay_cores: f64,
    /// Share of the cores that all processes together kept busy.
    cores_busy: f64,
    actor_us_per_visit: f64,
    actor_memory_mib: u64,
    inference_memory_mib: u64,
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    ensure!(arguments.seconds >= 1, "--seconds must be at least 1");
    let report = measure(&arguments)?;
    report::print(&report, arguments.json)
}

fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let system = System::start(arguments)?;
    eprintln!(
        "{} is served by {}; warming up for {} s",
        system.model.version, system.model.provider, arguments.warm_up
    );
    thread::sleep(Duration::from_secs(arguments.warm_up));
    let before = Sample::take(&system)?;
    thread::sleep(Duration::from_secs(arguments.seconds));
    let after = Sample::take(&system)?;
    let seconds = (after.at - before.at).as_secs_f64();
    let grown = |role, counter| after.counter(role, counter) - before.counter(role, counter);
    let actor = |counter| grown(Role::Actor, counter);
    let server = |counter| grown(Role::InferenceServer, counter);
    let rate = |counter| actor(counter) / seconds;
    let cores = |role| (after.cpu_seconds(role) - before.cpu_seconds(role)) / seconds;
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let memory = |role| after.memory(role) >> 20;
    let visits = actor("minuet_actor_visits_total");
    ensure!(visits > 0.0, "nothing was played; run it with --logs to see why");
    let fresh = actor("minuet_actor_fresh_evaluations_total");
    let busy = actor("minuet_actor_worker_busy_seconds_total");
    let waiting = actor("minuet_actor_worker_waiting_seconds_total");
    let batch_positions = server("minuet_inference_batch_positions_total");
    let batches = server("minuet_inference_batches_total");
    let slots = server("minuet_inference_batch_slots_total");
    let device_seconds = match arguments.simulated_device {
        // The server's own clock counts the wait for the device too.
        true => device::seconds(batches, slots),
        false => server("minuet_inference_device_seconds_sum"),
    };
    let (config, model) = (&system.config, &system.model);
    let (all_cores, largest_batch) = (service::process::cores(), config.inference.largest_batch());
    let games = actor("minuet_actor_games_total");
    let speeds = model.thread_speeds.iter();
    Ok(Report {
        bench: "selfplay",
        game: arguments.game.clone(),
        network: system.network.clone(),
        provider: model.provider.clone(),
        cores: all_cores,
        inference_threads: model.threads,
        thread_speeds: speeds
            .map(|speed| (speed.threads, speed.positions_per_second))
            .collect(),
        actor_threads: system.actor_threads(),
        games_in_progress: system.actor_threads() * config.actor.games_on_thread(all_cores, largest_batch),
        visits_per_move: config.search.visits,
        leaves: config.search.leaves,
        requests_in_flight: config.actor.requests_of_thread(all_cores, largest_batch),
        largest_batch,
        cache_mib: config.actor.cache_mib,
        seconds,
        visits_per_second: visits / seconds,
        fresh_evaluations_per_second: fresh / seconds,
        cache_hits_per_second: rate("minuet_actor_cache_hits_total"),
        duplicates_in_flight_per_second: rate("minuet_actor_duplicates_in_flight_total"),
        gray_visits_per_second: rate("minuet_actor_gray_visits_total"),
        terminal_visits_per_second: rate("minuet_actor_terminal_visits_total"),
        positions_per_second: rate("minuet_actor_actions_total"),
        games: games as u64,
        games_per_hour: games / seconds * 3600.0,
        batch_fill: share(batch_positions, slots),
        positions_per_batch: share(batch_positions, batches),
        rows_per_request: share(fresh, actor("minuet_actor_requests_total")),
        device_busy: device_seconds / seconds,
        worker_busy: share(busy, busy + waiting),
        actor_cores: cores(Role::Actor),
        inference_cores: cores(Role::InferenceServer),
        replay_cores: cores(Role::ReplayStore),
        cores_busy: system::ROLES.into_iter().map(cores).sum::<f64>() / all_cores as f64,
        actor_us_per_visit: cores(Role::Actor) * seconds * 1e6 / visits,
        actor_memory_mib: memory(Role::Actor),
        inference_memory_mib: memory(Role::InferenceServer),
    })
}
