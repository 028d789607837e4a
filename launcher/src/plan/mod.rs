//! The processes of a run on this machine, and the arguments of each: [`Plan`].
//!
//! Every process gets the run's `run.toml`, and as `--set` the values that only `minuet up` knows: addresses, metrics pages,
//! names. Settings that a person gives to `minuet up` with `--set` come last, so they override the others.
//!
//! **Processor time.** The learner waits by itself when it has trained `learner.samples_per_position` samples for each position. While
//! it is behind, it comes first: evaluation and play run at a lower priority ([`SELF_PLAY_NICE`]) and get the time that it leaves,
//! and at least their share by weight. Otherwise the learner of a small machine would see each position a fraction of the times that it
//! should. The rating runs at a lower priority still. Waiting threads do not spin.

pub mod ports;

use std::{io, net::SocketAddr, time::Duration};

use anyhow::{Context as _, ensure};
use config::{ConfigError, Override, RunConfig};
use service::role::Role;

use crate::{
    BadUsage,
    processes::host,
    run::{addresses::Member, choices::Choices, folder::RunFolder},
};

/// Niceness of the inference server and of the actors.
const SELF_PLAY_NICE: &str = "5";
/// Niceness of the studio and of the rating role, which are the least urgent.
const RATING_NICE: &str = "10";

/// A process of the run, before it is started.
#[derive(Clone, Debug)]
pub struct PlannedProcess {
    /// Name, unique in the run: `learner`, `actor-1`.
    pub name: String,
    /// Role.
    pub role: Role,
    /// True if an interpreter with the game's rules is started in place of the role's binary ([`host`]).
    pub is_hosted: bool,
    /// Arguments of the binary.
    pub arguments: Vec<String>,
    /// Variables added to the environment.
    pub environment: Vec<(&'static str, &'static str)>,
    /// Address of the metrics page; `None` if the process has none.
    pub metrics: Option<SocketAddr>,
    /// Time from the request to stop until the process is killed.
    pub stop_within: Duration,
}

/// All processes of the run, and their configuration.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The run's configuration as the processes see it.
    pub config: RunConfig,
    /// The processes, in the order in which they are started.
    pub processes: Vec<PlannedProcess>,
    /// Choices of an earlier start, which the processes use.
    pub choices: Option<Choices>,
    /// Reason why the choices of an earlier start cannot be read.
    pub choices_fault: Option<String>,
}

impl Plan {
    /// Plans one replay store, one inference server, one learner, `actors` actors, and the rating if it is enabled.
    ///
    /// # Errors
    /// [`ConfigError`] for the configuration or a value of the plan; [`BadUsage`] if the rules are in Python and this process is no
    /// interpreter; or there are no free ports.
    pub fn new(folder: &RunFolder, overrides: &[Override], actors: usize) -> anyhow::Result<Self> {
        let written = folder.load(overrides)?;
        let is_from_outside = written.game.is_from_outside();
        ensure!(
            !is_from_outside || host::command().is_some(),
            BadUsage(format!(
                "the rules of {} are in Python: start the run with `python -m minuet up --run {}`",
                written.game.name,
                folder.path().display()
            ))
        );
        // Two services, four metrics pages, and one page for each actor.
        let mut free = ports::free(folder.path(), 2 + 4 + actors)
            .context("cannot find free ports")?
            .into_iter();
        let mut next = || free.next().map(|address| address.to_string()).unwrap_or_default();

        let mut shared = vec![
            Override::text("inference.address", &next())?,
            Override::text("replay.address", &next())?,
        ];
        if written.actor.threads == 0 {
            let threads = match is_from_outside {
                // An interpreter runs one thread at a time.
                true => 1,
                false => actor_threads(service::process::cores(), actors),
            };
            shared.push(Override::new("actor.threads", threads)?);
        }
        let kept = match written.inference.threads {
            0 => Choices::kept(folder.path(), &written),
            _ => Ok(None),
        };
        let (choices, choices_fault) = match kept {
            Ok(choices) => (choices, None),
            Err(error) => (None, Some(error.to_string())),
        };
        if let Some(kept) = &choices {
            shared.push(Override::new("inference.threads", kept.threads)?);
        }
        let mut processes = Vec::new();
        for role in [
            Role::ReplayStore,
            Role::InferenceServer,
            Role::Learner,
            Role::Actor,
            Role::Rating,
        ] {
            let count = match role {
                Role::Actor => actors,
                Role::Rating => usize::from(written.rating.enabled),
                Role::ReplayStore | Role::InferenceServer | Role::Learner => 1,
                // See `add_studio`. Nobody analyses while a run trains on one machine.
                Role::Studio | Role::Analysis => 0,
            };
            for number in 1..=count {
                let mut own = shared.clone();
                own.push(Override::text(role.metrics_key(), &next())?);
                let name = match role {
                    Role::Actor => {
                        let name = format!("actor-{number}");
                        let spool = written.actor.spool.join(&name);
                        own.push(Override::text("actor.name", &name)?);
                        own.push(Override::text("actor.spool", &spool.to_string_lossy())?);
                        name
                    }
                    _ => role.name().to_owned(),
                };
                own.extend_from_slice(overrides);
                processes.push(process(name, role, folder, &own)?);
            }
        }
        shared.extend_from_slice(overrides);
        Ok(Self {
            config: folder.load(&shared)?,
            processes,
            choices,
            choices_fault,
        })
    }

    /// The processes, as those who watch them know them.
    pub fn members(&self) -> Vec<Member> {
        let processes = self.processes.iter();
        processes
            .map(|process| Member {
                name: process.name.clone(),
                role: process.role,
                metrics: process.metrics,
            })
            .collect()
    }

    /// Adds the studio, which shows the run in `folder` at port 7070 if that is free. Returns its address.
    ///
    /// # Errors
    /// There is no free port.
    pub fn add_studio(&mut self, folder: &RunFolder) -> io::Result<SocketAddr> {
        let address = ports::free_for_people()?;
        let run = folder.path().display().to_string();
        let port = address.port().to_string();
        let words = [
            "studio",
            "--run",
            &run,
            "--port",
            &port,
            "--supervised",
            "--nice",
            RATING_NICE,
        ];
        self.processes.push(PlannedProcess {
            name: Role::Studio.name().into(),
            role: Role::Studio,
            is_hosted: self.config.game.is_from_outside(),
            arguments: words.map(str::to_owned).into(),
            environment: environment(Role::Studio),
            metrics: None,
            stop_within: Duration::from_secs(5),
        });
        Ok(address)
    }
}

fn process(
    name: String,
    role: Role,
    folder: &RunFolder,
    overrides: &[Override],
) -> anyhow::Result<PlannedProcess> {
    let config = folder.load(overrides)?;
    let metrics = role.metrics(&config);
    let reason = "must be the address of a metrics page: write ip:port";
    let metrics = metrics
        .parse()
        .map_err(|_| ConfigError::of_value(role.metrics_key(), reason))?;
    let is_hosted = config.game.is_from_outside() && host::needs_rules(role);
    let subcommand = role.subcommand().or_else(|| is_hosted.then(|| role.name()));
    let mut arguments: Vec<String> = subcommand.map(str::to_owned).into_iter().collect();
    arguments.extend([
        "--config".to_owned(),
        folder.config_file().display().to_string(),
        "--supervised".to_owned(),
    ]);
    let nice = match role {
        Role::InferenceServer | Role::Actor => Some(SELF_PLAY_NICE),
        Role::Rating => Some(RATING_NICE),
        _ => None,
    };
    if let Some(nice) = nice {
        arguments.extend(["--nice".to_owned(), nice.to_owned()]);
    }
    for single in overrides {
        arguments.extend(["--set".to_owned(), single.to_string()]);
    }
    let stop_within = match role {
        Role::Actor | Role::Rating => Duration::from_secs(20),
        // A checkpoint is published first.
        Role::Learner => Duration::from_secs(60),
        Role::InferenceServer | Role::Analysis => service::serve::DRAIN + Duration::from_secs(5),
        Role::ReplayStore => Duration::from_secs(30),
        Role::Studio => Duration::from_secs(5),
    };
    Ok(PlannedProcess {
        name,
        role,
        is_hosted,
        arguments,
        environment: environment(role),
        metrics: Some(metrics),
        stop_within,
    })
}

/// Variables for a role: OpenMP's idle threads would spin on cores that others need, and glibc would keep an arena for every thread.
fn environment(role: Role) -> Vec<(&'static str, &'static str)> {
    let mut environment = vec![("MALLOC_ARENA_MAX", "2")];
    if role == Role::Learner {
        environment.extend([("OMP_WAIT_POLICY", "PASSIVE"), ("GOMP_SPINCOUNT", "0")]);
    }
    environment
}

/// Threads of each actor: together the actors use all cores but one, which evaluates.
fn actor_threads(cores: usize, actors: usize) -> usize {
    ((cores - 1) / actors.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proto::v1::{ModelDescription, ThreadSpeed};

    use super::*;

    fn plan(actors: usize, overrides: &[&str]) -> (tempfile::TempDir, Plan) {
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(parent.path(), None, &[]).unwrap();
        let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
        let plan = Plan::new(&folder, &overrides, actors).unwrap();
        (parent, plan)
    }

    /// Returns the configuration that results from the process's arguments.
    fn config_of(parent: &tempfile::TempDir, member: &PlannedProcess) -> RunConfig {
        let sets = member
            .arguments
            .iter()
            .skip_while(|argument| *argument != "--set");
        let overrides: Vec<Override> = sets
            .filter(|argument| *argument != "--set")
            .map(|text| text.parse().unwrap())
            .collect();
        config::load_with(Some(&parent.path().join("run.toml")), &overrides).unwrap()
    }

    #[test]
    fn every_process_has_the_others_addresses_and_its_own_page_name_and_spool() {
        let (parent, plan) = plan(3, &[]);
        let names: Vec<&str> = plan.processes.iter().map(|member| member.name.as_str()).collect();
        let roles = ["replay-store", "inference-server", "learner"];
        assert_eq!(
            names,
            [&roles[..], &["actor-1", "actor-2", "actor-3", "rating"]].concat()
        );
        let configs: Vec<RunConfig> = plan
            .processes
            .iter()
            .map(|member| config_of(&parent, member))
            .collect();
        for (member, config) in plan.processes.iter().zip(&configs) {
            assert_eq!(config.inference.address, plan.config.inference.address);
            assert_eq!(config.replay.address, plan.config.replay.address);
            let page = member.metrics.map(|page| page.to_string());
            assert_eq!(Some(member.role.metrics(config)), page.as_deref());
            assert!(config.actor.threads >= 1);
        }
        let pages: HashSet<SocketAddr> = plan
            .processes
            .iter()
            .filter_map(|member| member.metrics)
            .collect();
        assert_eq!(pages.len(), 7);
        let actors = &configs[3..6];
        let own: HashSet<_> = actors.iter().map(|config| &config.actor.name).collect();
        assert_eq!(own.len(), 3);
        let own: HashSet<_> = actors.iter().map(|config| &config.actor.spool).collect();
        assert_eq!(own.len(), 3);
        assert!(actors[0].actor.spool.is_absolute());
    }

    #[test]
    fn threads_that_an_earlier_start_measured_are_used_unless_a_setting_fixes_them() {
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(parent.path(), None, &[]).unwrap();
        let speed = ThreadSpeed {
            threads: 2,
            ..ThreadSpeed::default()
        };
        let measured = ModelDescription {
            threads: 2,
            thread_speeds: vec![speed],
            ..ModelDescription::default()
        };
        let choices = Choices::of(&measured, &folder.load(&[]).unwrap()).unwrap();
        choices.keep(folder.path()).unwrap();
        for (set, threads) in [(vec![], 2), (vec!["inference.threads=3".parse().unwrap()], 3)] {
            let plan = Plan::new(&folder, &set, 1).unwrap();
            assert_eq!(plan.config.inference.threads, threads);
            assert_eq!(plan.choices.is_some(), threads == 2);
        }
        std::fs::write(parent.path().join("choices.json"), "{").unwrap();
        let plan = Plan::new(&folder, &[], 1).unwrap();
        assert_eq!((plan.config.inference.threads, plan.choices), (0, None));
        assert!(plan.choices_fault.unwrap().contains("EOF"));
    }

    #[test]
    fn settings_of_a_person_override_planned_ones() {
        let (parent, plan) = plan(
            1,
            &["replay.address=127.0.0.1:4", "actor.threads=7", "search.visits=5"],
        );
        assert_eq!(plan.config.replay.address, "127.0.0.1:4");
        for member in &plan.processes {
            let config = config_of(&parent, member);
            assert_eq!(config.replay.address, "127.0.0.1:4");
            assert_eq!((config.actor.threads, config.search.visits), (7, 5));
        }
    }

    #[test]
    fn actors_share_all_cores_but_one() {
        let shares = [((1, 1), 1), ((2, 1), 1), ((16, 1), 15), ((16, 4), 3), ((2, 8), 1)];
        for ((cores, actors), threads) in shares {
            assert_eq!(
                actor_threads(cores, actors),
                threads,
                "{cores} cores, {actors} actors"
            );
        }
    }
}
