//! Tests that a program reads each environment variable.

use std::collections::{BTreeMap, BTreeSet};

use clap::CommandFactory as _;
use object_store::aws::AmazonS3ConfigKey;
use regex::Regex;
use service::role::Arguments;

use crate::{
    files::{OVERLAYS, all, documents, rendered, text},
    kubernetes::workloads,
};

/// Variables read by a library, a loader or a driver.
const FOREIGN: [&str; 8] = [
    "GOMP_SPINCOUNT",
    "LD_LIBRARY_PATH",
    "MALLOC_ARENA_MAX",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_WAIT_POLICY",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
];

/// Returns the variables that the roles' command lines read.
fn of_arguments() -> BTreeSet<String> {
    let command = Arguments::command();
    let variables = command.get_arguments().filter_map(|argument| argument.get_env());
    variables.map(|name| name.to_str().unwrap().to_owned()).collect()
}

#[test]
fn variables_of_the_images_are_read_by_the_programs() {
    let sources: String = ["network/src", "learner/src"]
        .iter()
        .flat_map(|crate_| all(&format!("../{crate_}"), ".rs"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let variable = Regex::new(r"(?m)^(?:ENV|   ) +([A-Z_]+)=").unwrap();
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
    let arguments = of_arguments();
    for name in seen {
        let known = FOREIGN.contains(&name.as_str()) || arguments.contains(&name);
        assert!(
            known || sources.contains(&format!("\"{name}\"")),
            "no program reads {name}"
        );
    }
}

#[test]
fn variables_of_pods_are_read_by_their_arguments_or_programs() {
    for overlay in OVERLAYS {
        for workload in workloads(overlay) {
            let container = workload.container();
            let words = container.args.clone().unwrap_or_default().join(" ");
            for variable in container.env.iter().flatten() {
                let name = &variable.name;
                assert!(
                    words.contains(&format!("$({name})")) || of_arguments().contains(name),
                    "{overlay}: {}: nobody reads {name}",
                    workload.name
                );
            }
        }
    }
}

/// True if `objects` uses a variable; it ignores unknown ones.
fn is_read_by_the_object_store(name: &str) -> bool {
    name.starts_with("AWS_") && name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>().is_ok()
}

#[test]
fn the_object_stores_variables_are_those_that_programs_read() {
    assert!(!is_read_by_the_object_store("AWS_END_POINT"));
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let compose = documents(&text("docker-compose.yml")).remove(0);
    for (service, described) in compose["services"].as_mapping().unwrap() {
        let service = service.as_str().unwrap();
        for name in described["environment"]
            .as_mapping()
            .into_iter()
            .flat_map(|all| all.keys())
        {
            let name = name.as_str().unwrap();
            // Grafana reads its own settings.
            if !(service == "grafana" && name.starts_with("GF_")) {
                places.entry(service.into()).or_default().push(name.into());
            }
        }
    }
    for document in rendered("local").unwrap_or_default() {
        if document["kind"] == "Secret" {
            let names = document["data"].as_mapping().unwrap().keys();
            let names = names.map(|name| name.as_str().unwrap().to_owned());
            places
                .entry("the overlay local".into())
                .or_default()
                .extend(names);
        }
    }
    let page = text("README.md");
    let literal = Regex::new(r"--from-literal=([A-Z_]+)=").unwrap();
    let names = literal.captures_iter(&page).map(|found| found[1].to_owned());
    places.entry("README.md".into()).or_default().extend(names);
    for place in [
        "learner",
        "inference-server",
        "replay-store",
        "rating",
        "command",
        "README.md",
    ] {
        for name in [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ENDPOINT",
            "AWS_REGION",
        ] {
            assert!(
                places[place].iter().any(|there| there == name),
                "{place}: no {name}"
            );
        }
    }
    for (place, names) in places {
        for name in names {
            assert!(is_read_by_the_object_store(&name), "{place}: nobody reads {name}");
        }
    }
}
