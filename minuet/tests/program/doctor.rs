//! `minuet doctor` on real faults: each is found, with what to do, and nothing else is.

use std::{fs, net::TcpListener, path::Path};

use checkpoints::{BEST, Draft, LATEST, MODEL, OPTIMIZER, Repository, WEIGHTS};
use serde_json::Value;
use test_support::SmallDisk;

use crate::support::program::{Done, done, minuet};

fn doctor(arguments: &[&str], variables: &[(&str, &str)]) -> Done {
    let mut command = minuet("doctor --json");
    done(command.args(arguments).envs(variables.iter().copied()))
}

/// Findings in a state, as "name: text (fix)".
fn found(done: &Done, state: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(report["ok"], done.code != Some(1), "{report}");
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

fn has(findings: &[String], begin: &str, part: &str) -> bool {
    let is_it = |finding: &String| finding.starts_with(begin) && finding.contains(part);
    findings.iter().any(is_it)
}

/// Checks that one of the findings begins with `begin` and contains `part`.
#[track_caller]
fn expect(findings: &[String], begin: &str, part: &str) {
    assert!(has(findings, begin, part), "no {begin}, {part} in {findings:?}");
}

#[test]
fn a_machine_without_faults_is_found_ready() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_with(folder.path(), "[game]\nname = \"connect-four\"\noptions = 0\n");
    let fine = found(&doctor(&["--run", &run], &[]), "ok");
    for (name, part) in [
        ("settings", "a run of connect-four"),
        ("processor", ""),
        ("cores", "usable"),
        ("ports", "free ones"),
        ("onnxruntime", "cpu"),
        ("checkpoint", "none yet"),
        ("run", "not at work"),
    ] {
        expect(&fine, name, part);
    }
}

#[test]
fn missing_programs_and_libraries_are_named() {
    let empty = tempfile::tempdir().unwrap();
    let nowhere = empty.path().join("libonnxruntime.so");
    let variables = [("ORT_DYLIB_PATH", nowhere.to_str().unwrap())];
    let faults = fails(&["--binaries", empty.path().to_str().unwrap()], &variables);
    for role in ["replay-store", "inference-server", "learner", "actor"] {
        expect(&faults, "programs", &format!("minuet-{role} does not start"));
    }
    expect(&faults, "onnxruntime", "ORT_DYLIB_PATH names");
}

#[test]
fn a_program_whose_library_is_missing_is_a_fault() {
    // A copy of the learner finds no libtorch next to it.
    let folder = tempfile::tempdir().unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_minuet")).with_file_name("minuet-learner");
    fs::copy(built, folder.path().join("minuet-learner")).unwrap();
    let binaries = ["--binaries", folder.path().to_str().unwrap()];
    let faults = fails(&binaries, &[("LD_LIBRARY_PATH", "")]);
    expect(&faults, "programs", "minuet-learner does not start");
    expect(&faults, "programs", "lib");
}

#[test]
fn a_port_that_another_program_holds_is_a_fault_where_the_run_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap();
    let run = run_with(folder.path(), &format!("[replay]\naddress = \"{address}\"\n"));
    let taken = format!("replay.address = {address} is taken");
    expect(&fails(&["--run", &run], &[]), "ports", &taken);
    drop(held);
    assert!(!has(&fails(&["--run", &run], &[]), "ports", ""));
}

#[test]
fn a_folder_that_is_no_run_and_settings_that_cannot_be_read_are_faults() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    let faults = fails(&["--run", missing.to_str().unwrap()], &[]);
    expect(&faults, "settings", "run.toml");
    expect(&faults, "disk", "none");
    assert!(!missing.exists(), "looking at a run must not make its folder");

    let run = run_with(folder.path(), "[search]\nvisit = 3\n");
    let faults = fails(&["--run", &run], &[]);
    expect(&faults, "settings", "did you mean `search.visits`");

    fs::remove_file(folder.path().join("run.toml")).unwrap();
    fs::create_dir(folder.path().join("run.toml")).unwrap();
    expect(&fails(&["--run", &run], &[]), "settings", "run.toml");
}

#[test]
fn a_disk_that_is_full_is_a_fault() {
    let Some(disk) = SmallDisk::mount(4) else {
        return;
    };
    let run = run_with(disk.path(), "");
    disk.fill();
    let unwritable = "no file can be written there";
    expect(&fails(&["--run", &run], &[]), "disk", unwritable);
    disk.make_room();
    // The disk is writable now, but smaller than a run needs.
    expect(&fails(&["--run", &run], &[]), "disk", "free on tmpfs");
}

#[test]
fn a_gpu_that_the_run_asks_for_and_the_machine_lacks_is_a_fault() {
    if Path::new("/proc/driver/nvidia/version").exists() {
        return test_support::skip("a missing GPU", "this machine has one");
    }
    let folder = tempfile::tempdir().unwrap();
    let run = run_with(folder.path(), "[learner]\ndevice = \"cuda\"\n");
    expect(&fails(&["--run", &run], &[]), "gpu", "no NVIDIA driver");
}

#[test]
fn a_store_that_does_not_answer_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let store = format!("s3://bucket/run?endpoint=http://{nobody}&allow_http=true&region=none");
    let run = run_with(folder.path(), &format!("[checkpoints]\nstore = \"{store}\"\n"));
    let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
    expect(&fails(&["--run", &run], &keys), "store", "");
}

/// Makes a run with a checkpoint that three labels point at, a lease, and the identity of an actor.
fn run_with_a_checkpoint(run: &Path) {
    let settings = "[game]\nname = \"connect-four\"\noptions = 0\n";
    fs::create_dir_all(run.join("spool/actor-1")).unwrap();
    run_with(run, settings);
    let identity = r#"{"format": 2, "name": "actor-1", "next_number": 256}"#;
    fs::write(run.join("spool/actor-1/identity.json"), identity).unwrap();
    let publishing = async {
        let repository = Repository::open(run.join("checkpoints").to_str().unwrap()).unwrap();
        let lease = repository.lease("learner", Default::default()).await.unwrap();
        let files = [MODEL, WEIGHTS, OPTIMIZER]
            .map(|file| (file, file.into()))
            .to_vec();
        let version = lease.publish(Draft::default(), files).await.unwrap();
        for label in [LATEST, BEST, "minute-0"] {
            repository.set_label(label, &version).await.unwrap();
        }
        lease.release().await.unwrap();
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(publishing);
}

/// Looks at the run in the folder `run` below this one, named by a relative path.
fn doctor_below(folder: &Path, more: &[&str]) -> Done {
    let mut command = minuet("doctor --json --run run");
    done(command.args(more).current_dir(folder))
}

#[test]
fn damaged_files_of_a_run_are_faults_that_name_them_and_a_repair_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    run_with_a_checkpoint(&run);
    let found = |more: &[&str], state| found(&doctor_below(folder.path(), more), state);
    let fine = found(&[], "ok");
    expect(&fine, "checkpoint", "step 0");
    let of_files = |findings: &[String]| {
        let names = ["checkpoints:", "identity:", "games:"];
        findings
            .iter()
            .filter(|finding| names.iter().any(|name| finding.starts_with(name)))
            .count()
    };
    assert_eq!(of_files(&found(&[], "fail")), 0);

    fs::create_dir_all(run.join("replay")).unwrap();
    fs::write(run.join("replay/store.json"), "{").unwrap();
    expect(&found(&[], "fail"), "games", "store.json");
    fs::remove_dir_all(run.join("replay")).unwrap();

    let version = fs::read_dir(run.join("checkpoints/versions"))
        .unwrap()
        .next()
        .unwrap();
    let model = version.unwrap().path().join(MODEL);
    let whole = fs::read(&model).unwrap();
    fs::write(&model, "mode1.onnx").unwrap();
    expect(&found(&[], "fail"), "checkpoints", MODEL);
    fs::write(&model, whole).unwrap();

    let damaged = [
        "checkpoints/labels/best.json",
        "checkpoints/leases/latest.json",
        "spool/actor-1/identity.json",
    ];
    for file in damaged {
        fs::write(run.join(file), "{").unwrap();
    }
    let faults = found(&[], "fail");
    assert_eq!(of_files(&faults), damaged.len(), "{faults:?}");
    for file in damaged {
        assert!(
            faults
                .iter()
                .any(|fault| fault.contains(file) && fault.contains("doctor --run run --repair")),
            "{faults:?}"
        );
    }
    let held = fs::File::create(run.join("lock")).unwrap();
    held.lock().unwrap();
    let refused = doctor_below(folder.path(), &["--repair"]);
    assert!(
        refused.error.contains("--repair needs a stopped run"),
        "{}",
        refused.error
    );
    drop(held);
    let repaired = found(&["--repair"], "ok");
    assert_eq!(
        repaired.iter().filter(|done| done.starts_with("repair:")).count(),
        damaged.len()
    );
    assert_eq!(of_files(&found(&[], "fail")), 0);
}
