//! The processes of the benchmark, as `minuet up` starts them; they end when this does, however it ends.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    num::NonZero,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use config::{RunConfig, load_with, template};
use proto::v1::{DescribeModelRequest, ModelDescription, evaluator_client::EvaluatorClient};
use service::role::Role;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{super::page::page, Arguments, network, sample};

/// The provider may be chosen by measurement before the first answer.
const READY_WITHIN: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(50);
/// For a process to end once its standard input is closed.
const STOP_WITHIN: Duration = Duration::from_secs(15);

/// The processes, and the folder they work in, which goes with them.
pub struct Team {
    pub config: RunConfig,
    pub model: ModelDescription,
    members: Vec<Member>,
    folder: TempDir,
}

/// One process.
pub struct Member {
    pub role: Role,
    pub metrics: SocketAddr,
    child: Child,
}

impl Member {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Team {
    /// Publishes the network, starts everything and waits for the first visits.
    pub fn start(arguments: &Arguments) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("minuet-selfplay-").tempdir()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let config = write_config(arguments, folder.path())?;
        runtime.block_on(network::publish(&config, arguments.blocks, arguments.filters))?;
        let mut team = Self {
            config,
            model: ModelDescription::default(),
            members: Vec::new(),
            folder,
        };
        team.spawn(Role::ReplayStore, arguments.logs)?;
        team.spawn(Role::InferenceServer, arguments.logs)?;
        team.model = team.wait_for_model(&runtime)?;
        team.spawn(Role::Actor, arguments.logs)?;
        team.wait_for_visits()?;
        Ok(team)
    }

    /// The process with this role.
    pub fn member(&self, role: Role) -> anyhow::Result<&Member> {
        let member = self.members.iter().find(|member| member.role == role);
        member.with_context(|| format!("{} was not started", role.name()))
    }

    /// Worker threads of the actor.
    pub fn actor_threads(&self) -> usize {
        match self.config.actor.threads {
            0 => thread::available_parallelism()
                .map_or(1, NonZero::get)
                .saturating_sub(1)
                .max(1),
            threads => threads,
        }
    }

    fn spawn(&mut self, role: Role, logs: bool) -> anyhow::Result<()> {
        let binary = std::env::current_exe()?.with_file_name(role.binary());
        let mut command = Command::new(&binary);
        command
            .arg("--config")
            .arg(self.folder.path().join("run.toml"))
            .arg("--supervised")
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        if !logs {
            command.stderr(Stdio::null());
        }
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {} (build all binaries)", binary.display()))?;
        self.members.push(Member {
            role,
            metrics: role.metrics(&self.config).parse()?,
            child,
        });
        Ok(())
    }

    fn wait_for_model(&mut self, runtime: &Runtime) -> anyhow::Result<ModelDescription> {
        let model = self.config.actor.model.clone();
        let _inside = runtime.enter();
        let mut client = EvaluatorClient::new(service::connect::channel(&self.config.inference.address)?);
        self.wait("the inference server has no model", || {
            let asked = client.describe_model(DescribeModelRequest { model: model.clone() });
            runtime.block_on(asked).ok().map(|reply| reply.into_inner())
        })
    }

    fn wait_for_visits(&mut self) -> anyhow::Result<()> {
        let metrics = self.member(Role::Actor)?.metrics;
        self.wait("the actor plays nothing", || {
            let page = page(metrics).ok()?;
            (page.sum(sample::VISITS) > 0.0).then_some(())
        })
    }

    /// Asks again and again; fails when a process has ended or the time is up.
    fn wait<T>(&mut self, otherwise: &str, mut ask: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
        let began = Instant::now();
        loop {
            if let Some(answer) = ask() {
                return Ok(answer);
            }
            for member in &mut self.members {
                if let Some(status) = member.child.try_wait()? {
                    bail!("{} has ended ({status}); --logs shows why", member.role.binary());
                }
            }
            ensure!(
                began.elapsed() < READY_WITHIN,
                "{otherwise} after {READY_WITHIN:?}; --logs shows why"
            );
            thread::sleep(POLL);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for member in self.members.iter_mut().rev() {
            drop(member.child.stdin.take());
        }
        let deadline = Instant::now() + STOP_WITHIN;
        for member in self.members.iter_mut().rev() {
            while matches!(member.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(POLL);
            }
            // An error means that it has ended.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

fn write_config(arguments: &Arguments, folder: &Path) -> anyhow::Result<RunConfig> {
    let mut config = RunConfig::default();
    config.search.visits = arguments.visits;
    if arguments.game != config.game.name {
        config.game.name.clone_from(&arguments.game);
        config.game.options = 0;
    }
    let free = free_addresses(5)?;
    let addresses = [
        &mut config.inference.address,
        &mut config.inference.metrics,
        &mut config.replay.address,
        &mut config.replay.metrics,
        &mut config.actor.metrics,
    ];
    for (address, free) in addresses.into_iter().zip(free) {
        *address = free.to_string();
    }
    // What is given by hand counts.
    let path = folder.join("run.toml");
    fs::write(&path, template(&config))?;
    let config = load_with(Some(&path), &arguments.overrides)?;
    fs::write(&path, template(&config))?;
    Ok(config)
}

/// Addresses on which nothing listens now.
fn free_addresses(count: usize) -> std::io::Result<Vec<SocketAddr>> {
    // All are held until the last one is found, so they differ.
    let listeners = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<Vec<_>, _>>()?;
    listeners.iter().map(TcpListener::local_addr).collect()
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

    fn config(words: &[&str]) -> RunConfig {
        let words = std::iter::once(&"selfplay").chain(words);
        let folder = tempfile::tempdir().unwrap();
        write_config(&CommandLine::parse_from(words).arguments, folder.path()).unwrap()
    }

    #[test]
    fn what_is_given_by_hand_counts_and_addresses_differ() {
        let config = config(&[
            "--visits",
            "50",
            "--set",
            "search.leaves=7",
            "--set",
            "actor.threads=3",
        ]);
        assert_eq!(
            (config.search.visits, config.search.leaves, config.actor.threads),
            (50, 7, 3)
        );
        assert_eq!(config.game, RunConfig::default().game);
        let addresses = [
            &config.inference.address,
            &config.inference.metrics,
            &config.replay.address,
            &config.replay.metrics,
            &config.actor.metrics,
        ];
        let different: std::collections::HashSet<_> = addresses.into_iter().collect();
        assert_eq!(different.len(), 5);
    }

    #[test]
    fn another_game_has_its_own_options() {
        let config = config(&["--game", "othello"]);
        assert_eq!((config.game.name.as_str(), config.game.options), ("othello", 0));
    }
}
