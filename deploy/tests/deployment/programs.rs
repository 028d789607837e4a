//! What the files tell the programs: configuration files, flags, settings, variables and ports that exist.

use std::{collections::BTreeSet, path::Path, process::Command};

use service::config::{self, Override, RunConfig};

use crate::{
    files::{OVERLAYS, all, documents, folder, rendered, text},
    kubernetes::pods,
};

const CONFIGURATIONS: [&str; 2] = ["compose/run.toml", "kubernetes/base/run.toml"];
const ROLES: [&str; 5] = ["actor", "inference-server", "learner", "rating", "replay-store"];

fn load(file: &Path, settings: &[String]) -> RunConfig {
    let overrides: Vec<Override> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    config::load_with(Some(file), &overrides)
        .unwrap_or_else(|error| panic!("{} with {settings:?}: {error}", file.display()))
}

/// What stands after `--set`, whichever way it is written; other arguments must be known.
fn settings(arguments: &[String], at: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = arguments.iter();
    // The rating is a command of the command line.
    if at.ends_with("rating") {
        assert_eq!(rest.next().expect(at), "rating", "{at}");
    }
    while let Some(argument) = rest.next() {
        if let Some(setting) = argument.strip_prefix("--set=") {
            found.push(expanded(setting));
        } else if argument == "--set" {
            found.push(expanded(rest.next().expect(at)));
        } else if argument == "--config" {
            assert_eq!(rest.next().expect(at), "/etc/minuet/run.toml", "{at}");
        } else {
            panic!("{at}: no program takes {argument}");
        }
    }
    found
}

/// With a container's variables put in.
fn expanded(setting: &str) -> String {
    setting
        .replace("$(POD_NAME)", "actor-7d9f")
        .replace("$(ROLE)", "actor")
}

/// The port of `host:port`.
fn port(address: &str) -> i32 {
    address.rsplit(':').next().unwrap().parse().unwrap()
}

#[test]
fn configurations_can_be_used_and_listen_where_others_look() {
    for file in CONFIGURATIONS {
        let config = load(&folder().join(file), &[]);
        for (listen, address, name) in [
            (
                config.inference.listen_address(),
                &config.inference.address,
                "inference-server",
            ),
            (
                &config.replay.listen_address().unwrap(),
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

#[test]
fn what_containers_are_started_with_is_what_the_programs_take() {
    let file = folder().join("kubernetes/base/run.toml");
    for overlay in OVERLAYS {
        for (name, pod) in pods(&rendered(overlay).unwrap_or_default()) {
            let container = &pod.containers[0];
            if !ROLES.contains(&name.as_str()) {
                continue;
            }
            let at = format!("{overlay}: {name}");
            let config = load(
                &file,
                &settings(container.args.as_deref().unwrap_or_default(), &at),
            );
            let (listen, metrics, health) = match name.as_str() {
                "inference-server" => (
                    config.inference.listen_address(),
                    &config.inference.metrics,
                    &config.inference.health,
                ),
                "replay-store" => (
                    config.replay.listen.as_str(),
                    &config.replay.metrics,
                    &config.replay.health,
                ),
                "learner" => ("", &config.learner.metrics, &config.learner.health),
                "rating" => ("", &config.rating.metrics, &config.rating.health),
                _ => ("", &config.actor.metrics, &config.actor.health),
            };
            let named = [("grpc", listen), ("metrics", metrics), ("health", health)];
            let expected: BTreeSet<(String, i32)> = named
                .iter()
                .filter(|(_, address)| !address.is_empty())
                .map(|(name, address)| ((*name).to_owned(), port(address)))
                .collect();
            let given: BTreeSet<(String, i32)> = container
                .ports
                .iter()
                .flatten()
                .map(|port| (port.name.clone().unwrap(), port.container_port))
                .collect();
            assert_eq!(given, expected, "{at}: ports");
        }
    }
}

#[test]
fn clients_are_given_every_replay_store_by_its_own_name() {
    let file = folder().join("kubernetes/base/run.toml");
    let mut most = 0;
    for overlay in OVERLAYS {
        let Some(documents) = rendered(overlay) else {
            return;
        };
        let is_store = |document: &&serde_yaml_ng::Value| {
            document["kind"] == "StatefulSet" && document["metadata"]["name"] == "replay-store"
        };
        let stores = documents.iter().find(is_store).unwrap();
        let count = stores["spec"]["replicas"].as_u64().unwrap();
        let service = stores["spec"]["serviceName"].as_str().unwrap();
        most = most.max(count);
        let expected: Vec<String> = match count {
            1 => vec!["replay-store:50052".into()],
            count => (0..count)
                .map(|number| format!("replay-store-{number}.{service}:50052"))
                .collect(),
        };
        let clients = pods(&documents)
            .into_iter()
            .filter(|(name, _)| ["actor", "learner"].contains(&name.as_str()));
        let mut found = 0;
        for (name, pod) in clients {
            let at = format!("{overlay}: {name}");
            let config = load(
                &file,
                &settings(pod.containers[0].args.as_deref().unwrap_or_default(), &at),
            );
            let stores = config.replay.stores().unwrap();
            let listed: Vec<String> = stores.all().iter().map(|shard| shard.address.clone()).collect();
            assert_eq!(listed, expected, "{at}");
            found += 1;
        }
        assert_eq!(found, 2, "{overlay}");
    }
    assert!(most > 1, "no overlay has several stores");
}

#[test]
fn compose_settings_exist() {
    let file = folder().join("compose/run.toml");
    for compose in ["docker-compose.yml", "docker-compose.gpu.yml"] {
        let document = documents(&text(compose)).remove(0);
        for (name, service) in document["services"].as_mapping().unwrap() {
            if !ROLES.contains(&name.as_str().unwrap()) {
                continue;
            }
            let words = service["command"].as_sequence().cloned().unwrap_or_default();
            let words: Vec<String> = words
                .iter()
                .map(|word| word.as_str().unwrap().to_owned())
                .collect();
            let at = format!("{compose}: {}", name.as_str().unwrap());
            load(&file, &settings(&words, &at));
        }
    }
}

/// Variables that a library, a loader or a driver reads.
const FOREIGN_VARIABLES: &[&str] = &[
    "LD_LIBRARY_PATH",
    "MALLOC_ARENA_MAX",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_WAIT_POLICY",
    "GOMP_SPINCOUNT",
];

#[test]
fn variables_of_the_images_are_read_by_the_programs() {
    let sources: String = [
        "service/src",
        "onnx-runtime/src",
        "learner/src",
        "checkpoints/src",
    ]
    .iter()
    .flat_map(|crate_| all(&format!("../{crate_}"), ".rs"))
    .map(|path| std::fs::read_to_string(path).unwrap())
    .collect();
    let variable = regex::Regex::new(r"(?m)^(?:ENV|   ) +([A-Z_]+)=").unwrap();
    let mut seen = BTreeSet::new();
    for file in all("docker", "Dockerfile") {
        let file = std::fs::read_to_string(file).unwrap();
        for found in variable.captures_iter(&file) {
            seen.insert(found[1].to_owned());
        }
    }
    assert!(
        seen.contains("MINUET_CONFIG") && seen.contains("ORT_DYLIB_PATH"),
        "{seen:?}"
    );
    for name in seen {
        let known = FOREIGN_VARIABLES.contains(&name.as_str()) || sources.contains(&format!("\"{name}\""));
        assert!(known, "no program reads {name}");
    }
}

#[test]
fn health_checks_ask_the_health_port_with_a_flag_that_exists() {
    let health = load(&folder().join("compose/run.toml"), &[]).actor.health;
    let check = regex::Regex::new(
        r#"CMD \["/opt/minuet/bin/(minuet-[a-z-]+)", "--probe", "127\.0\.0\.1:([0-9]+)"\]"#,
    )
    .unwrap();
    let mut count = 0;
    for file in all("docker", "Dockerfile") {
        let file = std::fs::read_to_string(file).unwrap();
        for found in check.captures_iter(&file) {
            assert_eq!(found[2].parse::<i32>().unwrap(), port(&health));
            count += 1;
        }
    }
    assert_eq!(count, 6, "health checks");
    let arguments = std::fs::read_to_string(folder().join("../service/src/role/arguments.rs")).unwrap();
    assert!(arguments.contains("pub probe:"));
}

#[test]
fn scripts_are_valid_shell() {
    for script in all("docker", ".sh") {
        let output = Command::new("sh").arg("-n").arg(&script).output().unwrap();
        crate::files::succeeded(&output, &script);
    }
}
