//! Drawing batches for training and for evaluating a network.

use std::{collections::HashMap, sync::Arc};

use proto::v1::{Batch, Purpose, Redraw};

use super::{Store, reading::GetError, shared::StoreState};
use crate::{
    error::StoreFailed,
    log::{
        drawn::{BatchKey, Pick},
        files,
    },
    record::decoded::Decoded,
    window::{Window, sampler},
};

/// Maximum number of draws of one batch. A draw is repeated if one of its games cannot be read.
const REDRAWS: usize = 64;

/// Error: no batch could be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// The batch would exceed `replay.max_uses`, so the caller must wait for games.
    #[error("positions have been used as often as replay.max_uses allows")]
    Held,
    /// The disk is full, so that samples cannot be counted.
    #[error("the disk is full: samples cannot be counted")]
    Full,
    /// The window holds no positions.
    #[error("the window is empty")]
    Empty,
    /// Every draw had a game that cannot be read.
    #[error("drawn games cannot be read")]
    Unreadable,
    /// The store has stopped.
    #[error(transparent)]
    Failed(#[from] StoreFailed),
}

impl Store {
    /// Draws batch `number` of `seed`. Blocks on the disk if games are not in the cache. The positions are counted as sampled before the
    /// call returns.
    ///
    /// # Errors
    /// [`SampleError`]
    pub fn batch(&self, seed: u64, number: u64, positions: usize) -> Result<Batch, SampleError> {
        let key = BatchKey {
            seed,
            line: 0,
            number,
        };
        self.training_batch(key, positions, false)
    }

    /// Draws a batch as [`Store::batch`] does, with search results if `with_decisions`. If the batch was drawn for the same line of training
    /// before, it has the same positions again as long as their games are stored, and is not counted again.
    ///
    /// # Errors
    /// [`SampleError`]
    pub fn training_batch(
        &self,
        key: BatchKey,
        positions: usize,
        with_decisions: bool,
    ) -> Result<Batch, SampleError> {
        let before = self.shared.drawn.lock().find(&key);
        let Some(before) = before else {
            return self.draw(key, positions, with_decisions);
        };
        let (batch, redraw) = match self.drawn_again(&before, positions, with_decisions) {
            Some(batch) => (batch, Redraw::Same),
            None => (self.draw(key, positions, with_decisions)?, Redraw::Other),
        };
        Ok(Batch {
            redraw: redraw.into(),
            ..self.labelled(batch, key.number)
        })
    }

    /// Assembles a batch of positions that were drawn before. Returns `None` if their number has changed, or if one of their games is not
    /// stored any more.
    fn drawn_again(&self, picks: &[Pick], positions: usize, with_decisions: bool) -> Option<Batch> {
        // A deleted game is still in its volume.
        let is_stored = |sequence| {
            let volume = self.shared.volumes.holding(sequence);
            volume.is_some_and(|volume| !volume.deleted(sequence))
        };
        if picks.len() != positions || !picks.iter().all(|pick| is_stored(pick.sequence)) {
            return None;
        }
        let games = self.decoded(picks)?;
        sampler::assemble(picks, &games, with_decisions)
    }

    /// Draws evaluation batch `number` of `seed`, uniformly from the positions of `purpose` in the whole window. The positions are not counted
    /// as sampled, and no bound applies. Blocks on the disk.
    ///
    /// # Errors
    /// [`SampleError::Empty`] if the set has no positions, and the errors of [`Store::batch`].
    pub fn evaluation_batch(
        &self,
        purpose: Purpose,
        seed: u64,
        number: u64,
        positions: usize,
        with_decisions: bool,
    ) -> Result<Batch, SampleError> {
        let draw = |window: &Window| sampler::draw_for_evaluation(window, purpose, seed, number, positions);
        let (_, batch) = self.draw_readable(draw, with_decisions)?;
        Ok(self.labelled(batch, number))
    }

    /// Fills in the fields that every batch has.
    fn labelled(&self, mut batch: Batch, number: u64) -> Batch {
        batch.number = number;
        batch.positions_inserted = self.shared.ledger.now().positions_inserted;
        batch.window_positions = self.shared.window.read().positions();
        batch.game = self.shared.validator.game().into();
        batch.options = self.shared.settings.options;
        batch
    }

    /// Draws a batch for training, counts it, and remembers it if it is for a line of training.
    fn draw(&self, key: BatchKey, positions: usize, with_decisions: bool) -> Result<Batch, SampleError> {
        let count = positions as u64;
        let bounds = &self.shared.settings.bounds;
        let left = self.shared.window.read().positions();
        if !bounds.may_sample(&self.shared.ledger.now(), left, count) {
            return Err(SampleError::Held);
        }
        let draw = |window: &Window| sampler::draw(window, key.seed, key.number, positions);
        let (picks, batch) = self.draw_readable(draw, with_decisions)?;
        let counted = self.shared.ledger.change(|live| {
            // Other batches may have been drawn in the meantime.
            let ledger = live.now();
            if !bounds.may_sample(&ledger, left, count) {
                return Ok(false);
            }
            live.sampled(count, bounds.forgone(&ledger, left))?;
            Ok(true)
        });
        match counted {
            Ok(true) => self.shared.metrics.positions_sampled.increment(count),
            Ok(false) => return Err(SampleError::Held),
            Err(error) if files::is_full(&error) => return Err(SampleError::Full),
            Err(error) => {
                let failure = StoreFailed {
                    reason: format!("writing the ledger: {error}"),
                };
                self.shared.fail(failure.clone());
                return Err(failure.into());
            }
        }
        if key.line != 0 {
            self.remember(key, &picks);
        }
        self.shared.uses_bound.notify_games();
        Ok(self.labelled(batch, key.number))
    }

    /// Draws positions with `draw` and assembles their batch. Repeats the draw if one of its games cannot be read.
    fn draw_readable(
        &self,
        draw: impl Fn(&Window) -> Option<Vec<Pick>>,
        with_decisions: bool,
    ) -> Result<(Vec<Pick>, Batch), SampleError> {
        for _ in 0..REDRAWS {
            if *self.shared.state.borrow() != StoreState::Running {
                return Err(self.stopped().into());
            }
            let picks = draw(&self.shared.window.read()).ok_or(SampleError::Empty)?;
            if let Some(games) = self.decoded(&picks) {
                let batch = sampler::assemble(&picks, &games, with_decisions);
                return Ok((picks, batch.ok_or(SampleError::Unreadable)?));
            }
        }
        Err(SampleError::Unreadable)
    }

    /// Remembers a batch for a learner that resumes. A failure is logged, at most once a minute, and the batch is sent nevertheless.
    fn remember(&self, key: BatchKey, picks: &[Pick]) {
        if let Err(error) = self.shared.drawn.lock().remember(key, picks)
            && self.shared.batch_warning.allows()
        {
            tracing::warn!(
                number = key.number,
                %error,
                "a batch cannot be remembered; a learner that resumes would get another one"
            );
        }
    }

    /// Returns the games of the picks, in order. Returns `None` if a game is no longer stored or cannot be read, so that the caller must
    /// draw again.
    fn decoded(&self, picks: &[Pick]) -> Option<Vec<Arc<Decoded>>> {
        let found = self.shared.cache.get(picks.iter().map(|pick| pick.sequence));
        let hits = found.iter().flatten().count();
        let mut read: HashMap<u64, Arc<Decoded>> = HashMap::new();
        let games = found
            .into_iter()
            .zip(picks)
            .map(|(game, pick)| match (game, read.get(&pick.sequence)) {
                (Some(game), _) => Some(game),
                (None, Some(game)) => Some(Arc::clone(game)),
                (None, None) => {
                    let game = Arc::new(self.decode(pick.sequence)?);
                    self.shared.cache.insert(pick.sequence, &game);
                    read.insert(pick.sequence, Arc::clone(&game));
                    Some(game)
                }
            })
            .collect::<Option<Vec<_>>>()?;
        let metrics = &self.shared.metrics;
        metrics.cache_hits.increment(hits as u64);
        metrics.cache_misses.increment((picks.len() - hits) as u64);
        metrics.cache_bytes.set(self.shared.cache.bytes() as f64);
        Some(games)
    }

    fn decode(&self, sequence: u64) -> Option<Decoded> {
        let read = self.read(sequence).and_then(|game| {
            Decoded::new(&game).map_err(|error| GetError::Damaged {
                sequence,
                reason: error.to_string(),
            })
        });
        if let Err(GetError::Damaged { reason, .. }) = &read {
            self.shared.mark_unreadable(sequence, reason);
        }
        read.ok()
    }
}
