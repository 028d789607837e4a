//! A network in this process: the inference server's own loader (providers measured, checked against f32, warmed), without
//! the server.

use std::{path::Path, sync::Arc};

use crate::{
    buckets::Buckets,
    loader::{File, LoadError, Loader},
    model::Model,
    provider::Provider,
    softmax::softmax,
};

use super::{Description, Network, NetworkError, PositionBatch, Predictions};
use crate::file::ModelFile;

/// A network that cannot be run in this process.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// ONNX Runtime is not there.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::RuntimeError),
    /// The provider is not there, or does not take the network.
    #[error("{version} cannot be loaded: {source}")]
    Load {
        /// The checkpoint.
        version: String,
        /// Why.
        source: LoadError,
    },
}

/// Loads networks; `auto` measures the machine's providers once, with the first network.
#[derive(Clone, Debug)]
pub struct Opener {
    loader: Arc<Loader>,
}

impl Opener {
    /// An opener for batches of at most `largest` positions, computed by `threads` threads each, by the ONNX Runtime
    /// library at `runtime` (empty: see [`crate::runtime::load`]).
    ///
    /// # Errors
    /// [`OpenError`] where ONNX Runtime or the provider asked for is not there.
    pub fn new(
        runtime: &Path,
        provider: config::Provider,
        threads: usize,
        largest: usize,
    ) -> Result<Self, OpenError> {
        let environment = crate::runtime::load(runtime)?;
        let buckets = Buckets::new(&[], largest.max(1));
        let loader = Loader::new(
            environment,
            threads.max(1),
            buckets,
            Provider::asked_for(provider),
        )
        .map_err(|source| OpenError::Load {
            version: "a network to try the provider".into(),
            source,
        })?;
        Ok(Self {
            loader: Arc::new(loader),
        })
    }

    /// Loads, checks and warms a network: a tenth of a second to some seconds.
    ///
    /// # Errors
    /// [`OpenError::Load`].
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
