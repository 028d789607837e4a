//! A second implementation of a tower, which follows the formulas. Tests compare runtimes and exports with it. Sums are computed
//! in f64, so that its rounding error is negligible.

use games::planes::SQUARES;

use crate::weights::{Block, Conv, GlobalPooling, Linear, PolicyHead, TowerWeights};

/// Evaluates one position: `planes` is `[planes][64]`. Returns the logits and the value.
pub fn evaluate(weights: &TowerWeights, planes: &[f32]) -> (Vec<f32>, f32) {
    let (logits, output) = outputs(weights, planes);
    let value = match output[..] {
        [output] => output.tanh(),
        [_, _, _] => {
            let [win, _, loss] = softmax(&output);
            win - loss
        }
        _ => f32::NAN,
    };
    (logits, value)
}

/// Returns the probabilities of a win, a draw and a loss; `None` for a network without them.
pub fn outcomes(weights: &TowerWeights, planes: &[f32]) -> Option<[f32; 3]> {
    let (_, output) = outputs(weights, planes);
    (output.len() == 3).then(|| softmax(&output))
}

fn softmax(logits: &[f32]) -> [f32; 3] {
    let shares = [0, 1, 2].map(|at: usize| logits.get(at).map_or(0.0, |&logit| f64::from(logit).exp()));
    let sum: f64 = shares.iter().sum();
    shares.map(|share| (share / sum) as f32)
}

/// Returns the policy's logits, and the one or three outputs of the value head.
fn outputs(weights: &TowerWeights, planes: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let mut board = relu(conv(&weights.input, planes));
    for weights in &weights.blocks {
        board = block(weights, &board);
    }
    let logits = match &weights.policy {
        PolicyHead::Dense {
            conv: reduce,
            linear: last,
        } => linear(last, &relu(conv(reduce, &board))),
        PolicyHead::Planes {
            conv: same,
            pooling,
            planes,
        } => conv(planes, &pooled(same, pooling.as_ref(), &board)),
    };
    let head = &weights.value;
    let hidden = relu(linear(&head.hidden, &relu(conv(&head.conv, &board))));
    (logits, linear(&head.output, &hidden))
}

fn pooled(weights: &Conv, pooling: Option<&GlobalPooling>, board: &[f32]) -> Vec<f32> {
    let mut own = conv(weights, board);
    if let Some(pooling) = pooling {
        let seen = relu(conv(&pooling.conv, board));
        let planes = || seen.chunks(SQUARES);
        let means = planes().map(|plane| plane.iter().sum::<f32>() / SQUARES as f32);
        let maxima = planes().map(|plane| plane.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        let bias = linear(&pooling.linear, &means.chain(maxima).collect::<Vec<_>>());
        for (plane, bias) in own.chunks_mut(SQUARES).zip(bias) {
            plane.iter_mut().for_each(|value| *value += bias);
        }
    }
    relu(own)
}

fn block(weights: &Block, board: &[f32]) -> Vec<f32> {
    let first = pooled(&weights.first, weights.pooling.as_ref(), board);
    let second = conv(&weights.second, &first);
    relu(second.iter().zip(board).map(|(new, skip)| new + skip).collect())
}

pub(crate) fn conv(weights: &Conv, board: &[f32]) -> Vec<f32> {
    let (kernel, reach) = (weights.kernel, weights.kernel as isize / 2);
    let mut result = Vec::with_capacity(weights.outputs * SQUARES);
    for (kernels, &bias) in weights
        .weights
        .chunks(weights.inputs * kernel * kernel)
        .zip(&weights.bias)
    {
        for square in 0..SQUARES as isize {
            let mut sum = f64::from(bias);
            for (plane, taps) in board.chunks(SQUARES).zip(kernels.chunks(kernel * kernel)) {
                for (tap, &weight) in taps.iter().enumerate() {
                    let rank = square / 8 + (tap / kernel) as isize - reach;
                    let file = square % 8 + (tap % kernel) as isize - reach;
                    if (0..8).contains(&rank) && (0..8).contains(&file) {
                        sum += f64::from(weight) * f64::from(plane[(8 * rank + file) as usize]);
                    }
                }
            }
            result.push(sum as f32);
        }
    }
    result
}

pub(crate) fn linear(weights: &Linear, values: &[f32]) -> Vec<f32> {
    weights
        .weights
        .chunks(weights.inputs)
        .zip(&weights.bias)
        .map(|(row, &bias)| {
            let sum: f64 = row
                .iter()
                .zip(values)
                .map(|(&weight, &value)| f64::from(weight) * f64::from(value))
                .sum();
            (f64::from(bias) + sum) as f32
        })
        .collect()
}

pub(crate) fn relu(mut values: Vec<f32>) -> Vec<f32> {
    values.iter_mut().for_each(|value| *value = value.max(0.0));
    values
}
