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

#[test]
fn the_wheels_of_the_gpu_images_are_pinned_by_digest() {
    let dockerfile = text("docker/gpu.Dockerfile");
    let installs = dockerfile.matches("pip install").count();
    assert!(installs > 0);
    assert_eq!(dockerfile.matches("--require-hashes").count(), installs);
    let fetched = text("../scripts/fetch_libraries.py");
    let mut shared = 0;
    for file in ["docker/cuda-inference.txt", "docker/cuda-learner.txt"] {
        for line in text(file).lines().filter(|line| !line.starts_with('#')) {
            let (wheel, digest) = line.split_once(" --hash=sha256:").expect(line);
            let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(wheel.contains("==") && is_digest, "{file}: {line}");
            // scripts/fetch_libraries.py pins some of these wheels too, with equal digests.
            if fetched.contains(&format!("\"{wheel}\"")) {
                assert!(fetched.contains(digest), "{file}: {line}");
                shared += 1;
            }
        }
    }
    assert!(shared > 0);
}

#[test]
fn every_image_has_the_bill_of_materials_that_the_build_makes() {
    let script = text("docker/dist.sh");
    for (dockerfile, bill) in [("docker/Dockerfile", "cpu"), ("docker/gpu.Dockerfile", "gpu")] {
        let dockerfile = text(dockerfile);
        assert!(script.contains(&format!("> \"$dist/sbom/{bill}.cdx.json\"")));
        let copied =
            format!("COPY --from=compiled /dist/sbom/{bill}.cdx.json /usr/share/minuet/sbom.cdx.json");
        let at = dockerfile.find(&copied).expect(bill);
        // All roles are built on the stage that has it.
        let stage = dockerfile[..at].rfind("FROM ").unwrap();
        assert!(
            dockerfile[stage..at]
                .lines()
                .next()
                .unwrap()
                .ends_with(" AS base")
        );
        for stage in dockerfile[at..].lines().filter(|line| line.starts_with("FROM ")) {
            assert!(
                stage.starts_with("FROM base AS ") || stage == "FROM command AS python",
                "{stage}"
            );
        }
    }
}
