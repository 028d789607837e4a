//! A stopped run of Connect Four with checkpoints whose network is the one that comes with Minuet.

use std::{fs, path::Path};

use checkpoints::{Draft, MODEL, Manifest, Repository, Version};
use launcher::run::folder::RunFolder;

/// Publishes the network as checkpoints of these steps, and sets the label `latest` and these other labels.
pub async fn run(folder: &Path, steps: &[u64], labels: &[(&str, usize)]) -> Vec<Version> {
    drop(RunFolder::open(folder, Some("connect-four"), &[]).unwrap());
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../networks/connect-four");
    let manifest: Manifest =
        serde_json::from_slice(&fs::read(shipped.join("manifest.json")).unwrap()).unwrap();
    let network = fs::read(shipped.join("model.onnx")).unwrap();
    let config = config::load(&folder.join("run.toml")).unwrap();
    let repository = Repository::open(&config.checkpoints.store).unwrap();
    let mut versions = Vec::new();
    for &step in steps {
        let draft = Draft {
            step,
            ..manifest.draft.clone()
        };
        let files = vec![(MODEL, network.clone().into())];
        versions.push(repository.publish(draft, files).await.unwrap());
    }
    for &(label, number) in labels {
        repository.set_label(label, &versions[number]).await.unwrap();
    }
    if let Some(newest) = versions.last() {
        repository.set_label(checkpoints::LATEST, newest).await.unwrap();
    }
    versions
}
