//! Access to the deployment files: reads files, renders overlays, calls tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Mutex, PoisonError},
};

use serde::Deserialize as _;
use serde_yaml_ng::Value;

/// The shipped overlays, and one that only the tests use.
pub const OVERLAYS: [&str; 4] = ["local", "gpu", "production", EVERY_COMPONENT];
/// Overlay of the tests: the base with every component.
pub const EVERY_COMPONENT: &str = "every-component";

/// Returns the folder `deploy/`.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Reads a file of `deploy/` as text.
pub fn text(path: &str) -> String {
    let path = folder().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Parses the YAML documents of a text and resolves merge keys (`<<`).
pub fn documents(text: &str) -> Vec<Value> {
    serde_yaml_ng::Deserializer::from_str(text)
        .map(|document| {
            let mut document = Value::deserialize(document).unwrap();
            document.apply_merge().unwrap();
            document
        })
        .filter(|document| !document.is_null())
        .collect()
}

/// Renders an overlay to its resources; `None`, and a counted skip, if kubectl cannot be fetched.
pub fn rendered(overlay: &str) -> Option<Vec<Value>> {
    static KNOWN: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = known.get(overlay) {
        return Some(documents(text));
    }
    let overlays = match overlay {
        EVERY_COMPONENT => "tests",
        _ => "kubernetes/overlays",
    };
    let path = folder().join(overlays).join(overlay);
    let kubectl = test_support::debian("kubectl")?;
    let output = run(kubectl, &["kustomize"], &path);
    succeeded(&output, &path);
    let text = String::from_utf8(output.stdout).unwrap();
    let rendered = documents(&text);
    known.insert(overlay.to_owned(), text);
    Some(rendered)
}

/// Returns the folder with the programs of `scripts/python/deploy.txt`; `None`, and a counted skip, if they cannot be fetched.
pub fn python_tools() -> Option<PathBuf> {
    let python = test_support::python("deploy")?;
    Some(python.parent().unwrap().to_owned())
}

/// Runs a tool on a file or folder.
pub fn run(tool: impl AsRef<OsStr>, arguments: &[&str], path: &Path) -> Output {
    Command::new(tool).args(arguments).arg(path).output().unwrap()
}

/// Fails with the tool's output unless it succeeded.
pub fn succeeded(output: &Output, what: &Path) {
    assert!(
        output.status.success(),
        "{}:\n{}{}",
        what.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns the path of a program of this build, for example `minuet`; `None`, with a line on the terminal, if only tests were
/// built.
pub fn program(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join(name);
    if path.exists() {
        return Some(path);
    }
    test_support::skip(
        "the roles read the settings of the deployments",
        &format!("there is no {}; `make build` makes it", path.display()),
    );
    None
}

/// Lists the names of the folders in `deploy/<below>`.
pub fn folders(below: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder().join(below)).unwrap().map(Result::unwrap);
    entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// Lists all files below `deploy/<below>` with this ending.
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
