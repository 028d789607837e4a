//! The baseline: the network alone, one position at a time ([`Plain`]). It makes its batches before the measurement and
//! computes no priors, so it does not use the evaluator that it is compared with.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use network::{
    ModelFile,
    batch::Batch,
    buckets::Buckets,
    loader::{File, Loader},
    model::Model,
    provider::Provider,
};

use crate::harness::positions::Positions;

/// A network and positions, which it evaluates one at a time.
pub struct Plain {
    model: Model,
    batches: Vec<Batch>,
    next: usize,
}

impl Plain {
    pub fn load(game: &str, file: &ModelFile, provider: config::ProviderChoice) -> anyhow::Result<Self> {
        let environment = network::runtime::load(Path::new(""))?;
        let loader = Loader::new(environment, 1, Buckets::new(1), Provider::configured(provider))?;
        let model = loader.load(File {
            bytes: &file.bytes,
            version: &file.version,
            step: file.step,
            layout: &file.layout,
        })?;
        let positions = Positions::play(game)?;
        let batches = (0..1024).map(|number| {
            let row = positions.request(number, 1).indices;
            model.batch([row.as_slice()].into_iter())
        });
        Ok(Self {
            batches: batches.collect(),
            model,
            next: 0,
        })
    }

    /// Evaluates positions for `time`; returns their number.
    pub fn run_for(&mut self, time: Duration) -> anyhow::Result<u64> {
        let (began, mut done) = (Instant::now(), 0);
        while began.elapsed() < time {
            let batch = self.batches[self.next % self.batches.len()].clone();
            self.model.run(batch)?;
            self.next += 1;
            done += 1;
        }
        Ok(done)
    }
}
