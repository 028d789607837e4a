//! `minuet doctor` on real faults: each is found, with what to do, and nothing else is.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;
use test_support::SmallDisk;

fn doctor(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_minuet"))
        .args(["doctor", "--json"])
        .args(arguments)
        .env_remove("MINUET_CONFIG")
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

/// Findings in a state, as "name: text (fix)".
fn found(output: &Output, state: &str) -> Vec<String> {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed = output.status.code() == Some(1);
    assert_eq!(report["ok"], !failed, "{report}");
    let checks = report["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check["state"] == state)
        .map(|check| {
            let of = |key: &str| check[key].as_str().unwrap().to_owned();
            assert_eq!(of("fix").is_empty(), state == "ok", "{check}");
            format!("{}: {} ({})", of("name"), of("text"), of("fix"))
        })
        .collect()
}

fn fails(arguments: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    found(&doctor(arguments, variables), "fail")
}

/// Makes the folder of a run with these lines as its `run.toml`.
fn run_with(folder: &Path, settings: &str) -> String {
    fs::write(folder.join("run.toml"), settings).unwrap();
    folder.to_str().unwrap().to_owned()
}

/// Says whether one of the findings begins and continues with these texts.
fn has(findings: &[String], begin: &str, part: &str) -> bool {
    findings
        .iter()
        .any(|finding| finding.starts_with(begin) && finding.contains(part))
}

#[test]
fn a_machine_without_faults_is_found_ready() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_with(folder.path(), "[game]\nname = \"connect-four\"\noptions = 0\n");
    let output = doctor(&["--run", &run], &[]);
    let fine = found(&output, "ok");
    for (name, part) in [
        ("settings", "a run of connect-four"),
        ("processor", ""),
        ("cores", "usable"),
        ("ports", "free ones"),
        ("onnxruntime", "cpu"),
        ("checkpoint", "none yet"),
        ("run", "not at work"),
    ] {
        assert!(has(&fine, name, part), "{name}: {fine:?}");
    }
}

#[test]
fn missing_programs_and_libraries_are_named() {
    let empty = tempfile::tempdir().unwrap();
    let nowhere = empty.path().join("libonnxruntime.so");
    let faults = fails(
        &["--binaries", empty.path().to_str().unwrap()],
        &[("ORT_DYLIB_PATH", nowhere.to_str().unwrap())],
    );
    for role in ["replay-store", "inference-server", "learner", "actor"] {
        assert!(
            has(&faults, "programs", &format!("minuet-{role} does not start")),
            "{faults:?}"
        );
    }
    assert!(has(&faults, "onnxruntime", "ORT_DYLIB_PATH names"), "{faults:?}");
}

#[test]
fn a_program_whose_library_is_missing_is_a_fault() {
    // A copy of the learner finds no libtorch next to it.
    let folder = tempfile::tempdir().unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_minuet")).with_file_name("minuet-learner");
    fs::copy(built, folder.path().join("minuet-learner")).unwrap();
    let faults = fails(
        &["--binaries", folder.path().to_str().unwrap()],
        &[("LD_LIBRARY_PATH", "")],
    );
    assert!(
        has(&faults, "programs", "minuet-learner does not start") && has(&faults, "programs", "lib"),
        "{faults:?}"
    );
}

#[test]
fn a_port_that_another_program_holds_is_a_fault_where_the_run_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap();
    let run = run_with(folder.path(), &format!("[replay]\naddress = \"{address}\"\n"));
    let faults = fails(&["--run", &run], &[]);
    assert!(
        has(&faults, "ports", &format!("replay.address = {address} is taken")),
        "{faults:?}"
    );
    drop(held);
    assert!(!has(&fails(&["--run", &run], &[]), "ports", ""));
}

#[test]
fn a_folder_that_is_no_run_and_settings_that_cannot_be_read_are_faults() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    let faults = fails(&["--run", missing.to_str().unwrap()], &[]);
    assert!(
        has(&faults, "settings", "run.toml") && has(&faults, "disk", "none"),
        "{faults:?}"
    );
    assert!(!missing.exists(), "looking at a run must not make its folder");

    let run = run_with(folder.path(), "[search]\nvisit = 3\n");
    let faults = fails(&["--run", &run], &[]);
    assert!(
        has(&faults, "settings", "did you mean `search.visits`"),
        "{faults:?}"
    );

    fs::remove_file(folder.path().join("run.toml")).unwrap();
    fs::create_dir(folder.path().join("run.toml")).unwrap();
    assert!(has(&fails(&["--run", &run], &[]), "settings", "run.toml"));
}

#[test]
fn a_disk_that_is_full_is_a_fault() {
    let Some(disk) = SmallDisk::mount(4) else {
        return;
    };
    let run = run_with(disk.path(), "");
    disk.fill();
    let faults = fails(&["--run", &run], &[]);
    assert!(has(&faults, "disk", "no file can be written there"), "{faults:?}");
    disk.make_room();
    let faults = fails(&["--run", &run], &[]);
    assert!(
        has(&faults, "disk", "free on tmpfs"),
        "still too small: {faults:?}"
    );
}

#[test]
fn a_gpu_that_the_run_asks_for_and_the_machine_lacks_is_a_fault() {
    if Path::new("/proc/driver/nvidia/version").exists() {
        return test_support::skip("a missing GPU", "this machine has one");
    }
    let folder = tempfile::tempdir().unwrap();
    let run = run_with(folder.path(), "[learner]\ndevice = \"cuda\"\n");
    assert!(has(&fails(&["--run", &run], &[]), "gpu", "no NVIDIA driver"));
}

#[test]
fn a_store_that_does_not_answer_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let store = format!("s3://bucket/run?endpoint=http://{nobody}&allow_http=true&region=none");
    let run = run_with(folder.path(), &format!("[checkpoints]\nstore = \"{store}\"\n"));
    let faults = fails(
        &["--run", &run],
        &[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")],
    );
    assert!(has(&faults, "store", ""), "{faults:?}");
}
