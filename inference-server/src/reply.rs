//! From logits to answers: the legal entries, softmaxed.

use tokio::sync::mpsc;

use crate::{executor::Finished, job::Piece, metrics::Metrics, refusal::Refusal};

/// Answers finished batches, until there are no more.
pub async fn run(mut finished: mpsc::Receiver<Finished>, metrics: &Metrics) {
    let mut scratch = Scratch::default();
    while let Some(batch) = finished.recv().await {
        answer(batch, &mut scratch, metrics);
    }
}

/// Memory that is used again.
#[derive(Debug, Default)]
struct Scratch {
    priors: Vec<f32>,
}

fn answer(batch: Finished, scratch: &mut Scratch, metrics: &Metrics) {
    let Finished {
        model,
        pieces,
        outputs,
    } = batch;
    let outputs = match outputs {
        Ok(outputs) => outputs,
        Err(error) => {
            for piece in pieces {
                piece.job.refuse(Refusal::Device(error.0.clone()));
                metrics.failed();
            }
            return;
        }
    };
    let actions = model.info.layout.actions as usize;
    let (mut logits, mut values) = (outputs.logits(), outputs.values());
    for piece in pieces {
        let (piece_logits, other_logits) = logits.split_at(logits.len().min(piece.count * actions));
        let (piece_values, other_values) = values.split_at(values.len().min(piece.count));
        (logits, values) = (other_logits, other_values);
        scratch.priors.clear();
        match priors(&piece, piece_logits, piece_values, actions, &mut scratch.priors) {
            Ok(()) => {
                if piece.job.add(&model.info.version, piece_values, &scratch.priors) {
                    metrics.answered(piece.job.positions());
                }
            }
            Err(position) => {
                tracing::error!(
                    version = model.info.version,
                    position,
                    "the model's answer is not finite"
                );
                metrics.not_finite();
                piece.job.refuse(Refusal::NotFinite { position });
            }
        }
    }
}

/// Appends the priors of a piece's legal actions.
///
/// # Errors
/// The first position (of the job) whose value or priors are not finite.
fn priors(
    piece: &Piece,
    logits: &[f32],
    values: &[f32],
    actions: usize,
    priors: &mut Vec<f32>,
) -> Result<(), usize> {
    let rows = logits.chunks(actions).zip(values);
    for (number, (legal, (logits, value))) in piece.legal().zip(rows).enumerate() {
        if !value.is_finite() || !softmax(logits, legal, priors) {
            return Err(piece.first + number);
        }
    }
    Ok(())
}

/// Appends the softmax of `logits` over the actions `legal`. False where it is not finite.
pub fn softmax(logits: &[f32], legal: &[u32], priors: &mut Vec<f32>) -> bool {
    let start = priors.len();
    let mut largest = f32::NEG_INFINITY;
    for &action in legal {
        // Actions are below the model's action count: they were validated.
        let logit = logits.get(action as usize).copied().unwrap_or(f32::NAN);
        if !logit.is_finite() {
            return false;
        }
        largest = largest.max(logit);
        priors.push(logit);
    }
    let appended = priors.get_mut(start..).unwrap_or_default();
    let mut sum = 0.0;
    for prior in appended.iter_mut() {
        *prior = (*prior - largest).exp();
        sum += *prior;
    }
    // The largest logit gives 1, so the sum is at least 1.
    let scale = 1.0 / sum;
    appended.iter_mut().for_each(|prior| *prior *= scale);
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_the_softmax_over_the_legal_actions(logits in prop::collection::vec(-80.0f32..80.0, 1..40), picks in prop::collection::vec(any::<prop::sample::Index>(), 1..20)) {
            let mut legal: Vec<u32> = picks.iter().map(|pick| pick.index(logits.len()) as u32).collect();
            legal.sort_unstable();
            legal.dedup();
            let mut found = vec![9.0];
            prop_assert!(softmax(&logits, &legal, &mut found));
            prop_assert_eq!(found[0], 9.0);
            let exact: Vec<f64> = legal.iter().map(|&action| f64::from(logits[action as usize]).exp()).collect();
            let sum: f64 = exact.iter().sum();
            for (found, exact) in found[1..].iter().zip(&exact) {
                prop_assert!((f64::from(*found) - exact / sum).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn survives_large_logits_and_refuses_what_is_not_finite() {
        let mut found = Vec::new();
        assert!(softmax(&[3e38, -3e38, 3e38], &[0, 1, 2], &mut found));
        assert_eq!(found, [0.5, 0.0, 0.5]);
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(!softmax(&[0.0, wrong], &[0, 1], &mut Vec::new()));
            // An action that is not asked for does no harm.
            assert!(softmax(&[0.0, wrong], &[0], &mut Vec::new()));
        }
    }
}
