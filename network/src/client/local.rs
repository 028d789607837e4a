//! A network that runs in this process, by the same loader as in the inference server: providers are measured, compared with
//! f32, and warmed.

use super::{Description, Network, NetworkError, PositionBatch, Predictions};
use crate::{
    file::ModelFile,
    loader::{LoadError, Loader},
    model::Model,
    softmax::softmax,
};

/// A network in this process, opened by [`Loader::open`].
///
/// # Examples
/// A random network for Othello, written to a file, evaluates the start position:
///
/// ```
/// use games::{Game, RowLayout, Symmetry, othello::Othello};
/// use network::{ModelFile, Network, PositionBatch, Predictions, loader::Loader};
/// use onnx::{Input, Metadata, TowerShape, TowerWeights};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let encoding = Default::default();
/// let layout: RowLayout = Othello::layout(encoding);
/// let weights = TowerWeights::random(&TowerShape::new(&layout, 1, 8), 1);
/// let metadata = Metadata { layout, step: 0 };
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.onnx");
/// std::fs::write(&path, onnx::build(&weights, &metadata, Input::Rows)?)?;
///
/// let file = ModelFile::find(&path.to_string_lossy().parse()?)?;
/// let network = Loader::new(1, 16, config::Provider::Cpu)?.open(&file)?;
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
#[derive(Debug)]
pub struct LocalNetwork {
    description: Description,
    model: Model,
}

impl Loader {
    /// Loads, checks and warms a network. Blocks for a tenth of a second to some seconds.
    ///
    /// # Errors
    /// [`LoadError::Version`] with the reason.
    pub fn open(&self, file: &ModelFile) -> Result<LocalNetwork, LoadError> {
        let model = self.load(file).map_err(|source| LoadError::Version {
            version: file.version.clone(),
            source: Box::new(source),
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
