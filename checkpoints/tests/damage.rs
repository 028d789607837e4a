//! Damaged files of a store: each is found by its name, and the repair leaves a store that every program can read.

use std::{collections::BTreeSet, fs, path::PathBuf};

use checkpoints::{BEST, CANDIDATE, LATEST, LeaseTimes, MODEL, Repository, Version, WEIGHTS};

use crate::common::{draft, files, folder};

/// A store with three checkpoints, the labels of a run and a released lease.
async fn run() -> (tempfile::TempDir, Repository, Vec<Version>) {
    let (home, repository) = folder();
    let lease = repository.lease("learner", LeaseTimes::default()).await.unwrap();
    let mut versions = Vec::new();
    for (salt, step) in [(1, 0), (2, 100), (3, 200)] {
        let version = lease.publish(draft(step), files(salt)).await.unwrap();
        lease.set_label(&version).await.unwrap();
        versions.push(version);
    }
    for (label, version) in [
        ("minute-0", 0),
        ("minute-1", 1),
        (BEST, 1),
        (CANDIDATE, 2),
        ("mine", 0),
    ] {
        repository.set_label(label, &versions[version]).await.unwrap();
    }
    lease.release().await.unwrap();
    (home, repository, versions)
}

async fn faults(repository: &Repository) -> BTreeSet<String> {
    let faults = repository.faults().await.unwrap();
    faults.into_iter().map(|fault| fault.file).collect()
}

fn flip(path: &PathBuf) {
    let mut bytes = fs::read(path).unwrap();
    bytes[0] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn each_damaged_file_is_found() {
    let (home, repository, versions) = run().await;
    assert_eq!(faults(&repository).await, BTreeSet::new());
    let path = home.path().join("store/labels/latest.json");
    let label = fs::read_to_string(&path).unwrap();
    fs::write(&path, label.replace("\"schema\":1", "\"schema\":9")).unwrap();
    let newer = repository.faults().await.unwrap();
    assert!(newer[0].is_newer && newer.len() == 1, "{newer:?}");
    fs::write(&path, label).unwrap();
    let newest = format!("versions/{}", versions[2]);
    for file in [
        "leases/latest.json".to_owned(),
        "labels/latest.json".to_owned(),
        "labels/best.json".to_owned(),
        format!("{newest}/manifest.json"),
        format!("{newest}/model.onnx"),
        format!("{newest}/weights.safetensors"),
        format!("{newest}/optimizer.safetensors"),
    ] {
        let path = home.path().join("store").join(&file);
        flip(&path);
        assert_eq!(faults(&repository).await, BTreeSet::from([file]));
        flip(&path);
    }
}

#[tokio::test(start_paused = true)]
async fn a_repair_makes_labels_and_leases_again_and_keeps_the_damaged_files() {
    let (home, repository, versions) = run().await;
    let store = home.path().join("store");
    assert_eq!(repository.repair().await.unwrap(), Vec::<String>::new());
    for label in [LATEST, BEST, CANDIDATE, "minute-0", "minute-1", "mine"] {
        flip(&store.join(format!("labels/{label}.json")));
    }
    flip(&store.join("leases/latest.json"));
    assert_eq!(repository.repair().await.unwrap().len(), 7);
    assert_eq!(faults(&repository).await, BTreeSet::new());
    assert!(store.join("labels/mine.json.damaged").exists());
    let labels = repository.labels().await.unwrap();
    let expected = [(BEST, 2), (LATEST, 2), ("minute-0", 0), ("minute-1", 1)];
    let expected = expected.map(|(label, version)| (label.to_owned(), versions[version].clone()));
    assert_eq!(labels, expected.into());
    // A later publisher has a higher token than the label, and what it writes is left alone.
    let lease = repository.lease("other", LeaseTimes::default()).await.unwrap();
    assert_eq!(lease.token(), 2);
    let refused = repository.repair().await.unwrap_err().to_string();
    assert!(refused.contains("a learner publishes"), "{refused}");
    // A learner that was killed writes no more.
    drop(lease);
    assert_eq!(repository.repair().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn checkpoints_from_which_nothing_can_resume_are_set_aside_unless_all_are() {
    let (home, repository, versions) = run().await;
    let file = |version: usize, file: &str| {
        home.path()
            .join("store/versions")
            .join(versions[version].as_str())
            .join(file)
    };
    // The learner exports a model again, so this checkpoint stays.
    flip(&file(0, MODEL));
    flip(&file(1, WEIGHTS));
    flip(&file(2, "manifest.json"));
    let done = repository.repair().await.unwrap();
    assert_eq!(
        done.len(),
        6,
        "two checkpoints and the labels latest, best, candidate, minute-1: {done:?}"
    );
    assert_eq!(repository.newest().await.unwrap().unwrap().version, versions[0]);
    assert_eq!(repository.labels().await.unwrap()[LATEST], versions[0]);
    assert!(
        home.path()
            .join("store/damaged")
            .join(versions[2].as_str())
            .join(MODEL)
            .exists()
    );

    flip(&file(0, WEIGHTS));
    let refused = repository.repair().await.unwrap_err().to_string();
    assert!(refused.contains("restore the model store"), "{refused}");
    assert!(file(0, WEIGHTS).exists());
}
