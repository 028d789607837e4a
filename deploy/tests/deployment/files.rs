//! Where the files are, how overlays are rendered, and how tools are called.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde::Deserialize as _;
use serde_yaml_ng::Value;

/// The overlays that are shipped.
pub const OVERLAYS: [&str; 3] = ["local", "gpu", "production"];

/// `deploy/`.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file of `deploy/` as text.
pub fn text(path: &str) -> String {
    let path = folder().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The YAML documents of a text.
pub fn documents(text: &str) -> Vec<Value> {
    serde_yaml_ng::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).unwrap())
        .filter(|document| !document.is_null())
        .collect()
}

/// What an overlay renders to; `None`, said aloud, where there is no kubectl.
pub fn rendered(overlay: &str) -> Option<Vec<Value>> {
    let path = folder().join("kubernetes/overlays").join(overlay);
    let output = Command::new("kubectl").arg("kustomize").arg(&path).output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: overlay {overlay} is not rendered: there is no kubectl on this machine");
        return None;
    };
    succeeded(&output, &path);
    Some(documents(&String::from_utf8(output.stdout).unwrap()))
}

/// The folder of the programs of `scripts/python/deploy.txt`; `None`, said aloud, where they cannot be had.
pub fn python_tools() -> Option<PathBuf> {
    let python = test_clients::python("deploy")?;
    Some(python.parent().unwrap().to_owned())
}

/// Fails with what the tool said.
pub fn succeeded(output: &Output, what: &Path) {
    assert!(
        output.status.success(),
        "{}:\n{}{}",
        what.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// All files below `deploy/<below>` with this ending.
pub fn all(below: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder().join(below)];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no {ending} below {below}");
    found
}
