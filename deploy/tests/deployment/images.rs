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
