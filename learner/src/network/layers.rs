//! Layers: the forward pass of each, and its folded form for export.

use std::collections::HashMap;

use tch::{Kind, Tensor};

use crate::torch::{TorchError, from_host, to_host};

/// Added to the variance in a normalisation.
const EPSILON: f64 = 1e-5;

/// Choice of the statistics for normalisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Normalise by the batch's statistics, and move the running statistics towards them.
    Train {
        /// Share by which the running statistics move, in (0, 1].
        momentum: f64,
    },
    /// Normalise by the running statistics.
    Evaluate,
    /// As [`Mode::Evaluate`], and make the batch's statistics the running ones, with gain and shift changed so that the layer
    /// computes the same as before. Training by the batch's statistics then begins where evaluation is.
    Calibrate,
}

/// Mode and precision of a forward pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// Training or evaluation.
    pub mode: Mode,
    /// Number type of the tower. Variables, statistics, the heads' fully connected layers and losses are always f32.
    pub kind: Kind,
}

impl Pass {
    /// Pass for evaluation in f32. Exports are compared with it.
    pub const EVALUATE: Self = Self {
        mode: Mode::Evaluate,
        kind: Kind::Float,
    };
}

/// Variables by name, to build layers from.
pub(super) struct NamedTensors<'a>(pub HashMap<&'a str, Tensor>);

impl NamedTensors<'_> {
    pub(super) fn take(&mut self, name: &str) -> Result<Tensor, TorchError> {
        self.0
            .remove(name)
            .ok_or_else(|| TorchError::new(&format!("no variable `{name}`")))
    }
}

/// Batch normalisation (Ioffe and Szegedy, 2015).
#[derive(Debug)]
struct Norm {
    gain: Tensor,
    shift: Tensor,
    mean: Tensor,
    variance: Tensor,
}

/// A convolution without bias, stride 1, that keeps the board's size, and its normalisation.
#[derive(Debug)]
pub(super) struct ConvNorm {
    weight: Tensor,
    norm: Norm,
}

/// Weights and biases of a fully connected layer, or of a convolution with stride 1 that keeps the board's size.
#[derive(Debug)]
pub(super) struct Affine {
    weight: Tensor,
    bias: Tensor,
}

impl Norm {
    /// Takes mean `m'` and variance `v'` of each channel of `sums` as the running statistics, with the gain
    /// `g·√(v'+ε)/√(v+ε)` and the shift `s + (m'−m)·g/√(v+ε)`, which leave the layer's function unchanged.
    fn calibrate(&self, sums: &Tensor) -> Result<(), TorchError> {
        let _guard = tch::no_grad_guard();
        let places = [0i64, 2, 3];
        let sums = sums.f_to_kind(Kind::Float)?;
        let mean = sums.f_mean_dim(places.as_slice(), false, None)?;
        let variance = sums.f_var_dim(places.as_slice(), false, false)?;
        let deviation = |variance: &Tensor| variance.f_add_scalar(EPSILON)?.f_sqrt();
        let scale = self.gain.f_div(&deviation(&self.variance)?)?;
        let shift = self.shift.f_add(&mean.f_sub(&self.mean)?.f_mul(&scale)?)?;
        for (own, new) in [
            (&self.gain, scale.f_mul(&deviation(&variance)?)?),
            (&self.shift, shift),
            (&self.mean, mean),
            (&self.variance, variance),
        ] {
            own.shallow_clone().f_copy_(&new)?;
        }
        Ok(())
    }
}

impl ConvNorm {
    pub(super) fn new(source: &mut NamedTensors<'_>, name: &str) -> Result<Self, TorchError> {
        Ok(Self {
            weight: source.take(&format!("{name}.conv.weight"))?,
            norm: Norm {
                gain: source.take(&format!("{name}.norm.gain"))?,
                shift: source.take(&format!("{name}.norm.shift"))?,
                mean: source.take(&format!("{name}.norm.mean"))?,
                variance: source.take(&format!("{name}.norm.variance"))?,
            },
        })
    }

    pub(super) fn forward(&self, board: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let norm = &self.norm;
        let sums = convolve(board, &self.weight, None, pass.kind)?;
        let (training, momentum) = match pass.mode {
            Mode::Train { momentum } => (true, momentum),
            Mode::Evaluate => (false, 0.0),
            Mode::Calibrate => {
                norm.calibrate(&sums)?;
                (false, 0.0)
            }
        };
        Ok(sums.f_batch_norm(
            Some(&norm.gain),
            Some(&norm.shift),
            Some(&norm.mean),
            Some(&norm.variance),
            training,
            momentum,
            EPSILON,
            true,
        )?)
    }

    /// Takes the weights of a folded convolution. The normalisation does nothing then: its gain is 1 and its shift is the bias.
    pub(super) fn unfold(&self, weights: &[f32], bias: &[f32]) -> Result<(), TorchError> {
        let norm = &self.norm;
        overwrite(&self.weight, weights)?;
        overwrite(&norm.shift, bias)?;
        for (variable, value) in [
            (&norm.gain, 1.0),
            (&norm.mean, 0.0),
            (&norm.variance, 1.0 - EPSILON),
        ] {
            overwrite(variable, &vec![value as f32; bias.len()])?;
        }
        Ok(())
    }

    /// Folds convolution and normalisation into one convolution. Returns its weights `w·g/√(v+ε)` and its biases `s − m·g/√(v+ε)`.
    pub(super) fn fold(&self) -> Result<(Vec<f32>, Vec<f32>), TorchError> {
        let mut weights = to_host(&self.weight)?;
        let (gain, shift) = (to_host(&self.norm.gain)?, to_host(&self.norm.shift)?);
        let (mean, variance) = (to_host(&self.norm.mean)?, to_host(&self.norm.variance)?);
        let mut bias = Vec::with_capacity(gain.len());
        let per_output = weights.len() / gain.len().max(1);
        for (kernels, (((gain, shift), mean), variance)) in weights
            .chunks_mut(per_output.max(1))
            .zip(gain.iter().zip(&shift).zip(&mean).zip(&variance))
        {
            let scale = f64::from(*gain) / (f64::from(*variance) + EPSILON).sqrt();
            for weight in kernels {
                *weight = (f64::from(*weight) * scale) as f32;
            }
            bias.push((f64::from(*shift) - f64::from(*mean) * scale) as f32);
        }
        Ok((weights, bias))
    }
}

impl Affine {
    pub(super) fn new(source: &mut NamedTensors<'_>, name: &str) -> Result<Self, TorchError> {
        Ok(Self {
            weight: source.take(&format!("{name}.weight"))?,
            bias: source.take(&format!("{name}.bias"))?,
        })
    }

    /// Computes the convolution.
    pub(super) fn convolve(&self, board: &Tensor, kind: Kind) -> Result<Tensor, TorchError> {
        convolve(board, &self.weight, Some(&self.bias), kind)
    }

    /// Computes the fully connected layer.
    pub(super) fn forward(&self, values: &Tensor, kind: Kind) -> Result<Tensor, TorchError> {
        let weight = self.weight.f_to_kind(kind)?;
        let bias = self.bias.f_to_kind(kind)?;
        Ok(values.f_to_kind(kind)?.f_linear(&weight, Some(&bias))?)
    }

    /// Computes the fully connected layer over each row of `own` joined with the row `of` of `shared`, in f32. The part over `shared` is computed
    /// once for each of its rows.
    pub(super) fn forward_beside(
        &self,
        own: &Tensor,
        shared: &Tensor,
        of: &Tensor,
        kind: Kind,
    ) -> Result<Tensor, TorchError> {
        let weight = self.weight.f_to_kind(kind)?;
        let (inputs, first) = (weight.size2()?.1, own.size2()?.1);
        let of_own = weight.f_narrow(1, 0, first)?;
        let of_shared = weight.f_narrow(1, first, inputs - first)?;
        let own = own.f_to_kind(kind)?.f_linear(&of_own, None::<&Tensor>)?;
        let bias = self.bias.f_to_kind(kind)?;
        let shared = shared.f_to_kind(kind)?.f_linear(&of_shared, Some(&bias))?;
        Ok(own
            .f_to_kind(Kind::Float)?
            .f_add(&gather(&shared.f_to_kind(Kind::Float)?, of)?)?)
    }

    pub(super) fn unfold(&self, weights: &[f32], bias: &[f32]) -> Result<(), TorchError> {
        overwrite(&self.weight, weights)?;
        overwrite(&self.bias, bias)
    }

    pub(super) fn fold(&self) -> Result<(Vec<f32>, Vec<f32>), TorchError> {
        Ok((to_host(&self.weight)?, to_host(&self.bias)?))
    }
}

/// Overwrites a variable with as many numbers, row-major.
fn overwrite(variable: &Tensor, numbers: &[f32]) -> Result<(), TorchError> {
    let _guard = tch::no_grad_guard();
    let numbers = from_host(numbers, &variable.size(), variable.device())?;
    variable.shallow_clone().f_copy_(&numbers)?;
    Ok(())
}

/// Returns the rows `at` (integers, any dimensions) of `table`. The gradient of a row is the sum over its uses, in a fixed order.
pub(super) fn gather(table: &Tensor, at: &Tensor) -> Result<Tensor, TorchError> {
    Ok(Tensor::f_embedding(table, at, -1, false, false)?)
}

fn convolve(
    board: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    kind: Kind,
) -> Result<Tensor, TorchError> {
    let kernel = weight.size4()?.2;
    let weight = weight.f_to_kind(kind)?;
    let bias = bias.map(|bias| bias.f_to_kind(kind)).transpose()?;
    Ok(board.f_conv2d(&weight, bias.as_ref(), 1, kernel / 2, 1, 1)?)
}
