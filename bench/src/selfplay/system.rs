//! The processes of the benchmark, started as `minuet up` starts them: [`System`]. Their counters at one moment: [`Sample`].

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use config::{Override, RunConfig, template};
use launcher::page::Page;
use proto::v1::{DescribeModelRequest, ModelDescription, evaluator_client::EvaluatorClient};
use service::{
    process::{self, Usage},
    role::Role,
};
use tempfile::TempDir;

use super::Arguments;
use crate::harness::{
    model, page,
    role::{RoleProcess, free_addresses},
    runtime,
};

/// Roles of the benchmark.
pub const ROLES: [Role; 3] = [Role::Actor, Role::InferenceServer, Role::ReplayStore];
/// Metric of the actor: number of visits.
const VISITS: &str = "minuet_actor_visits_total";

/// Longest time until the first answer: the provider may be chosen by measurement before it.
const READY_WITHIN: Duration = Duration::from_secs(180);
/// Longest time until the actor updates its page.
const UPDATED_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);

/// The processes and their folder, which is removed with them.
pub struct System {
    pub config: RunConfig,
    pub model: ModelDescription,
    /// Version of the network, or its size if its weights are random.
    pub network: String,
    processes: Vec<RoleProcess>,
    _folder: TempDir,
}

impl System {
    /// Publishes the network, starts everything and waits for the first visits.
    pub fn start(arguments: &Arguments) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("minuet-selfplay-").tempdir()?;
        let runtime = runtime()?;
        let mut config = new_config(arguments, folder.path())?;
        let (game, options) = (&config.game.name, config.game.options);
        let shape = (config.model.blocks as usize, config.model.filters as usize);
        let (file, network) = model::find(game, Some(options), arguments.model.as_ref(), shape)?;
        config.game.options = file.layout.options;
        let (store, label) = (&config.checkpoints.store, &config.actor.model);
        runtime.block_on(model::publish(store, label, &file))?;
        let file = folder.path().join("run.toml");
        fs::write(&file, template(&config))?;
        let start = |role| RoleProcess::start(role, ["--config".as_ref(), file.as_os_str()], arguments.logs);
        let store = start(Role::ReplayStore)?;
        let mut server = match arguments.simulated_device {
            false => start(Role::InferenceServer)?,
            true => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["device", "--config"]).arg(&file);
                RoleProcess::spawn(Role::InferenceServer, command, arguments.logs)?
            }
        };
        let _inside = runtime.enter();
        let mut client = EvaluatorClient::new(service::connect::channel(&config.inference.address)?);
        let model = server.wait_until(READY_WITHIN, || {
            let request = DescribeModelRequest {
                model: config.actor.model.clone(),
            };
            Ok(runtime.block_on(client.describe_model(request))?.into_inner())
        })?;
        let mut actor = start(Role::Actor)?;
        let metrics = config.actor.metrics.parse()?;
        actor.wait_until(READY_WITHIN, || {
            let visits = page(metrics)?.sum(VISITS);
            ensure!(visits > Some(0.0), "the actor has searched nothing");
            Ok(())
        })?;
        Ok(Self {
            config,
            model,
            network,
            processes: vec![actor, server, store],
            _folder: folder,
        })
    }

    /// Returns the process number and metrics page of a role.
    pub fn process(&self, role: Role) -> anyhow::Result<(u32, SocketAddr)> {
        let process = self.processes.iter().find(|process| process.role() == role);
        let process = process.with_context(|| format!("{} was not started", role.name()))?;
        Ok((process.pid(), role.metrics(&self.config).parse()?))
    }

    /// Returns the number of worker threads of the actor.
    pub fn actor_threads(&self) -> usize {
        self.config.actor.worker_threads(process::cores())
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // The actor first, because it sends its results to the others.
        self.processes.drain(..).for_each(RoleProcess::stop);
    }
}

/// Returns the configuration of a new run of the game, as `minuet up` makes it, in `folder` and with addresses of its own. Settings
/// of the command line come last, so they override the others.
fn new_config(arguments: &Arguments, folder: &Path) -> anyhow::Result<RunConfig> {
    let numbers = [
        ("search.visits", arguments.visits),
        ("model.blocks", arguments.blocks),
        ("model.filters", arguments.filters),
    ];
    let mut settings: Vec<Override> = Vec::new();
    for (key, number) in numbers {
        settings.extend(number.map(|number| Override::new(key, number)).transpose()?);
    }
    let keys = [
        "inference.address",
        "inference.metrics",
        "replay.address",
        "replay.metrics",
        "actor.metrics",
    ];
    for (key, free) in keys.into_iter().zip(free_addresses(keys.len())?) {
        settings.push(Override::text(key, &free.to_string())?);
    }
    if arguments.simulated_device {
        // So the other settings are chosen as for a GPU. The simulated device replaces the provider itself.
        settings.push(Override::text("inference.provider", "cuda")?);
    }
    settings.extend(arguments.overrides.iter().cloned());
    let mut config = launcher::new_run(Some(&arguments.game), &settings)?;
    config.resolve_paths(folder);
    Ok(config)
}

/// All counters at one moment.
pub struct Sample {
    pub at: Instant,
    pages: Vec<(Role, Page, Usage)>,
}

impl Sample {
    /// Takes a sample right after the actor has updated its page, which it does every second.
    pub fn take(system: &System) -> anyhow::Result<Self> {
        let actor = system.process(Role::Actor)?.1;
        let old = page(actor)?.sum(VISITS);
        let began = Instant::now();
        while page(actor)?.sum(VISITS) <= old {
            ensure!(
                began.elapsed() < UPDATED_WITHIN,
                "the actor has stopped playing; --logs shows why"
            );
            thread::sleep(POLL);
        }
        let at = Instant::now();
        let mut pages = Vec::new();
        for role in ROLES {
            let (pid, metrics) = system.process(role)?;
            let usage = process::usage(pid)
                .with_context(|| format!("{} has ended; --logs shows why", role.binary()))?;
            pages.push((role, page(metrics)?, usage));
        }
        Ok(Self { at, pages })
    }

    /// Returns the value of a role's counter, summed over its labels; 0 if there is none.
    pub fn counter(&self, role: Role, name: &str) -> f64 {
        self.of(role).and_then(|(page, _)| page.sum(name)).unwrap_or(0.0)
    }

    /// Returns the processor time that a role has used, in seconds.
    pub fn cpu_seconds(&self, role: Role) -> f64 {
        self.of(role).map_or(0.0, |(_, usage)| usage.cpu_seconds)
    }

    /// Returns the resident memory of a role, in bytes.
    pub fn memory(&self, role: Role) -> u64 {
        self.of(role).map_or(0, |(_, usage)| usage.resident_bytes)
    }

    fn of(&self, role: Role) -> Option<(&Page, &Usage)> {
        let found = self.pages.iter().find(|(own, _, _)| *own == role);
        found.map(|(_, page, usage)| (page, usage))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn config(words: &str) -> RunConfig {
        let words = std::iter::once("selfplay").chain(words.split_whitespace());
        let folder = tempfile::tempdir().unwrap();
        new_config(&CommandLine::parse_from(words).arguments, folder.path()).unwrap()
    }

    #[test]
    fn settings_of_the_command_line_have_priority_and_addresses_differ() {
        let config = config("--visits 50 --set search.leaves=7 --set actor.threads=3");
        assert_eq!(
            (config.search.visits, config.search.leaves, config.actor.threads),
            (50, 7, 3)
        );
        assert_eq!(config.game.name, RunConfig::default().game.name);
        let (inference, replay) = (&config.inference, &config.replay);
        let servers = [
            &inference.address,
            &inference.metrics,
            &replay.address,
            &replay.metrics,
        ];
        let different: std::collections::HashSet<_> =
            servers.into_iter().chain([&config.actor.metrics]).collect();
        assert_eq!(different.len(), 5);
    }

    #[test]
    fn a_simulated_device_is_given_work_as_a_gpu() {
        let (real, simulated) = (config(""), config("--simulated-device"));
        assert_eq!(real.inference.largest_batch(), 128);
        assert_eq!(simulated.inference.largest_batch(), 2048);
        let set = config("--simulated-device --set inference.max_batch=64");
        assert_eq!(set.inference.largest_batch(), 64);
    }

    #[test]
    fn a_game_has_the_settings_of_a_new_run() {
        let own = config("--game connect-four --blocks 2");
        let mut expected = launcher::new_run(Some("connect-four"), &[]).unwrap();
        // Connect Four has search settings that differ from the defaults, so the comparison below could fail.
        assert_ne!(expected.search, RunConfig::default().search);
        expected.model.blocks = 2;
        assert_eq!((own.game, own.model), (expected.game, expected.model));
        assert_eq!(own.search, expected.search);
    }
}
