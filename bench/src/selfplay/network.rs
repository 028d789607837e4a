//! Publishes a network of random weights, which costs as much to run as a trained one.

use anyhow::Context as _;
use bytes::Bytes;
use checkpoints::{Draft, MODEL, Repository};
use config::RunConfig;
use games::{Game, RowLayout, registry};
use onnx::Metadata;

/// Seed of the weights, so that every benchmark runs the same network.
const SEED: u64 = 1;

struct Layout {
    options: u32,
}

impl registry::Visitor for Layout {
    type Output = Result<RowLayout, games::StartError>;

    fn visit<G: Game>(self) -> Self::Output {
        Ok(G::layout(G::encoding(self.options)?))
    }
}

/// Publishes a tower of `blocks` × `filters` for the configuration's game, under the label that its actors use.
pub async fn publish(config: &RunConfig, blocks: usize, filters: usize) -> anyhow::Result<()> {
    let layout = registry::visit(
        &config.game.name,
        Layout {
            options: config.game.options,
        },
    )??;
    let draft = Draft {
        game: layout.game.clone(),
        actions: layout.actions,
        layout: serde_json::to_value(&layout)?,
        network: serde_json::json!({ "blocks": blocks, "filters": filters, "weights": "random" }),
        ..Draft::default()
    };
    let metadata = Metadata { layout, step: 0 };
    let file = Bytes::from(onnx::random::model(&metadata, blocks, filters, SEED)?);
    let repository = Repository::open(&config.checkpoints.store)?;
    let version = repository.publish(draft, vec![(MODEL, file)]).await?;
    repository
        .set_label(&config.actor.model, &version)
        .await
        .context("the network cannot be published")
}
