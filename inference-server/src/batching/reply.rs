//! From logits to answers: the legal entries, softmaxed.

use std::sync::Arc;

use tokio::sync::mpsc;

use network::softmax::{softmax, softmax_of};

use crate::{
    batching::{cache::Evaluations, executor::Finished, job::Piece, span::BatchSpan},
    metrics::Metrics,
    requests::{refusal::Refusal, request::Wants},
};

/// Answers finished batches, until there are no more. What was computed is kept in `cache`.
pub async fn run(mut finished: mpsc::Receiver<Finished>, cache: Option<Arc<Evaluations>>, metrics: &Metrics) {
    let mut scratch = Scratch::default();
    while let Some(batch) = finished.recv().await {
        let span = BatchSpan::of(&batch);
        answer(batch, &mut scratch, cache.as_deref(), metrics);
        if let Some(span) = span {
            span.tell();
        }
    }
}

/// Memory that is used again.
#[derive(Debug, Default)]
struct Scratch {
    values: Vec<f32>,
    policy: Vec<f32>,
}

fn answer(batch: Finished, scratch: &mut Scratch, cache: Option<&Evaluations>, metrics: &Metrics) {
    let Finished {
        model,
        pieces,
        places,
        outputs,
        times: _,
    } = batch;
    let outputs = match outputs {
        Ok(outputs) => outputs,
        Err(error) => {
            for piece in pieces {
                piece.job.refuse(Refusal::Device(error.0.clone()));
            }
            return;
        }
    };
    let results = Results {
        actions: model.info.layout.actions as usize,
        logits: outputs.logits(),
        legal: outputs.legal_logits(),
        values: outputs.values(),
        places: &places,
    };
    let mut first = 0;
    for piece in pieces {
        let read = results.read(&piece, first, scratch);
        first += piece.count;
        if let Err(position) = read {
            tracing::error!(
                version = model.info.version,
                position,
                "the model's answer is not finite"
            );
            metrics.not_finite();
            piece.job.refuse(Refusal::NotFinite { position });
            continue;
        }
        if let Some(cache) = cache {
            let mut priors = scratch.policy.as_slice();
            for (position, &value) in piece.positions().zip(&scratch.values) {
                let (own, others) = priors.split_at(priors.len().min(piece.legal(position).len()));
                priors = others;
                cache.keep(&model, &piece, position, value, own);
            }
        }
        let answered = piece.answer(
            &model.info.version,
            &scratch.values,
            &scratch.policy,
            results.actions,
        );
        if let Some(positions) = answered {
            metrics.answered(positions);
        }
    }
}

/// What a batch gave.
struct Results<'a> {
    actions: usize,
    logits: &'a [f32],
    /// See [`network::batch::Outputs::legal_logits`].
    legal: Option<(&'a [f32], usize)>,
    values: &'a [f32],
    /// See [`Finished::places`].
    places: &'a [u32],
}

impl Results<'_> {
    /// Reads a piece, whose first position is the `first` of the batch, into `scratch`: values, and what is wanted of the
    /// policy.
    ///
    /// # Errors
    /// The first position (of the request) whose value or policy is not finite.
    fn read(&self, piece: &Piece, first: usize, scratch: &mut Scratch) -> Result<(), usize> {
        scratch.values.clear();
        scratch.policy.clear();
        for (number, position) in (first..).zip(piece.positions()) {
            let place = self.places.get(number).map_or(number, |&place| place as usize);
            let row = |width: usize| place * width..(place + 1) * width;
            let logits = self.logits.get(row(self.actions)).unwrap_or_default();
            let value = self.values.get(place).copied().unwrap_or(f32::NAN);
            let is_finite = match piece.job.wants() {
                Wants::Logits => {
                    scratch.policy.extend_from_slice(logits);
                    logits.iter().all(|logit| logit.is_finite())
                }
                _ => match self.legal {
                    None => softmax(logits, piece.legal(position), &mut scratch.policy),
                    Some((legal, width)) => {
                        let own = legal.get(row(width)).unwrap_or_default();
                        let count = piece.legal(position).len();
                        own.len() >= count && softmax_of(own.iter().copied().take(count), &mut scratch.policy)
                    }
                },
            };
            if !is_finite || !value.is_finite() {
                return Err(position);
            }
            scratch.values.push(value);
        }
        Ok(())
    }
}
