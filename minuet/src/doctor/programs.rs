//! The roles' programs, and the library that runs networks.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use config::{Provider, RunConfig};
use launcher::processes;
use service::role::Role;

use super::Check;

/// Looks at the programs and at ONNX Runtime.
///
/// # Errors
/// The folder of this program is unknown.
pub fn checks(config: &RunConfig, binaries: Option<&Path>) -> anyhow::Result<Vec<Check>> {
    let folder = processes::binaries(binaries)?;
    let roles = [
        Role::ReplayStore,
        Role::InferenceServer,
        Role::Learner,
        Role::Actor,
    ];
    let mut checks: Vec<Check> = roles
        .into_iter()
        .filter_map(|role| program(&folder.join(role.binary())))
        .collect();
    if checks.is_empty() {
        let text = format!("all start, in {}", folder.display());
        checks.push(Check::ok("programs", text));
    }
    checks.push(onnx_runtime(config));
    Ok(checks)
}

/// Returns a check if the program does not start.
fn program(path: &Path) -> Option<Check> {
    let started = Command::new(path).arg("--version").stdin(Stdio::null()).output();
    let reason = match started {
        Ok(output) if output.status.success() => return None,
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let first = text.lines().next().map(str::trim).filter(|line| !line.is_empty());
            first.map_or_else(|| output.status.to_string(), str::to_owned)
        }
        Err(error) => error.to_string(),
    };
    Some(Check::fail(
        "programs",
        format!("{} does not start: {reason}", path.display()),
        "`make build` builds the programs and fetches their libraries",
    ))
}

fn onnx_runtime(config: &RunConfig) -> Check {
    if let Err(error) = network::runtime::load(&config.inference.runtime) {
        return Check::fail(
            "onnxruntime",
            service::chain(&error).to_string(),
            "`make setup` fetches the library; or name one in inference.runtime or ORT_DYLIB_PATH",
        );
    }
    let usable: Vec<&str> = Provider::each()
        .filter(|&provider| network::provider::check(provider).is_ok())
        .map(Provider::name)
        .collect();
    let text = format!("providers: {}", usable.join(", "));
    match network::provider::check(config.inference.provider) {
        Err(error) => Check::fail("onnxruntime", error.to_string(), "set inference.provider to auto"),
        Ok(()) => Check::ok("onnxruntime", text),
    }
}
