//! Evaluates positions with the networks that games were played with.

use std::{collections::HashMap, path::Path, sync::Arc};

use actor::check::search::{LeafInput, LeafOutput};
use anyhow::Context as _;
use checkpoints::{MODEL, Repository};
use games::RowLayout;
use network::{
    buckets::Buckets,
    loader::{File, Loader},
    model::Model,
    provider::Provider,
    softmax::softmax,
};

/// Maximum number of rows of a batch. Searches request a few leaves at a time.
const BATCH: usize = 16;

/// Loads checkpoints by version, each once.
pub struct Networks {
    repository: Repository,
    loader: Loader,
    loaded: HashMap<String, Result<Arc<Model>, String>>,
}

impl Networks {
    /// Opens the repository at `location`, whose networks `provider` runs.
    pub fn open(location: &str, provider: Provider, runtime: &Path) -> anyhow::Result<Self> {
        let environment = network::runtime::load(runtime)?;
        Ok(Self {
            repository: Repository::open(location)?,
            loader: Loader::new(environment, 1, Buckets::new(&[], BATCH), Some(provider))?,
            loaded: HashMap::new(),
        })
    }

    /// Returns the network of a version, or a message if it cannot be loaded.
    pub async fn get(&mut self, version: &str) -> Result<Arc<Model>, String> {
        if let Some(known) = self.loaded.get(version) {
            return known.clone();
        }
        let model = self.load(version).await.map_err(|error| format!("{error:#}"));
        self.loaded.insert(version.into(), model.clone());
        model
    }

    async fn load(&self, version: &str) -> anyhow::Result<Arc<Model>> {
        let manifest = self.repository.resolve(version).await?;
        let layout: RowLayout = serde_json::from_value(manifest.layout.clone()).context("row layout")?;
        let bytes = self.repository.fetch(&manifest, MODEL).await?;
        let model = self.loader.load(File {
            bytes: &bytes,
            version,
            step: manifest.step,
            layout: &layout,
        })?;
        Ok(Arc::new(model))
    }
}

/// Returns priors and values of the inputs. Priors are rounded as in the network protocol, so that they equal those of the game.
pub fn evaluate(model: &Model, inputs: &[LeafInput]) -> Result<Vec<LeafOutput>, String> {
    let mut outputs = Vec::with_capacity(inputs.len());
    for chunk in inputs.chunks(model.buckets.largest()) {
        outputs.extend(batch(model, chunk)?);
    }
    Ok(outputs)
}

fn batch(model: &Model, inputs: &[LeafInput]) -> Result<Vec<LeafOutput>, String> {
    let layout = &model.info.layout;
    for input in inputs {
        layout.validate(&input.row).map_err(|error| error.to_string())?;
        if input.legal.iter().any(|&action| action >= layout.actions) {
            return Err("a legal action is outside the network's policy".into());
        }
    }
    let rows = inputs.iter().map(|input| input.row.as_slice());
    let outputs = model.run(model.batch(rows)).map_err(|error| error.to_string())?;
    let logits = outputs.logits().chunks(layout.actions as usize);
    inputs
        .iter()
        .zip(logits.zip(outputs.values()))
        .map(|(input, (logits, &value))| {
            let mut exact = Vec::with_capacity(input.legal.len());
            if !softmax(logits, &input.legal, &mut exact) || !value.is_finite() {
                return Err("the network's output is not finite".into());
            }
            let mut priors = Vec::with_capacity(exact.len());
            proto::priors::decode(&proto::priors::encode(&exact), exact.len(), &mut priors)
                .map_err(|error| error.to_string())?;
            Ok(LeafOutput { priors, value })
        })
        .collect()
}
