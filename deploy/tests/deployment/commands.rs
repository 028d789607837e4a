//! Health checks, jobs, and what the operator's page says to type: tried with the programs that this build has made.

use std::{path::Path, process::Command};

use regex::Regex;

use crate::{
    files::{OVERLAYS, all, documents, folder, program, rendered, text},
    kubernetes::workloads,
    programs::{ROLES, health, load, port, read, strings, words},
};

/// What containers are asked by: (where it stands, the words).
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
fn health_checks_are_understood_and_ask_the_health_port() {
    let config = load(&folder().join("compose/run.toml"), &[]);
    let checks = health_checks();
    assert_eq!(checks.len(), 7, "{checks:?}");
    for (at, words) in checks {
        let binary = words[0].strip_prefix("/opt/minuet/bin/").expect(&at);
        let role = ROLES.into_iter().find(|role| role.binary() == binary).expect(&at);
        let asked = read(role, &words[1..], &at).probe.expect(&at);
        assert_eq!(port(&asked), port(health(role, &config)), "{at}");
        let Some(program) = program(binary) else { continue };
        // Nobody listens there: it is understood, and the answer is no.
        let mut words = words[1..].to_vec();
        *words.last_mut().unwrap() = "127.0.0.1:1".into();
        let output = Command::new(program).args(&words).output().unwrap();
        assert_eq!(asked.status.code(), Some(1), "{at}: {words:?}: {asked:?}");
    }
}

/// The command line understands these words, as far as it looks at them without doing anything.
fn is_a_command(minuet: &Path, words: &[String], at: &str) {
    let output = Command::new(minuet).args(words).arg("--help").output().unwrap();
    let said = String::from_utf8_lossy(&asked.stdout);
    let usage = format!("Usage: minuet {} {}", words[0], words[1]);
    assert!(
        output.status.success() && said.contains(&usage),
        "{at}: {words:?}: {asked:?}"
    );
}

#[test]
fn jobs_and_the_pages_commands_are_understood() {
    let Some(minuet) = program("minuet") else { return };
    let mut jobs = 0;
    for overlay in OVERLAYS {
        for workload in workloads(overlay) {
            if workload.kind == "CronJob" {
                is_a_command(&minuet, &words(&workload, overlay), overlay);
                jobs += 1;
            }
        }
    }
    assert!(jobs >= 4 || rendered(OVERLAYS[0]).is_none());
    let one_off = Regex::new(r"run --rm command ([^`#\n]+)").unwrap();
    for file in ["README.md", "docker-compose.yml"] {
        let file_text = text(file);
        let found: Vec<_> = one_off.captures_iter(&file_text).collect();
        assert!(!found.is_empty(), "{file}");
        for found in found {
            let words: Vec<String> = found[1].split_whitespace().map(str::to_owned).collect();
            is_a_command(&minuet, &words, file);
        }
    }
}
