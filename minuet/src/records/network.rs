//! Evaluates positions with the networks that games were played with.

use std::{collections::HashMap, path::Path, sync::Arc};

use network::{
    LocalNetwork, ModelFile, ModelName, Network, PositionBatch, Predictions, client::local::NetworkLoader,
};

/// Largest number of positions of a batch. Searches request a few leaves at a time.
const BATCH: usize = 16;

/// Largest number of loaded networks.
const MOST_LOADED: usize = 32;

/// Loads checkpoints by version, and keeps them loaded for the next games.
pub struct Networks {
    location: String,
    loader: NetworkLoader,
    loaded: HashMap<String, Result<Arc<LocalNetwork>, String>>,
}

impl Networks {
    /// Prepares to load networks from the repository at `location` and to run them with `provider`.
    pub fn open(location: &str, provider: config::ProviderChoice, runtime: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            location: location.into(),
            loader: NetworkLoader::new(runtime, provider, 1, BATCH)?,
            loaded: HashMap::new(),
        })
    }

    /// Returns the network of a version, or a message if it cannot be loaded.
    pub fn get(&mut self, version: &str) -> Result<Arc<LocalNetwork>, String> {
        if let Some(known) = self.loaded.get(version) {
            return known.clone();
        }
        if self.loaded.len() >= MOST_LOADED {
            self.loaded.clear();
        }
        let network = self.load(version).map_err(|error| format!("{error:#}"));
        self.loaded.insert(version.into(), network.clone());
        network
    }

    fn load(&self, version: &str) -> anyhow::Result<Arc<LocalNetwork>> {
        let file = ModelFile::find(&ModelName::Store {
            url: self.location.clone(),
            version: Some(version.into()),
        })?;
        Ok(Arc::new(self.loader.open(&file)?))
    }
}

/// Appends the predictions for a batch. Priors are rounded to half precision as on the wire, so that they equal those of the
/// game.
pub fn evaluate(
    network: &LocalNetwork,
    batch: &PositionBatch,
    predictions: &mut Predictions,
) -> Result<(), String> {
    network
        .evaluate(batch, predictions)
        .map_err(|error| error.to_string())?;
    predictions.round_priors();
    Ok(())
}
