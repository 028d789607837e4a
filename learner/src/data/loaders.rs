//! Packs batches on several threads. Batches are returned in the order in which they were added, so that training stays repeatable.

use std::{collections::VecDeque, sync::Arc};

use proto::v1::Batch;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::data::{
    batches::{BatchError, HostBatch},
    packer::Packer,
};

/// The ledger's counts at the time at which a batch was received.
#[derive(Clone, Copy, Debug)]
pub struct LedgerCounts {
    /// Positions inserted since the run began, those inserted into earlier stores included.
    pub inserted: u64,
    /// Samples that were allowed and will not be drawn.
    pub forgone: u64,
}

/// A packed batch with the errors of the samples that it lacks, or the reason why it cannot be trained on.
pub type Packed = Result<(HostBatch, Vec<BatchError>), BatchError>;

/// Packing threads and the batches that they work on.
#[derive(Debug)]
pub struct Loaders {
    packer: Arc<Packer>,
    most: usize,
    packing: VecDeque<(LedgerCounts, JoinHandle<Packed>)>,
}

impl Loaders {
    /// Returns loaders that pack up to `most` batches at the same time, at least one.
    pub fn new(packer: Arc<Packer>, most: usize) -> Self {
        Self {
            packer,
            most: most.max(1),
            packing: VecDeque::new(),
        }
    }

    /// True if the oldest batch must be taken with [`Loaders::next`] before another one may be added.
    pub fn are_busy(&self) -> bool {
        self.packing.len() >= self.most
    }

    /// Begins to pack a batch. Must be called within a Tokio runtime.
    pub fn begin(&mut self, batch: Batch, counts: LedgerCounts) {
        let packer = Arc::clone(&self.packer);
        let packed = spawn_blocking(move || packer.pack_valid(&batch));
        self.packing.push_back((counts, packed));
    }

    /// Waits for the oldest batch and returns it; `None` if no batch is being packed. Cancel-safe: a cancelled call loses no batch.
    pub async fn next(&mut self) -> Option<(LedgerCounts, Packed)> {
        let (_, packing) = self.packing.front_mut()?;
        let packed = packing.await;
        let (counts, _) = self.packing.pop_front()?;
        let packed = packed.unwrap_or_else(|error| Err(BatchError::Packing(error.to_string())));
        Some((counts, packed))
    }
}

#[cfg(test)]
mod tests {
    use games::{PlaneStack, RowForm, RowLayout, RowSymmetries};

    use super::*;

    /// Batches of very different sizes, so that the later ones are packed sooner.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn batches_come_out_in_the_order_in_which_they_went_in() {
        let layout = RowLayout {
            game: "small".into(),
            options: 0,
            form: RowForm::Planes(PlaneStack {
                entries: 1,
                planes: 2,
                sparse: vec![0, 1],
                constants: vec![],
                ones: vec![],
            }),
            actions: 7,
            mirrored_actions: false,
            policy_head: games::PolicyHead::Dense,
        };
        let packer = Packer::new(layout, RowSymmetries::none(), 1);
        let mut loaders = Loaders::new(Arc::new(packer), 4);
        let (mut out, mut sizes) = (Vec::new(), Vec::new());
        for number in 0..40u64 {
            let positions = if number % 4 == 0 { 20_000 } else { number as usize };
            sizes.push(positions);
            let batch = Batch {
                number,
                positions: positions as u32,
                rows: vec![5; positions],
                visit_counts: vec![0; positions],
                results: vec![0.5; positions],
                root_values: vec![0.0; positions],
                game: "small".into(),
                ..Batch::default()
            };
            let counts = LedgerCounts {
                inserted: 10 * number,
                forgone: 0,
            };
            loaders.begin(batch, counts);
            while loaders.are_busy() {
                out.push(loaders.next().await.unwrap());
            }
            assert!(loaders.packing.len() < 4);
        }
        while let Some(packed) = loaders.next().await {
            out.push(packed);
        }
        for (number, (counts, packed)) in (0..).zip(&out) {
            let (packed, _) = packed.as_ref().unwrap();
            assert_eq!((packed.number, counts.inserted), (number, 10 * number));
            assert_eq!(packed.positions, sizes[number as usize]);
        }
        assert_eq!(out.len(), 40);
    }
}
