//! The network alone, one position at a time: [`Plain`].

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

/// The network alone, one position at a time.
pub struct Plain {
    model: Model,
    rows: Vec<Vec<i32>>,
    next: usize,
}

impl Plain {
    pub fn load(game: &str, file: &ModelFile, provider: config::Provider) -> anyhow::Result<Self> {
        let environment = network::runtime::load(Path::new(""))?;
        let loader = Loader::new(
            environment,
            1,
            Buckets::new(&[1], 1),
            Provider::asked_for(provider),
        )?;
        let model = loader.load(File {
            bytes: &file.bytes,
            version: &file.version,
            step: file.step,
            layout: &file.layout,
        })?;
        let positions = Positions::play(game)?;
        let rows = (0..1024).map(|number| {
            let row = positions.request(number, 1).indices;
            row.into_iter().map(|number| number as i32).collect()
        });
        Ok(Self {
            model,
            rows: rows.collect(),
            next: 0,
        })
    }

    /// Evaluates positions for `time`; returns their number.
    pub fn run_for(&mut self, time: Duration) -> anyhow::Result<u64> {
        let (began, mut done) = (Instant::now(), 0);
        while began.elapsed() < time {
            let row = self.rows[self.next % self.rows.len()].clone();
            self.model.run(Batch::new(row, 1))?;
            self.next += 1;
            done += 1;
        }
        Ok(done)
    }
}
