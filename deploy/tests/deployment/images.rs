//! Tests of the images' contents and of the commands around the compose file.

use std::collections::BTreeSet;

use crate::{
    files::{documents, text},
    programs::strings,
};

#[test]
fn every_member_of_the_workspace_is_in_the_build_context() {
    let workspace: toml::Table = text("../Cargo.toml").parse().unwrap();
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let ignored = text("../.dockerignore");
    let rules: Vec<&str> = ignored
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    assert_eq!(rules[0], "*", "everything stays out but what is named");
    for member in members.iter().map(|member| member.as_str().unwrap()) {
        let let_in = rules
            .iter()
            .position(|rule| rule.strip_prefix('!') == Some(member));
        let Some(let_in) = let_in else {
            panic!("cargo needs {member}, and .dockerignore keeps it out");
        };
        assert!(
            rules[let_in..]
                .iter()
                .all(|rule| rule.trim_end_matches('/') != member),
            "{member} is kept out again"
        );
    }
}

/// `down` leaves running containers of profiles that are not named.
#[test]
fn compose_down_ends_every_profile() {
    let compose = documents(&text("docker-compose.yml")).remove(0);
    let services = compose["services"].as_mapping().unwrap().values();
    let profiles: BTreeSet<String> = services
        .flat_map(|service| strings(&service["profiles"]))
        .collect();
    let makefile = text("../Makefile");
    let named = makefile.lines().find_map(|line| line.strip_prefix("PROFILES = "));
    let named: BTreeSet<String> = named.unwrap().split_whitespace().map(str::to_owned).collect();
    assert_eq!(named, profiles);
    let down = makefile.lines().find(|line| line.ends_with(" down")).unwrap();
    assert!(down.contains("$(addprefix --profile ,$(PROFILES))"), "{down}");
}

/// A command in another file takes the place of the whole one: with two stores, a learner that knows of one would train on half.
#[test]
fn whoever_uses_replay_stores_is_given_the_same_list_in_every_file() {
    let mut found = 0;
    for file in ["docker-compose.yml", "docker-compose.gpu.yml"] {
        let compose = documents(&text(file)).remove(0);
        for role in ["actor", "learner"] {
            let command = &compose["services"][role]["command"];
            if command.is_null() {
                continue;
            }
            let list = "--set=replay.address=\"${MINUET_REPLAY_STORES:-replay-store:50052}\"";
            assert!(
                strings(command).iter().any(|word| word == list),
                "{file}: {role}: {command:?}"
            );
            found += 1;
        }
    }
    assert_eq!(found, 3);
}
