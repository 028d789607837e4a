//! Small networks of random weights, published as a run publishes them.

use std::{path::Path, sync::Arc};

use arena::players::{NetworkOptions, Networks};
use bytes::Bytes;
use checkpoints::{Draft, LATEST, MODEL, Repository, Version};
use config::{Provider, RunConfig, template};
use games::{Game, erased::Variant, registry};
use onnx::{Input, Metadata, TowerShape, TowerWeights};

/// The game with the rules of self-play.
pub fn variant(game: &str) -> Arc<dyn Variant> {
    let game = registry::find(game).unwrap();
    game.variant(&game.rules(), None).unwrap()
}

/// The file of a network for `G`.
pub fn file<G: Game>(seed: u64) -> Vec<u8> {
    let layout = G::layout(G::encoding(&Default::default(), 0).unwrap());
    let shape = TowerShape::new(&layout, 1, 8);
    let weights = TowerWeights::random(&shape, seed);
    onnx::build(&weights, &Metadata { layout, step: 7 }, Input::Rows).unwrap()
}

/// A run's folder with a checkpoint that `latest` points at.
pub fn run<G: Game>(folder: &Path, seed: u64) -> Version {
    let mut config = RunConfig::default();
    config.game.name = G::NAME.into();
    config.game.options = 0;
    config.search.exploration = 2.75;
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("run.toml"), template(&config)).unwrap();
    publish::<G>(&folder.join("checkpoints"), seed)
}

/// Publishes a network and moves `latest`.
pub fn publish<G: Game>(store: &Path, seed: u64) -> Version {
    let layout = G::layout(G::encoding(&Default::default(), 0).unwrap());
    let draft = Draft {
        game: G::NAME.into(),
        actions: layout.actions,
        layout: serde_json::to_value(&layout).unwrap(),
        step: 7,
        ..Draft::default()
    };
    let store = store.to_str().unwrap().to_owned();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let repository = Repository::open(&store).unwrap();
            let files = vec![(MODEL, Bytes::from(file::<G>(seed)))];
            let version = repository.publish(draft, files).await.unwrap();
            repository.set_label(LATEST, &version).await.unwrap();
            version
        })
}

/// Networks on the plain CPU provider, whose outputs are deterministic.
pub fn networks() -> Networks {
    Networks::new(NetworkOptions {
        provider: Provider::Cpu,
        batch: 16,
        cache_mib: 4,
        ..NetworkOptions::default()
    })
}
