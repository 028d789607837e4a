//! Which processes a run has on this machine, and what each is started with.
//!
//! Every process gets the run's `run.toml`, and as `--set` what only `minuet up` knows: addresses, metrics pages,
//! names. What a person gives to `minuet up` with `--set` comes last, so it counts.
//!
//! **Shares of the processor.** Self-play must not wait for training: evaluation and play run at the normal
//! priority, the learner at a lower one ([`LEARNER_NICE`]), so it takes the time that self-play leaves and never
//! less than its share by weight, and the rating at one lower still. Threads that wait do not spin.

use std::{io, net::SocketAddr, num::NonZero, time::Duration};

use config::{Override, RunConfig};
use service::role::Role;

use super::{
    folder::{FolderError, RunFolder},
    ports,
    stores::{self, TooFew},
};

/// Niceness of the learner.
const LEARNER_NICE: &str = "5";
/// Niceness of the rating, which can wait longest.
const RATING_NICE: &str = "10";

/// A process of the run.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name, unique in the run: `learner`, `actor-1`.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// Arguments of its binary.
    pub arguments: Vec<String>,
    /// Variables added to its environment.
    pub environment: Vec<(&'static str, &'static str)>,
    /// Its metrics page.
    pub metrics: SocketAddr,
    /// Once asked to stop it is killed after this long.
    pub stop_within: Duration,
}

/// All processes of the run, and where they meet.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The run's configuration, as the processes have it.
    pub config: RunConfig,
    /// The processes, in the order they are started.
    pub members: Vec<Member>,
}

/// A run that cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The run has more stores.
    #[error(transparent)]
    TooFew(#[from] TooFew),
    /// The folders of the stores cannot be made.
    #[error("cannot make the folders of the replay stores: {0}")]
    Stores(io::Error),
    /// There are no ports left.
    #[error("cannot find free ports: {0}")]
    Ports(#[from] io::Error),
    /// A metrics page was given an address that is none.
    #[error("{role}: `{address}` is no address for a metrics page; write ip:port")]
    Metrics {
        /// The role.
        role: &'static str,
        /// What was given.
        address: String,
    },
}

impl Plan {
    /// Plans the run's replay stores (or `replay_stores`, which are made), one inference server, one learner, `actors` actors, and the
    /// rating where it is enabled.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn new(
        folder: &RunFolder,
        overrides: &[Override],
        actors: usize,
        replay_stores: Option<usize>,
    ) -> Result<Self, PlanError> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let overrides = &not_of_the_file(folder, overrides)?[..];
        let written = folder.load(overrides)?;
        let store_count = stores::wanted(&written.replay.folder, replay_stores)?;
        if store_count > 1 {
            stores::keep(&written.replay.folder, store_count).map_err(PlanError::Stores)?;
        }
        let mut free = ports::free(folder.path(), 1 + 3 + 2 * store_count + actors)?.into_iter();
        let mut next = || free.next().map(|address| address.to_string()).unwrap_or_default();

        let mut shared = vec![("inference.address", next())];
        let store_addresses: Vec<String> = (0..store_count).map(|_| next()).collect();
        let list: Vec<String> = (1..)
            .zip(&store_addresses)
            .map(|(number, address)| format!("{}={address}", stores::name(number)))
            .collect();
        shared.push(match store_addresses.as_slice() {
            [only] => ("replay.address", only.clone()),
            _ => ("replay.address", list.join(",")),
        });
        if written.actor.threads == 0 {
            shared.push(("actor.threads", actor_threads(cores, actors).to_string()));
        }
        let mut members = Vec::new();
        for role in [
            Role::ReplayStore,
            Role::InferenceServer,
            Role::Learner,
            Role::Actor,
            Role::Rating,
        ] {
            let count = match role {
                Role::Actor => actors,
                Role::ReplayStore => store_count,
                Role::Rating => usize::from(written.rating.enabled),
                Role::InferenceServer | Role::Learner => 1,
            };
            for number in 1..=count {
                let mut own = shared.clone();
                own.push((metrics_key(role), next()));
                let name = match role {
                    Role::Actor => {
                        let name = format!("actor-{number}");
                        own.push(("actor.name", name.clone()));
                        own.push((
                            "actor.spool",
                            written.actor.spool.join(&name).display().to_string(),
                        ));
                        name
                    }
                    Role::ReplayStore if store_count > 1 => {
                        let own_folder = stores::folder(&written.replay.folder, number);
                        own.push(("replay.folder", own_folder.display().to_string()));
                        own.extend(
                            store_addresses
                                .get(number - 1)
                                .map(|own| ("replay.listen", own.clone())),
                        );
                        stores::name(number)
                    }
                    _ => role.name().to_owned(),
                };
                members.push(member(name, role, folder, &own, overrides)?);
            }
        }
        let shared = own_overrides(&shared, overrides)?;
        Ok(Self {
            config: folder.load(&shared)?,
            members,
        })
    }
}

fn member(
    name: String,
    role: Role,
    folder: &RunFolder,
    own: &[(&str, String)],
    overrides: &[Override],
) -> Result<Member, PlanError> {
    let all = own_overrides(own, overrides)?;
    let config = folder.load(&all)?;
    let metrics = role.metrics(&config);
    let metrics = metrics.parse().map_err(|_| PlanError::Metrics {
        role: role.name(),
        address: metrics.into(),
    })?;
    let mut arguments: Vec<String> = role.subcommand().map(str::to_owned).into_iter().collect();
    arguments.extend([
        "--config".to_owned(),
        folder.config_file().display().to_string(),
        "--supervised".to_owned(),
    ]);
    let nice = match role {
        Role::Learner => Some(LEARNER_NICE),
        Role::Rating => Some(RATING_NICE),
        _ => None,
    };
    if let Some(nice) = nice {
        arguments.extend(["--nice".to_owned(), nice.to_owned()]);
    }
    for single in &all {
        arguments.extend(["--set".to_owned(), single.to_string()]);
    }
    // OpenMP's idle threads would spin on cores that others need; glibc would keep an arena for every thread.
    let mut environment = vec![("MALLOC_ARENA_MAX", "2")];
    if role == Role::Learner {
        environment.extend([("OMP_WAIT_POLICY", "PASSIVE"), ("GOMP_SPINCOUNT", "0")]);
    }
    let seconds = match role {
        Role::Actor | Role::Rating => 20,
        Role::Learner => 60,
        Role::InferenceServer => config.inference.drain_seconds.saturating_add(5),
        Role::ReplayStore => 30,
    };
    Ok(Member {
        name,
        role,
        arguments,
        environment,
        metrics,
        stop_within: Duration::from_secs(seconds),
    })
}

/// What a person has set, without what `run.toml` says of the network already: where a larger one takes over while the run is at work
/// (`minuet grow`), the file changes, and processes that are started again must see that.
fn not_of_the_file(folder: &RunFolder, given: &[Override]) -> Result<Vec<Override>, FolderError> {
    let of_model = |single: &Override| single.key().starts_with("model.");
    let set: Vec<Override> = given.iter().filter(|single| of_model(single)).cloned().collect();
    let is_said_already = folder.load(&set)?.model == folder.load(&[])?.model;
    let kept = given
        .iter()
        .filter(|single| !(is_said_already && of_model(single)));
    Ok(kept.cloned().collect())
}

fn own_overrides(own: &[(&str, String)], given: &[Override]) -> Result<Vec<Override>, FolderError> {
    let quoted = |value: &String| toml::Value::String(value.clone()).to_string();
    own.iter()
        .map(|(key, value)| {
            let is_number = value.parse::<u64>().is_ok();
            Override::new(key, if is_number { value.clone() } else { quoted(value) })
        })
        .chain(given.iter().cloned().map(Ok))
        .collect::<Result<_, _>>()
        .map_err(|source| FolderError::Config {
            path: "minuet up".into(),
            source,
        })
}

fn metrics_key(role: Role) -> &'static str {
    match role {
        Role::ReplayStore => "replay.metrics",
        Role::InferenceServer => "inference.metrics",
        Role::Learner => "learner.metrics",
        Role::Actor => "actor.metrics",
        Role::Rating => "rating.metrics",
    }
}

/// Every core but one, which evaluates, is shared by the actors.
fn actor_threads(cores: usize, actors: usize) -> usize {
    ((cores - 1) / actors.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn plan(actors: usize, overrides: &[&str]) -> (tempfile::TempDir, Plan) {
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(parent.path(), None, &[]).unwrap();
        let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
        let plan = Plan::new(&folder, &overrides, actors, None).unwrap();
        (parent, plan)
    }

    /// What the member's own arguments make of the configuration.
    fn config_of(parent: &tempfile::TempDir, member: &Member) -> RunConfig {
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
    fn every_process_knows_the_others_and_has_its_own_page_name_and_spool() {
        let (parent, plan) = plan(3, &[]);
        let names: Vec<&str> = plan.members.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "replay-store",
                "inference-server",
                "learner",
                "actor-1",
                "actor-2",
                "actor-3"
            ]
        );
        let configs: Vec<RunConfig> = plan
            .members
            .iter()
            .map(|member| config_of(&parent, member))
            .collect();
        for (member, config) in plan.members.iter().zip(&configs) {
            assert_eq!(config.inference.address, plan.config.inference.address);
            assert_eq!(config.replay.address, plan.config.replay.address);
            assert_eq!(member.role.metrics(config), member.metrics.to_string());
            assert!(config.actor.threads >= 1);
        }
        let pages: HashSet<SocketAddr> = plan.members.iter().map(|member| member.metrics).collect();
        assert_eq!(pages.len(), 6);
        let actors = &configs[3..];
        assert_eq!(
            actors
                .iter()
                .map(|config| &config.actor.name)
                .collect::<HashSet<_>>()
                .len(),
            3
        );
        assert_eq!(
            actors
                .iter()
                .map(|config| &config.actor.spool)
                .collect::<HashSet<_>>()
                .len(),
            3
        );
        assert!(actors[0].actor.spool.is_absolute());
    }

    #[test]
    fn several_stores_listen_where_all_others_look_and_keep_their_folders() {
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(parent.path(), None, &[]).unwrap();
        let first = Plan::new(&folder, &[], 1, Some(3)).unwrap();
        // The next start has as many.
        let plan = Plan::new(&folder, &[], 1, None).unwrap();
        assert_eq!(plan.config.replay.address, first.config.replay.address);
        assert!(matches!(
            Plan::new(&folder, &[], 1, Some(2)),
            Err(PlanError::TooFew(_))
        ));
        let listed = plan.config.replay.stores().unwrap();
        let members = plan
            .members
            .iter()
            .filter(|member| member.role == Role::ReplayStore);
        let mut folders = HashSet::new();
        for (member, shard) in members.zip(listed.all()) {
            let config = config_of(&parent, member);
            assert_eq!(member.name, shard.name);
            assert_eq!(config.replay.listen_address().unwrap(), shard.address);
            assert_eq!(config.replay.stores().unwrap(), listed);
            assert!(folders.insert(config.replay.folder));
        }
        let names = ["replay", "replay-2", "replay-3"].map(|name| folder.path().join(name));
        assert_eq!(folders, names.into());
        let actor = config_of(&parent, &plan.members[5]);
        assert_eq!(actor.replay.stores().unwrap(), listed);
    }

    #[test]
    fn what_a_person_sets_counts() {
        let (parent, plan) = plan(
            1,
            &["replay.address=127.0.0.1:4", "actor.threads=7", "search.visits=5"],
        );
        assert_eq!(plan.config.replay.address, "127.0.0.1:4");
        for member in &plan.members {
            let config = config_of(&parent, member);
            assert_eq!(config.replay.address, "127.0.0.1:4");
            assert_eq!((config.actor.threads, config.search.visits), (7, 5));
        }
    }

    #[test]
    fn what_the_file_says_of_the_network_already_is_not_said_again() {
        let parent = tempfile::tempdir().unwrap();
        let given: Vec<Override> = ["model.blocks=1", "model.blocks=2", "search.visits=5"]
            .map(|text| text.parse().unwrap())
            .into();
        let folder = RunFolder::open(parent.path(), None, &given).unwrap();
        let says_blocks = |overrides: &[Override]| {
            let plan = Plan::new(&folder, overrides, 1, None).unwrap();
            let mut arguments = plan.members.iter().flat_map(|member| &member.arguments);
            arguments.any(|argument| argument.starts_with("model."))
        };
        assert!(!says_blocks(&given));
        assert!(says_blocks(&["model.blocks=3".parse().unwrap()]));
    }

    #[test]
    fn cores_are_shared() {
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
