//! Tests of the compose files against their schema, the Dockerfiles against hadolint, all YAML against yamllint.

use std::process::Command;

use crate::files::{all, folder, python_tools, succeeded};

#[test]
fn compose_files_fit_the_compose_specification() {
    let Some(tools) = python_tools() else { return };
    for file in ["docker-compose.yml", "docker-compose.gpu.yml", "swarm/stack.yml"] {
        let output = Command::new(tools.join("check-jsonschema"))
            .args(["--builtin-schema", "vendor.compose-spec"])
            .arg(folder().join(file))
            .output()
            .unwrap();
        succeeded(&output, file.as_ref());
    }
}

#[test]
fn dockerfiles_are_clean() {
    let Some(tools) = python_tools() else { return };
    for file in all("docker", "Dockerfile") {
        let output = Command::new(tools.join("hadolint")).arg(&file).output().unwrap();
        succeeded(&output, &file);
    }
}

#[test]
fn yaml_is_clean() {
    let Some(tools) = python_tools() else { return };
    let output = Command::new(tools.join("yamllint"))
        .args(["--strict", "--config-file"])
        .arg(folder().join(".yamllint"))
        .arg(folder())
        .output()
        .unwrap();
    succeeded(&output, &folder());
}
