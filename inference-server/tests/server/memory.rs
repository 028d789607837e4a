//! Tests of loading and following models: a library without a server, over a store in a folder.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use crate::common::{Store, file, small, tower, until};
use checkpoints::{BEST, LATEST, MODEL, Version};
use config::Provider;
use games::RowLayout;
use inference_server::{
    intake::refusal::Refusal,
    metrics::Metrics,
    models::{
        library::Library,
        names::{Pointer, ServedName},
        source::Source,
        table::Models,
    },
};
use network::loader::Loader;
use onnx::{Input, TowerShape, TowerWeights};
use tokio::task::JoinSet;

/// Serves `latest` and `best` of a store, each with a model of at most `memory` bytes. Dropping the set ends the loading.
fn followed(store: &Store, memory: u64) -> (Arc<Models>, JoinSet<()>) {
    let loader = Loader::new(1, 8, Provider::Cpu).unwrap();
    let [latest, best] = [LATEST, BEST].map(|label| ServedName {
        source: String::new(),
        pointer: Pointer::Label(label.into()),
    });
    let models = Arc::new(Models::new(latest, [best], []));
    let library = Library {
        models: models.clone(),
        sources: BTreeMap::from([(String::new(), Source::Store(store.repository.clone()))]),
        loader: Arc::new(loader),
        game: ("paco-sako".into(), 0),
        poll: Duration::from_millis(5),
        memory,
        metrics: Arc::new(Metrics::new()),
    };
    (models, library.start())
}

fn bytes_of(layout: &RowLayout, seed: u64) -> Vec<u8> {
    file(&tower(layout, seed), layout, Input::Rows)
}

fn version_of(models: &Models, name: &str) -> Option<String> {
    Some(models.find(name).ok()?.model.info.version.clone())
}

/// Waits until `name` points at `version`.
async fn until_served(models: &Models, name: &str, version: &Version) {
    until(async || version_of(models, name).as_deref() == Some(version.as_str())).await;
}

/// The default model may be larger than the limit, because training must continue.
#[tokio::test]
async fn a_model_above_the_limit_is_refused_unless_it_is_the_default() {
    let (store, layout) = (Store::new(), small());
    let larger = |seed| {
        let weights = TowerWeights::random(&TowerShape::new(&layout, 4, 32), seed);
        file(&weights, &layout, Input::Rows)
    };
    let large = larger(3);
    let limit = bytes_of(&layout, 2).len() as u64;
    assert!(large.len() as u64 > limit);
    let best = store.publish(bytes_of(&layout, 2), &layout, 2).await;
    store.repository.set_label(BEST, &best).await.unwrap();
    let large = store.publish_latest(large, &layout, 3).await;
    let (models, _loading) = followed(&store, limit);
    until_served(&models, LATEST, &large).await;
    until_served(&models, BEST, &best).await;

    // The old model stays.
    let larger = store.publish(larger(4), &layout, 4).await;
    store.repository.set_label(BEST, &larger).await.unwrap();
    let slots = models.slots();
    let slot = slots.iter().find(|slot| slot.text == BEST).unwrap();
    until(async || slot.failure().is_some()).await;
    assert!(slot.failure().unwrap().contains("raise inference.memory_mib"));
    assert_eq!(version_of(&models, BEST).as_deref(), Some(best.as_str()));
}

/// A server that starts serves the newest sound checkpoint if the newest one, its manifest or the label is damaged, and the newest one once
/// that is sound again.
#[tokio::test]
async fn a_damaged_newest_checkpoint_does_not_stop_a_run() {
    let (store, layout) = (Store::new(), small());
    let first = store.publish_latest(bytes_of(&layout, 1), &layout, 1).await;
    let second = store.publish_latest(bytes_of(&layout, 2), &layout, 2).await;
    let third = store.publish_latest(bytes_of(&layout, 3), &layout, 3).await;
    let path = |version: &Version, file: &str| {
        store
            .folder
            .path()
            .join("versions")
            .join(version.as_str())
            .join(file)
    };
    let flip = |path: &Path| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[0] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    flip(&path(&second, MODEL));
    for damaged in [
        path(&third, MODEL),
        path(&third, "manifest.json"),
        store.folder.path().join("labels/latest.json"),
    ] {
        let is_label = damaged.ends_with("labels/latest.json");
        flip(&damaged);
        let (models, loading) = followed(&store, 1 << 30);
        let before = if is_label { &third } else { &first };
        until_served(&models, LATEST, before).await;
        let slot = models.default_slot();
        until(async || {
            slot.failure()
                .is_some_and(|reason| reason.contains("is served in its place"))
        })
        .await;
        let reason = slot.failure().unwrap();
        assert!(
            reason.contains("damaged") && reason.contains(before.as_str()),
            "{reason}"
        );
        // The label of the strongest one means that one only.
        assert_eq!(version_of(&models, BEST), None);
        flip(&damaged);
        drop(loading);
        let (models, _loading) = followed(&store, 1 << 30);
        until_served(&models, LATEST, &third).await;
        assert_eq!(models.default_slot().failure(), None);
    }
}

/// Without a sound checkpoint the reason is told, and the file is read again until it is sound.
#[tokio::test(start_paused = true)]
async fn a_damaged_only_checkpoint_is_served_once_it_is_written_again() {
    let (store, layout) = (Store::new(), small());
    let bytes = bytes_of(&layout, 1);
    let only = store.publish_latest(bytes.clone(), &layout, 1).await;
    let path = store
        .folder
        .path()
        .join("versions")
        .join(only.as_str())
        .join(MODEL);
    std::fs::write(&path, &bytes[1..]).unwrap();
    let (models, _loading) = followed(&store, 1 << 30);
    let refused = || matches!(models.find(LATEST), Err(Refusal::NewestRefused { .. }));
    until(async || refused()).await;
    std::fs::write(&path, &bytes).unwrap();
    until_served(&models, LATEST, &only).await;
}

/// A replaced model is freed after its last request, and one model serves all labels that point at its version.
#[tokio::test]
async fn labels_of_one_version_share_its_model_and_a_replaced_one_is_freed() {
    let (store, layout) = (Store::new(), small());
    let first = store.publish_latest(bytes_of(&layout, 1), &layout, 1).await;
    store.repository.set_label(BEST, &first).await.unwrap();
    let (models, _loading) = followed(&store, 1 << 30);
    until_served(&models, LATEST, &first).await;
    until_served(&models, BEST, &first).await;
    let in_flight = models.find(LATEST).unwrap().model;
    assert!(Arc::ptr_eq(&in_flight, &models.find(BEST).unwrap().model));

    let second = store.publish_latest(bytes_of(&layout, 2), &layout, 2).await;
    until_served(&models, LATEST, &second).await;
    // `best` still has it.
    assert!(models.find(first.as_str()).is_ok());
    store.repository.set_label(BEST, &second).await.unwrap();
    until_served(&models, BEST, &second).await;
    let unknown = Refusal::UnknownModel(first.to_string());
    assert_eq!(models.find(first.as_str()).unwrap_err(), unknown);
    let weak = Arc::downgrade(&in_flight);
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(weak.upgrade().is_some());
    drop(in_flight);
    until(async || weak.upgrade().is_none()).await;
}

/// A checkpoint's file that cannot be read: a link to itself, which is not a missing file.
struct Unreadable {
    file: std::path::PathBuf,
    aside: std::path::PathBuf,
}

impl Unreadable {
    fn new(store: &Store, version: &Version) -> Self {
        let file = store.folder.path().join(format!("versions/{version}/{MODEL}"));
        let aside = store.folder.path().join(format!("{version}-aside"));
        durable::rename(&file, &aside).unwrap();
        std::os::unix::fs::symlink(&file, &file).unwrap();
        Self { file, aside }
    }

    fn repair(self) {
        durable::rename(&self.aside, self.file).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_cannot_be_read_is_served_once_it_can() {
    let (store, layout) = (Store::new(), small());
    let first = store.publish_latest(bytes_of(&layout, 1), &layout, 1).await;
    let unreadable = Unreadable::new(&store, &first);
    let (models, _loading) = followed(&store, 1 << 30);
    let long = Duration::from_secs(120);
    let waiting = tokio::time::timeout(long, models.default_slot().first_model());
    assert!(waiting.await.is_err());
    unreadable.repair();
    until_served(&models, "", &first).await;

    // A newer checkpoint takes over without a wait for the one that failed.
    let second = store.publish(bytes_of(&layout, 2), &layout, 2).await;
    let unreadable = Unreadable::new(&store, &second);
    store.repository.set_label(LATEST, &second).await.unwrap();
    tokio::time::sleep(long).await;
    assert_eq!(version_of(&models, "").as_deref(), Some(first.as_str()));
    let third = store.publish_latest(bytes_of(&layout, 3), &layout, 3).await;
    until_served(&models, "", &third).await;
    // A failure is forgotten with its version.
    unreadable.repair();
    tokio::time::sleep(long).await;
    assert_eq!(version_of(&models, "").as_deref(), Some(third.as_str()));
}
