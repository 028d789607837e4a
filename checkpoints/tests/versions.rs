//! Checkpoints of other builds. Golden folders are those that released builds wrote; every later build reads them.
//!
//! `cargo test -p checkpoints --test repository write_a_golden_folder -- --ignored` writes the folder of this release.

use std::{fs, path::Path};

use checkpoints::{Error, LATEST, LeaseTimes, MODEL, OPTIMIZER, Repository, Version, WEIGHTS};
use test_support::{all_golden, copy_folder, new_golden, snapshot};

use crate::common::{draft, files};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn open(folder: &Path) -> Repository {
    Repository::open(folder.to_str().unwrap()).unwrap()
}

/// Publishes two checkpoints as a learner does. The label `best` stays at the first.
async fn publish(folder: &Path) -> [Version; 2] {
    let repository = open(folder);
    let lease = repository
        .lease("learner-1", LeaseTimes::default())
        .await
        .unwrap();
    let mut versions = Vec::new();
    for step in [10, 20] {
        let version = lease.publish(draft(step), files(step as u8)).await.unwrap();
        lease.set_label(&version).await.unwrap();
        versions.push(version);
    }
    repository.set_label("best", &versions[0]).await.unwrap();
    lease.release().await.unwrap();
    versions.try_into().unwrap()
}

#[tokio::test]
#[ignore = "writes the golden folder of this release; run it when the format changes"]
async fn write_a_golden_folder() {
    let folder = new_golden(CRATE, "checkpoints");
    publish(&folder).await;
    fs::remove_file(folder.join("lock")).unwrap();
}

#[tokio::test]
async fn every_golden_repository_is_read_and_published_to() {
    for golden in all_golden(CRATE, "checkpoints") {
        let context = golden.display().to_string();
        let home = tempfile::tempdir().unwrap();
        copy_folder(&golden, home.path());
        let repository = open(home.path());
        let listed = repository.list().await.unwrap();
        let steps: Vec<u64> = listed.iter().map(|manifest| manifest.draft.step).collect();
        assert_eq!(steps, [10, 20], "{context}");
        for manifest in &listed {
            let expected = files(manifest.draft.step as u8);
            for (file, (name, bytes)) in [MODEL, WEIGHTS, OPTIMIZER].into_iter().zip(expected) {
                assert_eq!(
                    (file, repository.fetch(manifest, file).await.unwrap()),
                    (name, bytes)
                );
            }
            assert_eq!(
                manifest.draft.learner_state["batch"], manifest.draft.step,
                "{context}"
            );
            assert_eq!(
                (manifest.draft.game.as_str(), manifest.draft.actions),
                ("paco-sako", 132),
                "{context}"
            );
        }
        let labels = repository.labels().await.unwrap();
        assert_eq!(labels[LATEST], listed[1].version, "{context}");
        assert_eq!(labels["best"], listed[0].version, "{context}");
        // A released lease is taken at once, with a higher token.
        let lease = repository
            .lease("learner-2", LeaseTimes::default())
            .await
            .unwrap();
        let version = lease.publish(draft(30), files(30)).await.unwrap();
        lease.set_label(&version).await.unwrap();
        let newest = repository.newest().await.unwrap().unwrap();
        assert_eq!(newest.version, version, "{context}");
        assert!(newest.token > listed[1].token, "{context}");
    }
}

#[tokio::test]
async fn what_a_newer_build_wrote_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let [_, second] = publish(home.path()).await;
    let newer: [(&str, &str); 3] = [
        ("labels/latest.json", r#"{"schema":2,"versions":["a"]}"#),
        ("leases/latest.json", r#"{"schema":2,"holders":["a"]}"#),
        (
            &format!("versions/{second}/manifest.json"),
            r#"{"schema":2,"shards":[]}"#,
        ),
    ];
    for (file, text) in newer {
        let path = home.path().join(file);
        let older = fs::read(&path).unwrap();
        fs::write(&path, text).unwrap();
        let before = snapshot(home.path());
        let repository = open(home.path());
        let is_refused = |error: Error| {
            let message = error.to_string();
            assert!(
                matches!(error, Error::Schema { found: 2, .. }),
                "{file}: {message}"
            );
            assert!(message.contains("use a newer build"), "{message}");
        };
        if file.starts_with("versions") {
            is_refused(repository.newest().await.unwrap_err());
            is_refused(repository.resolve(LATEST).await.unwrap_err());
            assert!(repository.prune(1).await.unwrap().checkpoints.is_empty());
            let others = repository.list().await.unwrap();
            assert_eq!(others.len(), 1, "other checkpoints are still listed");
        } else {
            let lease = repository.lease("learner-2", LeaseTimes::default());
            is_refused(lease.await.unwrap_err());
        }
        if file.starts_with("labels") {
            is_refused(repository.set_label(LATEST, &second).await.unwrap_err());
            is_refused(repository.prune(1).await.unwrap_err());
        }
        assert_eq!(snapshot(home.path()), before, "{file}");
        fs::write(&path, older).unwrap();
        let repository = open(home.path());
        assert_eq!(
            repository.newest().await.unwrap().unwrap().version,
            second,
            "{file}"
        );
    }
}
