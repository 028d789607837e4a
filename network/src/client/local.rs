//! A network that runs in this process, by the same loader as in the inference server: providers are measured, compared with
//! f32, and warmed.

use std::{path::Path, sync::Arc};

use config::Provider;

use crate::{
    buckets::Buckets,
    loader::{File, LoadError, Loader},
    model::Model,
    softmax::softmax,
};

use super::{Description, Network, NetworkError, PositionBatch, Predictions};
use crate::file::ModelFile;

/// Error: a network cannot be run in this process.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// ONNX Runtime cannot be loaded.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::RuntimeError),
    /// The provider is not available, or does not take the network.
    #[error("{version} cannot be loaded")]
    Load {
        /// Version of the network.
        version: String,
        /// Reason.
        source: LoadError,
    },
}

/// Loads networks. `auto` measures the machine's providers once, with the first network.
///
/// # Examples
/// A random network for Othello, written to a file, evaluates the start position:
///
/// ```
/// use std::path::Path;
///
/// use games::{Game, RowLayout, Symmetry, othello::Othello};
/// use network::{ModelFile, Network, PositionBatch, Predictions, client::local::NetworkLoader};
/// use onnx::{Input, Metadata, TowerShape, TowerWeights};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let encoding = Othello::encoding(0)?;
/// let layout: RowLayout = Othello::layout(encoding);
/// let weights = TowerWeights::random(&TowerShape::new(&layout, 1, 8), 1);
/// let metadata = Metadata { layout, step: 0 };
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.onnx");
/// std::fs::write(&path, onnx::build(&weights, &metadata, Input::Rows)?)?;
///
/// let file = ModelFile::find(&path.to_string_lossy().parse()?)?;
/// let network = NetworkLoader::new(Path::new(""), config::Provider::Cpu, 1, 16)?.open(&file)?;
///
/// let start = Othello::initial();
/// let (mut batch, mut predictions) = (PositionBatch::default(), Predictions::default());
/// let mut legal = Vec::new();
/// start.legal_actions(&mut legal);
/// batch.push_position(&start, Symmetry::default(), &legal, encoding);
/// network.evaluate(&batch, &mut predictions)?;
/// assert_eq!((predictions.values.len(), predictions.priors.len()), (1, 4));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct NetworkLoader {
    loader: Arc<Loader>,
}

impl NetworkLoader {
    /// Creates a loader for batches of at most `largest` positions, each computed by `threads` threads. `runtime` is the path
    /// of the ONNX Runtime library; if it is empty, see [`crate::runtime::load`].
    ///
    /// # Errors
    /// [`OpenError`] if ONNX Runtime or the requested provider is not available.
    pub fn new(
        runtime: &Path,
        provider: Provider,
        threads: usize,
        largest: usize,
    ) -> Result<Self, OpenError> {
        let environment = crate::runtime::load(runtime)?;
        let buckets = Buckets::new(largest.max(1));
        let loader = Loader::new(environment, threads.max(1), buckets, provider);
        let loader = loader.map_err(|source| OpenError::Load {
            version: "a network to try the provider".into(),
            source,
        })?;
        Ok(Self {
            loader: Arc::new(loader),
        })
    }

    /// Loads, checks and warms a network. Blocks for a tenth of a second to some seconds.
    ///
    /// # Errors
    /// [`OpenError::Load`] with the reason.
    pub fn open(&self, file: &ModelFile) -> Result<LocalNetwork, OpenError> {
        let model = self
            .loader
            .load(File {
                bytes: &file.bytes,
                version: &file.version,
                step: file.step,
                layout: &file.layout,
            })
            .map_err(|source| OpenError::Load {
                version: file.version.clone(),
                source,
            })?;
        Ok(LocalNetwork {
            description: Description {
                version: file.version.clone(),
                step: file.step,
                layout: file.layout.clone(),
                provider: model.info.provider.into(),
            },
            model,
        })
    }
}

/// A network in this process.
#[derive(Debug)]
pub struct LocalNetwork {
    description: Description,
    model: Model,
}

impl Network for LocalNetwork {
    fn description(&self) -> &Description {
        &self.description
    }

    fn evaluate(&self, batch: &PositionBatch, predictions: &mut Predictions) -> Result<(), NetworkError> {
        let actions = self.description.layout.actions as usize;
        let mut done = 0;
        while done < batch.len() {
            let count = (batch.len() - done).min(self.model.buckets.largest());
            let rows = (done..done + count).map(|position| batch.get(position).0);
            let outputs = self
                .model
                .run(self.model.batch(rows))
                .map_err(|error| NetworkError::Run(error.0))?;
            let logits = outputs.logits().chunks(actions);
            for (offset, (logits, &value)) in logits.zip(outputs.values()).take(count).enumerate() {
                let position = done + offset;
                let (_, legal) = batch.get(position);
                if !value.is_finite() || !softmax(logits, legal, &mut predictions.priors) {
                    return Err(NetworkError::NotFinite(position));
                }
                predictions.values.push(value);
            }
            done += count;
        }
        Ok(())
    }
}
