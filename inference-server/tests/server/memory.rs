//! Tests of loading, following and unloading models: a library without a server, over a store in a folder.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use crate::common::{Store, TIMEOUT, file, small, tower};
use checkpoints::{LATEST, MODEL, Version};
use games::RowLayout;
use inference_server::{
    metrics::Metrics,
    models::{
        library::{Library, LibraryParts, ModelListing},
        names::{Pointer, ServedName},
        source::Source,
        table::{MAX_SLOTS, Models},
    },
    requests::refusal::Refusal,
};
use network::{buckets::Buckets, loader::Loader, provider::Provider};
use onnx::{Input, TowerShape, TowerWeights};
use tonic::Code;

/// Makes a library over a store, with a memory budget in bytes, and waits for its first model.
async fn library(store: &Store, budget: u64) -> Arc<Library> {
    library_with(store, budget, |_| {}).await
}

/// Makes a library with a configuration changed by `change`, and waits for its first model.
async fn library_with(store: &Store, budget: u64, change: impl FnOnce(&mut LibraryParts)) -> Arc<Library> {
    let library = without_model(store, budget, change);
    let waiting = tokio::time::timeout(TIMEOUT, library.first_model());
    waiting.await.unwrap();
    library
}

fn without_model(store: &Store, budget: u64, change: impl FnOnce(&mut LibraryParts)) -> Arc<Library> {
    let environment = network::runtime::load(Path::new("")).unwrap();
    let loader = Loader::new(environment, 1, Buckets::new(8), Some(Provider::Cpu)).unwrap();
    let default = ServedName {
        source: String::new(),
        pointer: Pointer::Label("latest".into()),
    };
    let mut parts = LibraryParts {
        models: Arc::new(Models::new(default, [])),
        sources: BTreeMap::from([(String::new(), Source::Store(store.repository.clone()))]),
        loader: Arc::new(loader),
        game: ("paco-sako".into(), 0),
        poll: Duration::from_millis(5),
        budget,
        on_demand: true,
        metrics: Arc::new(Metrics::new()),
    };
    change(&mut parts);
    let library = Library::new(parts);
    library.start();
    library
}

#[tokio::test]
async fn the_least_recently_used_model_is_unloaded_after_its_requests_in_flight() {
    let (store, layout) = (Store::new(), small());
    let mut versions: Vec<Version> = Vec::new();
    let mut bytes = 0;
    for seed in 0..4 {
        let file = file(&tower(&layout, seed), &layout, Input::Rows);
        bytes = file.len() as u64;
        versions.push(store.publish(file, &layout, seed).await);
    }
    store.repository.set_label("latest", &versions[0]).await.unwrap();
    let library = library(&store, 3 * bytes).await;
    let name = |number: usize| versions[number].as_str();
    let loaded = || {
        // Finding a model by its name would count as a use.
        let is_loaded = |number: &usize| library.models().loaded("", name(*number)).is_some();
        (0..4).filter(is_loaded).collect::<Vec<_>>()
    };
    library.get(name(1)).await.unwrap();
    let in_flight = library.get(name(2)).await.unwrap();
    // The request found the model loaded, which counts as a use.
    library.get(name(1)).await.unwrap();
    let waits = tokio::spawn({
        let (library, name) = (library.clone(), name(3).to_owned());
        async move { library.get(&name).await }
    });
    let unloaded = async {
        while loaded().contains(&2) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, unloaded).await.unwrap();
    // The model keeps its memory until its requests are answered, and no other model is unloaded for it.
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(loaded(), [0, 1]);
    drop(in_flight);
    let third = tokio::time::timeout(TIMEOUT, waits)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(third.model.info.version, name(3));
    assert_eq!(loaded(), [0, 1, 3]);
    drop(third);

    // Unloaded by name, whatever its last use; the default stays.
    library.unload(name(3)).await.unwrap();
    assert_eq!(loaded(), [0, 1]);
    assert!(matches!(library.unload("latest").await, Err(Refusal::Pinned(_))));
    assert!(matches!(
        library.unload(name(3)).await,
        Err(Refusal::UnknownModel(_))
    ));
    library.load(name(3)).await.unwrap();
    let index = library.index().await.unwrap();
    let entry = |name: &str| index.iter().find(|entry| entry.name == name).unwrap().clone();
    let latest = ModelListing {
        name: "latest".into(),
        version: name(0).into(),
        is_loaded: true,
        reason: String::new(),
    };
    assert_eq!(entry("latest"), latest);
    assert!(entry(name(3)).is_loaded);
}

#[tokio::test]
async fn a_model_that_never_fits_is_refused() {
    let (store, layout) = (Store::new(), small());
    let bytes = |seed| file(&tower(&layout, seed), &layout, Input::Rows);
    store.publish_latest(bytes(1), &layout, 1).await;
    let other = store.publish(bytes(2), &layout, 2).await;
    let library = library(&store, bytes(1).len() as u64 * 3 / 2).await;
    let refused = library.get(other.as_str()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(
        refused.to_string().contains("raise inference.memory_mib"),
        "{refused}"
    );
}

fn bytes_of(layout: &RowLayout, seed: u64) -> Vec<u8> {
    file(&tower(layout, seed), layout, Input::Rows)
}

fn version_of(library: &Library, name: &str) -> Option<String> {
    let named = library.models().find(name).ok()?;
    Some(named.model.info.version.clone())
}

/// Waits until `name` points at `version`.
async fn until(library: &Library, name: &str, version: &Version) {
    let reached = async {
        while version_of(library, name).as_deref() != Some(version.as_str()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, reached).await.unwrap();
}

#[tokio::test]
async fn a_model_that_never_fits_unloads_no_other() {
    let (store, layout) = (Store::new(), small());
    let bytes = bytes_of(&layout, 1).len() as u64;
    store.publish_latest(bytes_of(&layout, 1), &layout, 1).await;
    let best = store.publish(bytes_of(&layout, 2), &layout, 2).await;
    let shape = TowerShape::new(&layout, 4, 32);
    let large = file(&TowerWeights::random(&shape, 3), &layout, Input::Rows);
    // The model would fit alone, but the default stays.
    let budget = large.len() as u64 + bytes / 2;
    assert!(budget > 2 * bytes);
    let large = store.publish(large, &layout, 3).await;
    let library = library(&store, budget).await;
    library.get(best.as_str()).await.unwrap();
    let refused = library.get(large.as_str()).await.unwrap_err();
    assert!(matches!(refused, Refusal::NoMemory { .. }), "{refused}");
    assert_eq!(
        version_of(&library, best.as_str()).as_deref(),
        Some(best.as_str())
    );
}

/// Without loading on demand no model is unloaded, because no request could load it again.
#[tokio::test]
async fn a_label_is_not_unloaded_for_its_own_next_version() {
    let (store, layout) = (Store::new(), small());
    let bytes = bytes_of(&layout, 1).len() as u64;
    store.publish_latest(bytes_of(&layout, 1), &layout, 1).await;
    let publish_best = async |step: u64| {
        let version = store.publish(bytes_of(&layout, step), &layout, step).await;
        store.repository.set_label("best", &version).await.unwrap();
        version
    };
    let first = publish_best(2).await;
    for on_demand in [false, true] {
        // Two models fit: a third cannot be loaded beside that of `best`.
        let library = library_with(&store, 2 * bytes, |parts| parts.on_demand = on_demand).await;
        let first = match on_demand {
            false => first.clone(),
            true => store.repository.label("best").await.unwrap().unwrap(),
        };
        library.load("best").await.unwrap();
        let slot = library
            .models()
            .slot(&library.models().name("best").unwrap())
            .unwrap();
        publish_best(3 + u64::from(on_demand)).await;
        // The follower may try before or after; the result is the same.
        let refused = library.load("best").await.unwrap_err();
        assert!(matches!(refused, Refusal::NoMemory { .. }), "{refused}");
        assert_eq!(version_of(&library, "best").as_deref(), Some(first.as_str()));
        let still = library.models().slot(&slot.name).unwrap();
        assert!(Arc::ptr_eq(&still, &slot));
    }

    // With memory for one more, the new version takes over, by request and by itself, in the same slot.
    let library = library_with(&store, 3 * bytes, |parts| parts.on_demand = false).await;
    library.load("best").await.unwrap();
    let fifth = publish_best(5).await;
    let named = library.load("best").await.unwrap();
    assert_eq!(named.model.info.version, fifth.as_str());
    drop(named);
    let sixth = publish_best(6).await;
    until(&library, "best", &sixth).await;
}

#[tokio::test]
async fn beyond_the_limit_of_names_the_least_recently_used_is_removed() {
    const MORE: usize = 3;
    let (store, layout) = (Store::new(), small());
    let version = store.publish_latest(bytes_of(&layout, 1), &layout, 1).await;
    let library = library_with(&store, 1 << 30, |parts| parts.poll = Duration::from_secs(3600)).await;
    let name = |number: usize| format!("label-{number}");
    // The default counts as a name.
    for number in 0..MAX_SLOTS - 1 + MORE {
        store.repository.set_label(&name(number), &version).await.unwrap();
        library.get(&name(number)).await.unwrap();
    }
    let loaded = |number: &usize| library.models().find(&name(*number)).is_ok();
    assert_eq!((0..MAX_SLOTS).position(|number| loaded(&number)), Some(MORE));
    assert_eq!(library.models().slots().len(), MAX_SLOTS);
    assert_eq!(version_of(&library, LATEST).as_deref(), Some(version.as_str()));
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
    let library = without_model(&store, 1 << 30, |_| {});
    let long = Duration::from_secs(120);
    assert!(tokio::time::timeout(long, library.first_model()).await.is_err());
    unreadable.repair();
    until(&library, "", &first).await;

    // A newer checkpoint takes over without a wait for the one that failed.
    let second = store.publish(bytes_of(&layout, 2), &layout, 2).await;
    let unreadable = Unreadable::new(&store, &second);
    store.repository.set_label(LATEST, &second).await.unwrap();
    tokio::time::sleep(long).await;
    assert_eq!(version_of(&library, "").as_deref(), Some(first.as_str()));
    let third = store.publish_latest(bytes_of(&layout, 3), &layout, 3).await;
    until(&library, "", &third).await;
    // A failure is forgotten with its version.
    unreadable.repair();
    tokio::time::sleep(long).await;
    assert_eq!(version_of(&library, "").as_deref(), Some(third.as_str()));
}
