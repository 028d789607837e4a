//! Tests that configuration files, flags, settings and ports exist, by the programs' own command lines.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use clap::Parser as _;
use config::{self, Override, RunConfig};
use games::{Game as _, paco_sako::PacoSako};
use regex::Regex;
use service::role::{Arguments, Role};

use crate::{
    files::{OVERLAYS, all, documents, folder, rendered, run, succeeded, text},
    kubernetes::{Workload, workloads},
};

const CONFIGURATIONS: [&str; 2] = ["compose/run.toml", "kubernetes/base/run.toml"];
pub const ROLES: [Role; 6] = [
    Role::Actor,
    Role::Analysis,
    Role::InferenceServer,
    Role::Learner,
    Role::Rating,
    Role::ReplayStore,
];

pub fn load(file: &Path, settings: &[Override]) -> RunConfig {
    config::load_with(Some(file), settings)
        .unwrap_or_else(|error| panic!("{} with {settings:?}: {error}", file.display()))
}

/// Parses a role's arguments as its program does.
pub fn read(role: Role, words: &[String], at: &str) -> Arguments {
    let mut words = words.to_vec();
    if let Some(command) = role.subcommand() {
        assert_eq!(words.first().map(String::as_str), Some(command), "{at}");
        words.remove(0);
    }
    words.insert(0, role.binary().into());
    Arguments::try_parse_from(words).unwrap_or_else(|error| panic!("{at}: {error}"))
}

/// Returns a container's arguments with its environment variables substituted.
pub fn words(workload: &Workload, at: &str) -> Vec<String> {
    let container = workload.container();
    let variables: BTreeMap<&str, &str> = container
        .env
        .iter()
        .flatten()
        .map(|variable| {
            (
                variable.name.as_str(),
                variable.value.as_deref().unwrap_or("sample"),
            )
        })
        .collect();
    let reference = Regex::new(r"\$\(([A-Z_]+)\)").unwrap();
    let value = |found: &regex::Captures<'_>| {
        let value = variables.get(&found[1]);
        (*value.unwrap_or_else(|| panic!("{at}: no variable {}", &found[1]))).to_owned()
    };
    let words = container.args.iter().flatten();
    words
        .map(|word| reference.replace_all(word, value).into_owned())
        .collect()
}

/// Returns the configuration with which a role's pods run.
pub fn configuration(workload: &Workload, overlay: &str) -> RunConfig {
    let at = format!("{overlay}: {}", workload.name);
    let role = ROLES
        .into_iter()
        .find(|role| role.name() == workload.name)
        .expect(&at);
    let arguments = read(role, &words(workload, &at), &at);
    assert_eq!(
        arguments.config.as_deref(),
        Some(Path::new("/etc/minuet/run.toml")),
        "{at}"
    );
    load(&folder().join("kubernetes/base/run.toml"), &arguments.overrides)
}

/// Returns the port of `host:port`.
pub fn port(address: &str) -> i32 {
    address.rsplit(':').next().unwrap().parse().unwrap()
}

pub fn health(role: Role, config: &RunConfig) -> &str {
    match role {
        Role::ReplayStore => &config.replay.health,
        Role::InferenceServer => &config.inference.health,
        Role::Learner => &config.learner.health,
        Role::Actor => &config.actor.health,
        Role::Rating => &config.rating.health,
        Role::Analysis => &config.analysis.health,
        Role::Studio => "",
    }
}

#[test]
fn configurations_load_and_listen_at_the_ports_that_others_use() {
    for file in CONFIGURATIONS {
        let config = load(&folder().join(file), &[]);
        for (listen, address, name) in [
            (
                config.inference.listen_address(),
                &config.inference.address,
                "inference-server",
            ),
            (
                config.replay.listen_address(),
                &config.replay.address,
                "replay-store",
            ),
        ] {
            assert!(listen.starts_with("0.0.0.0:"), "{file}: {listen}");
            assert_eq!(port(listen), port(address), "{file}");
            assert!(
                address.contains(name),
                "{file}: {address} is not the service's name"
            );
        }
    }
}

/// A cluster trains with the settings that `minuet up` gives a new run of the same game.
#[test]
fn configurations_have_the_settings_of_their_game() {
    let new = launcher::new_run(Some(PacoSako::NAME), &[]).unwrap();
    let sections: toml::Table = toml::from_str(&launcher::differences(&new).unwrap()).unwrap();
    let mut settings = Vec::new();
    for (section, keys) in &sections {
        for (key, value) in keys.as_table().unwrap() {
            settings.push(Override::new(&format!("{section}.{key}"), value).unwrap());
        }
    }
    for file in CONFIGURATIONS {
        let file = folder().join(file);
        let config = load(&file, &[]);
        assert_eq!(config.game.name, PacoSako::NAME);
        assert_eq!(load(&file, &settings), config, "{}", file.display());
    }
}

#[test]
fn containers_have_the_ports_that_their_programs_listen_on() {
    for overlay in OVERLAYS {
        for workload in workloads(overlay) {
            let Some(role) = ROLES.into_iter().find(|role| role.name() == workload.name) else {
                continue;
            };
            let config = configuration(&workload, overlay);
            let listen = match role {
                Role::InferenceServer => config.inference.listen_address(),
                Role::ReplayStore => config.replay.listen.as_str(),
                Role::Analysis => config.analysis.listen_address(),
                Role::Actor | Role::Learner | Role::Rating | Role::Studio => "",
            };
            let named = [
                ("grpc", listen),
                ("metrics", role.metrics(&config)),
                ("health", health(role, &config)),
            ];
            let expected: BTreeSet<(String, i32)> = named
                .iter()
                .filter(|(_, address)| !address.is_empty())
                .map(|(name, address)| ((*name).to_owned(), port(address)))
                .collect();
            let ports = workload.container().ports.iter().flatten();
            let given: BTreeSet<(String, i32)> = ports
                .map(|port| (port.name.clone().unwrap(), port.container_port))
                .collect();
            assert_eq!(given, expected, "{overlay}: {}: ports", workload.name);
        }
    }
}

#[test]
fn every_overlay_has_one_replay_store_and_all_clients_are_given_its_address() {
    for overlay in OVERLAYS {
        let Some(documents) = rendered(overlay) else {
            return;
        };
        let is_store = |document: &&serde_yaml_ng::Value| {
            document["kind"] == "StatefulSet" && document["metadata"]["name"] == "replay-store"
        };
        let store = documents.iter().find(is_store).unwrap();
        assert_eq!(store["spec"]["replicas"].as_u64(), Some(1), "{overlay}");
        let mut found = 0;
        for workload in workloads(overlay) {
            let name = &workload.name;
            let address = if ["actor", "learner"].contains(&name.as_str()) {
                found += 1;
                configuration(&workload, overlay).replay.address
            } else if workload.kind == "CronJob" {
                let words = words(&workload, name);
                let store = words.iter().position(|word| word == "--store").expect(name);
                words[store + 1].clone()
            } else {
                continue;
            };
            assert_eq!(address, "replay-store:50052", "{overlay}: {name}");
        }
        assert_eq!(found, 2, "{overlay}");
    }
}

/// Returns the words of a command in a compose file.
pub fn strings(value: &serde_yaml_ng::Value) -> Vec<String> {
    let words = value.as_sequence().cloned().unwrap_or_default();
    words
        .iter()
        .map(|word| word.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn compose_settings_exist() {
    let file = folder().join("compose/run.toml");
    for compose in ["docker-compose.yml", "docker-compose.gpu.yml", "swarm/stack.yml"] {
        let document = documents(&text(compose)).remove(0);
        for role in ROLES {
            let service = &document["services"][role.name()];
            if service.is_null() {
                continue;
            }
            let at = format!("{compose}: {}", role.name());
            let mut words = strings(&service["command"]);
            if let (true, Some(command)) = (words.is_empty(), role.subcommand()) {
                words.push(command.into());
            }
            let config = load(&file, &read(role, &words, &at).overrides);
            if role == Role::InferenceServer && compose == "docker-compose.yml" {
                let published = strings(&service["ports"]);
                assert_eq!(port(&published[0]), port(config.inference.listen_address()));
            }
        }
    }
}

#[test]
fn scripts_are_valid_shell() {
    for script in [all("docker", ".sh"), all("swarm", ".sh")].concat() {
        succeeded(&run("sh", &["-n"], &script), &script);
    }
}
