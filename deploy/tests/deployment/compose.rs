//! Tests of the compose files against their schema, the Dockerfiles against hadolint, all YAML against yamllint.

use std::path::Path;

use crate::files::{all, folder, python_tools, run, succeeded};

/// Checks a file or folder with a Python tool; nothing, and a counted skip, without the tool.
fn is_clean(tool: &str, arguments: &[&str], path: &Path) {
    if let Some(tools) = python_tools() {
        succeeded(&run(tools.join(tool), arguments, path), path);
    }
}

#[test]
fn compose_files_fit_the_compose_specification() {
    for file in [
        "docker-compose.yml",
        "docker-compose.gpu.yml",
        "docker-compose.own-game.yml",
        "swarm/stack.yml",
    ] {
        let schema = ["--builtin-schema", "vendor.compose-spec"];
        is_clean("check-jsonschema", &schema, &folder().join(file));
    }
}

#[test]
fn dockerfiles_are_clean() {
    for file in all("docker", "Dockerfile") {
        is_clean("hadolint", &[], &file);
    }
}

#[test]
fn yaml_is_clean() {
    let settings = folder().join(".yamllint");
    let arguments = ["--strict", "--config-file", settings.to_str().unwrap()];
    is_clean("yamllint", &arguments, &folder());
}
