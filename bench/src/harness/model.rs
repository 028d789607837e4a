//! The network that a benchmark measures: a trained one, or one of random weights.

use anyhow::{Context as _, ensure};
use checkpoints::{Draft, MODEL, Repository, Version};
use games::{RowLayout, registry};
use network::{ModelFile, ModelName};
use onnx::{Input, Metadata, TowerShape, TowerWeights};

/// Seed of the weights, so that every benchmark runs the same network.
const SEED: u64 = 1;

/// Returns the network called `name` and its version. Without a name it makes a network of random weights for `game` with
/// `options` (`None`: the usual ones), of (blocks, filters), which costs as much to run as a trained one.
pub fn find(
    game: &str,
    options: Option<u32>,
    name: Option<&ModelName>,
    (blocks, filters): (usize, usize),
) -> anyhow::Result<(ModelFile, String)> {
    if let Some(name) = name {
        let file = ModelFile::find(name)?;
        let own = &file.layout.game;
        ensure!(
            own == game,
            "{name} is a network for {own}; name that game in --game"
        );
        let called = file.version.clone();
        return Ok((file, called));
    }
    let own = registry::find(game)?;
    let layout = own.variant(&own.rules(), options)?.layout();
    let metadata = Metadata {
        layout: layout.clone(),
        step: 1,
    };
    let file = ModelFile {
        bytes: onnx::random::model(&metadata, blocks, filters, SEED)?.into(),
        version: "random".into(),
        step: 1,
        layout,
        search: None,
    };
    Ok((file, format!("random weights {blocks}x{filters}")))
}

/// Returns the file of the network of random weights that [`find`] makes for rows of this layout, with dense planes as its input.
pub fn planes(layout: &RowLayout, (blocks, filters): (usize, usize)) -> anyhow::Result<Vec<u8>> {
    let weights = TowerWeights::random(&TowerShape::new(layout, blocks, filters), SEED);
    let metadata = Metadata {
        layout: layout.clone(),
        step: 1,
    };
    Ok(onnx::build(&weights, &metadata, Input::Planes)?)
}

/// Publishes a network in the model repository `store` under `label`.
pub async fn publish(store: &str, label: &str, file: &ModelFile) -> anyhow::Result<Version> {
    let draft = Draft {
        game: file.layout.game.clone(),
        actions: file.layout.actions,
        layout: serde_json::to_value(&file.layout)?,
        step: file.step,
        ..Draft::default()
    };
    let repository = Repository::open(store)?;
    let version = repository
        .publish(draft, vec![(MODEL, file.bytes.clone())])
        .await?;
    let labelled = repository.set_label(label, &version).await;
    labelled.context("the network cannot be published")?;
    Ok(version)
}
