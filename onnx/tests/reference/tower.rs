//! The tower, layer by layer.

use onnx::{
    Kind, Layer, TowerWeights,
    network::{Step, TowerLayer},
};

/// Evaluates one position: `planes` is `[planes][squares]`. Returns the logits and the value.
pub fn evaluate(weights: &TowerWeights, planes: &[f32]) -> (Vec<f32>, f32) {
    let shape = &weights.shape;
    let board = walk(weights, &shape.trunk(), planes);
    let [logits, output] = [shape.policy(), shape.value()].map(|steps| walk(weights, &steps, &board));
    let value = match output[..] {
        [output] => output.tanh(),
        [win, draw, loss] => {
            let [win, draw, loss] = [win, draw, loss].map(|logit| f64::from(logit).exp());
            ((win - loss) / (win + draw + loss)) as f32
        }
        _ => f32::NAN,
    };
    (logits, value)
}

fn walk(weights: &TowerWeights, steps: &[Step], board: &[f32]) -> Vec<f32> {
    let (mut now, mut kept) = (board.to_vec(), Vec::new());
    for step in steps {
        match step {
            Step::Layer(step) => now = apply(weights, step, &now),
            // A board is a list already.
            Step::Flatten(..) => {}
            Step::Keep => kept.clone_from(&now),
            Step::Add(_) => now = relu(now.iter().zip(&kept).map(|(new, skip)| new + skip).collect()),
            Step::Append(step) => {
                let both = means_and_maxima(&kept, weights.shape.squares());
                now.extend(layer(weights.layer(&step.shape.name), weights.shape.width, &both));
            }
        }
    }
    now
}

fn apply(weights: &TowerWeights, step: &TowerLayer, values: &[f32]) -> Vec<f32> {
    let width = weights.shape.width;
    let squares = weights.shape.squares();
    let name = &step.shape.name;
    let mut own = layer(weights.layer(name), width, values);
    if step.pooled > 0 {
        let seen = relu(layer(weights.layer(&format!("{name}.pooled")), width, values));
        let both = means_and_maxima(&seen, squares);
        let bias = layer(weights.layer(&format!("{name}.pooled.linear")), width, &both);
        for (plane, bias) in own.chunks_mut(squares).zip(bias) {
            plane.iter_mut().for_each(|value| *value += bias);
        }
    }
    if step.has_relu { relu(own) } else { own }
}

/// Returns the means of all planes of a board, then their maxima.
fn means_and_maxima(board: &[f32], squares: usize) -> Vec<f32> {
    let planes = || board.chunks(squares);
    let means = planes().map(|plane| plane.iter().sum::<f32>() / squares as f32);
    let maxima = planes().map(|plane| plane.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    means.chain(maxima).collect()
}

/// Computes a layer. `width` is the number of files of the boards that a convolution takes.
pub fn layer(layer: &Layer, width: usize, values: &[f32]) -> Vec<f32> {
    match layer.shape.kind {
        Kind::Conv(kernel) => conv(layer, kernel, width, values),
        Kind::Linear | Kind::LinearAsConv | Kind::Table => linear(layer, values),
    }
}

fn conv(layer: &Layer, kernel: usize, width: usize, board: &[f32]) -> Vec<f32> {
    let squares = board.len() / layer.shape.inputs.max(1);
    let (height, reach) = (squares / width.max(1), kernel as isize / 2);
    let mut result = Vec::with_capacity(layer.shape.outputs * squares);
    for (kernels, &bias) in layer.weights.chunks(layer.shape.taps().max(1)).zip(&layer.bias) {
        for square in 0..squares {
            let mut sum = f64::from(bias);
            for (plane, taps) in board.chunks(squares).zip(kernels.chunks(kernel * kernel)) {
                for (tap, &weight) in taps.iter().enumerate() {
                    let rank = (square / width + tap / kernel).checked_add_signed(-reach);
                    let file = (square % width + tap % kernel).checked_add_signed(-reach);
                    if let (Some(rank), Some(file)) = (rank, file)
                        && rank < height
                        && file < width
                    {
                        sum += f64::from(weight) * f64::from(plane[width * rank + file]);
                    }
                }
            }
            result.push(sum as f32);
        }
    }
    result
}

fn linear(layer: &Layer, values: &[f32]) -> Vec<f32> {
    let rows = layer.weights.chunks(layer.shape.inputs.max(1));
    let sums = rows.zip(&layer.bias).map(|(row, &bias)| {
        let products = row.iter().zip(values);
        let sum: f64 = products
            .map(|(&weight, &value)| f64::from(weight) * f64::from(value))
            .sum();
        (f64::from(bias) + sum) as f32
    });
    sums.collect()
}

pub fn relu(mut values: Vec<f32>) -> Vec<f32> {
    values.iter_mut().for_each(|value| *value = value.max(0.0));
    values
}
