//! Runs health checks, jobs and the commands of the operator's page with the programs of this build.

use std::{path::Path, process::Command};

use regex::Regex;
use service::role::Role;

use crate::{
    files::{OVERLAYS, all, documents, folder, program, rendered, text},
    kubernetes::workloads,
    programs::{ROLES, health, load, port, read, strings, words},
};

/// Lists the health checks of all containers: place in the files, and words of the command.
fn health_checks() -> Vec<(String, Vec<String>)> {
    let check = Regex::new(r"HEALTHCHECK [^\n]*CMD (\[.*\])").unwrap();
    let mut found = Vec::new();
    for file in all("docker", "Dockerfile") {
        let dockerfile = std::fs::read_to_string(&file).unwrap();
        for list in check.captures_iter(&dockerfile) {
            found.push((
                file.display().to_string(),
                serde_json::from_str(&list[1]).unwrap(),
            ));
        }
    }
    let compose = documents(&text("docker-compose.yml")).remove(0);
    for (service, described) in compose["services"].as_mapping().unwrap() {
        let words = strings(&described["healthcheck"]["test"]);
        if let [kind, words @ ..] = &words[..] {
            assert_eq!(kind, "CMD");
            found.push((service.as_str().unwrap().to_owned(), words.to_vec()));
        }
    }
    found
}

#[test]
fn health_checks_parse_and_use_the_health_port() {
    let config = load(&folder().join("compose/run.toml"), &[]);
    let checks = health_checks();
    assert_eq!(checks.len(), 8, "{checks:?}");
    for (at, words) in checks {
        let binary = words[0].strip_prefix("/opt/minuet/bin/").expect(&at);
        let is_role = |role: &Role| {
            let subcommand = role.subcommand();
            role.binary() == binary && subcommand.is_none_or(|subcommand| words[1] == subcommand)
        };
        let role = ROLES.into_iter().find(is_role).expect(&at);
        let probed = read(role, &words[1..], &at).probe.expect(&at);
        assert_eq!(port(&probed), port(health(role, &config)), "{at}");
        let Some(program) = program(binary) else { continue };
        // Nothing listens at that address: the program understands the arguments and reports a failure.
        let mut words = words[1..].to_vec();
        *words.last_mut().unwrap() = "127.0.0.1:1".into();
        let output = Command::new(program).args(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{at}: {words:?}: {output:?}");
    }
}

/// Checks that the command line parses these words, without executing the command, which has `names` names.
fn is_a_command(minuet: &Path, words: &[String], names: usize, at: &str) {
    let output = Command::new(minuet).args(words).arg("--help").output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let usage = format!("Usage: minuet {}", words[..names].join(" "));
    assert!(
        output.status.success() && stdout.contains(&usage),
        "{at}: {words:?}: {output:?}"
    );
}

#[test]
fn commands_of_jobs_of_the_studio_and_of_the_page_parse() {
    let Some(minuet) = program("minuet") else { return };
    let (mut jobs, mut studios) = (0, 0);
    for overlay in OVERLAYS {
        for workload in workloads(overlay) {
            if workload.kind == "CronJob" {
                is_a_command(&minuet, &words(&workload, overlay), 2, overlay);
                jobs += 1;
            } else if workload.name == "studio" {
                is_a_command(&minuet, &words(&workload, overlay), 1, overlay);
                studios += 1;
            }
        }
    }
    assert!(jobs >= 4 && studios > 0 || rendered(OVERLAYS[0]).is_none());
    let compose = documents(&text("docker-compose.yml")).remove(0);
    let studio = strings(&compose["services"]["studio"]["command"]);
    is_a_command(&minuet, &studio, 1, "compose");
    let one_off = Regex::new(r"run --rm command ([^`#\n]+)").unwrap();
    for file in ["README.md", "docker-compose.yml"] {
        let file_text = text(file);
        let found: Vec<_> = one_off.captures_iter(&file_text).collect();
        assert!(!found.is_empty(), "{file}");
        for found in found {
            let words: Vec<String> = found[1].split_whitespace().map(str::to_owned).collect();
            is_a_command(&minuet, &words, 2, file);
        }
    }
}
