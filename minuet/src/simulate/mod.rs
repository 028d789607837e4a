//! `minuet simulate`: what actors, inference servers, the replay store and the learner do together, by measured figures.
//!
//! `minuet plan` multiplies rates by costs. The simulation also has queues, latencies, uneven load and failures, so it shows where
//! more actors bring nothing.
//!
//! | module | contents |
//! |---|---|
//! | [`costs`] | costs of each step, from results of `minuet bench … --json` |
//! | [`system`], [`steps`] | the roles as discrete events, a pure function of settings and seed |
//! | [`actor`], [`server`], [`storage`] | the state of each role |
//! | [`host`] | machines whose cores are shared |
//! | [`clock`] | events in order, random draws |
//! | [`failure`] | processes that end and come back |
//! | [`outcome`] | what is counted |
//! | [`table`], [`plot`] | text and pictures |

mod actor;
mod clock;
mod costs;
mod failure;
mod host;
mod outcome;
mod plot;
mod server;
mod steps;
mod storage;
mod system;
mod table;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use config::{Override, RunConfig};
use games::registry;
use launcher::BadUsage;
use service::role::Role;

use crate::plan::measured::Measured;
use costs::Wanted;
use failure::Failure;
use outcome::Outcome;
use system::Settings;

pub use costs::Missing;

/// Arguments of `minuet simulate`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet simulate --game paco-sako --actors 1,10,100,1000 --servers 1,10,100 --latency-ms 0.2
      where more actors bring nothing, by the figures that come with Minuet
  minuet simulate --game paco-sako --actors 1 --servers 1 --cores 2 --no-learner
      the system of `minuet bench selfplay` on two cores
  minuet simulate --game paco-sako --actors 8 --servers 4 --fail inference-server@20+10 --fail replay-store@40+10 --plot run.svg
      a server that is gone for ten seconds, later the store; the picture shows the rates over the time

An actor is one worker thread. Without --cores each actor, server, store and learner has a core of its own.
Equal arguments give equal figures.")]
pub struct Arguments {
    /// Name of the game.
    #[arg(long, value_parser = PossibleValuesParser::new(registry::NAMES))]
    game: String,
    /// Size of the network, as BLOCKSxFILTERS. [default: that of a new run of the game]
    #[arg(long)]
    network: Option<String>,
    /// Worker threads of all actors, 1 to 10000; several numbers, separated by commas, are simulated one after the other.
    #[arg(long, value_name = "N", required = true, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    actors: Vec<u32>,
    /// Inference servers, 1 to 256, which is as many as an actor uses; also several numbers.
    #[arg(long, value_name = "N", default_value = "1", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=256))]
    servers: Vec<u32>,
    /// Time of a message from one process to another, in milliseconds, 0 to 10000; also several numbers.
    #[arg(long, value_name = "MS", default_value = "0", value_delimiter = ',', value_parser = milliseconds)]
    latency_ms: Vec<f64>,
    /// Cores of one machine that all roles share. [default: a core for each process]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    cores: Option<u32>,
    /// Leave the learner out.
    #[arg(long)]
    no_learner: bool,
    /// A process of ROLE ends AT seconds after the start and runs again after SECONDS; may be repeated.
    #[arg(long = "fail", value_name = "ROLE@AT+SECONDS")]
    failures: Vec<Failure>,
    /// Simulated time, in seconds, 1 to 86400. The first quarter is a warm-up and not counted, unless something fails.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Seed of all random draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Set a key of the run's configuration, e.g. --set actor.requests_in_flight=6. May be repeated.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    overrides: Vec<Override>,
    /// File of results of `minuet bench … --json`, one object after the other; the last one of a kind counts.
    /// [default: the figures that come with Minuet]
    #[arg(long, value_name = "FILE")]
    measured: Option<PathBuf>,
    /// Write a picture (SVG): positions a second over the actors, or over the time if something fails.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print one JSON object for each system.
    #[arg(long)]
    json: bool,
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok();
    let parsed = parsed.filter(|latency| (0.0..=10_000.0).contains(latency));
    parsed.ok_or_else(|| "not a number from 0 to 10000".into())
}

/// Simulates each system and prints its figures.
///
/// # Errors
/// The file of figures cannot be used, a figure is missing, or the picture cannot be written.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let config = launcher::new_run(Some(&arguments.game), &arguments.overrides)?;
    let measured = match &arguments.measured {
        None => Measured::shipped()?,
        Some(file) => Measured::read(file)?,
    };
    let usual = format!("{}x{}", config.model.blocks, config.model.filters);
    let network = arguments.network.clone().unwrap_or(usual);
    let wanted = Wanted {
        game: &arguments.game,
        network: &network,
        is_shared: arguments.cores.is_some(),
    };
    let found = wanted.find(&measured)?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for &latency in &arguments.latency_ms {
        for &servers in &arguments.servers {
            for &actors in &arguments.actors {
                let settings = Settings {
                    actors: actors as usize,
                    servers: servers as usize,
                    latency: 1e-3 * latency,
                    ..arguments.settings(&config, found.costs.clone())
                };
                arguments.check(&settings)?;
                let outcome = system::simulate(&settings);
                if arguments.json {
                    println!("{}", serde_json::to_string(&outcome)?);
                }
                outcomes.push(outcome);
            }
        }
    }
    if !arguments.json {
        print!("{}", table::text(&outcomes));
        println!("\nfrom figures of");
        for source in &found.sources {
            println!("  {source}");
        }
    }
    if let Some(file) = &arguments.plot {
        let picture = arguments.picture(&network, &outcomes)?;
        std::fs::write(file, picture).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

impl Arguments {
    /// Settings with one actor and one server, without latency.
    fn settings(&self, config: &RunConfig, costs: costs::Costs) -> Settings {
        let seconds = f64::from(self.seconds);
        // A picture of failures shows all of the time.
        let warm_up = if self.failures.is_empty() {
            0.25 * seconds
        } else {
            0.0
        };
        let cores = self.cores.map_or(1, |cores| cores as usize);
        let batch = config.inference.largest_batch();
        let learner = (
            config.learner.batch_size as f64,
            config.learner.samples_per_position,
        );
        Settings {
            costs,
            actors: 1,
            servers: 1,
            rows: config.actor.games_on_thread(cores, batch) as u32 * config.search.leaves,
            rows_per_request: config.actor.rows_per_request as u32,
            requests_in_flight: config.actor.requests_of_thread(cores, batch),
            max_batch: batch as u32,
            latency: 0.0,
            cores: self.cores,
            learner: (!self.no_learner).then_some(learner),
            failures: self.failures.clone(),
            warm_up,
            seconds: seconds - warm_up,
            seed: self.seed,
        }
    }

    /// Checks that every failure hits a process that exists.
    fn check(&self, settings: &Settings) -> Result<(), BadUsage> {
        for role in failure::ROLES {
            let failures = self
                .failures
                .iter()
                .filter(|failure| failure.role == role)
                .count();
            let processes = match role {
                Role::Actor => settings.actors,
                Role::InferenceServer => settings.servers,
                _ => failures,
            };
            if failures > processes {
                return Err(BadUsage(format!(
                    "--fail {}: {failures} failures, but only {processes} of them run; each failure needs a process of its own",
                    role.name()
                )));
            }
        }
        Ok(())
    }

    fn picture(&self, network: &str, outcomes: &[Outcome]) -> Result<String, BadUsage> {
        let title = format!("{}, network {network}, simulated", self.game);
        let plot = match outcomes {
            [outcome] if !self.failures.is_empty() => table::by_time(
                format!(
                    "{title}: {} actors, {} servers, failures",
                    outcome.actors, outcome.servers
                ),
                outcome,
            ),
            _ if self.failures.is_empty() => table::by_actors(title, outcomes),
            _ => {
                return Err(BadUsage(
                    "--plot with --fail shows one system over the time; give one number for each of --actors, --servers and --latency-ms"
                        .into(),
                ));
            }
        };
        Ok(plot.svg())
    }
}
