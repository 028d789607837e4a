//! Random weights of single layers.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use crate::weights::{Conv, GlobalPooling, Linear};

/// Random generator for the weights of layers.
pub(crate) struct Draw(pub(crate) ChaCha8Rng);

impl Draw {
    pub(crate) fn conv(&mut self, outputs: usize, inputs: usize, kernel: usize, gain: f32) -> Conv {
        let taps = inputs * kernel * kernel;
        Conv {
            outputs,
            inputs,
            kernel,
            weights: self.weights(outputs * taps, taps, gain),
            bias: self.uniform(outputs, 0.1),
        }
    }

    /// Draws the pooling beside a 3×3 convolution of `filters` channels, `channels` of which are pooled.
    pub(crate) fn pooling(&mut self, filters: usize, channels: usize) -> Option<GlobalPooling> {
        (channels > 0).then(|| GlobalPooling {
            conv: self.conv(channels, filters, 3, 1.0),
            linear: self.linear(filters.saturating_sub(channels), 2 * channels, 0.5),
        })
    }

    pub(crate) fn linear(&mut self, outputs: usize, inputs: usize, gain: f32) -> Linear {
        Linear {
            outputs,
            inputs,
            weights: self.weights(outputs * inputs, inputs, gain),
            bias: self.uniform(outputs, 0.1),
        }
    }

    /// Draws uniform numbers with He's standard deviation √(2 / fan-in), times `gain`.
    fn weights(&mut self, count: usize, fan_in: usize, gain: f32) -> Vec<f32> {
        let bound = gain * (6.0 / fan_in.max(1) as f32).sqrt();
        self.uniform(count, bound)
    }

    /// Draws uniform numbers in [-bound, bound).
    pub(crate) fn uniform(&mut self, count: usize, bound: f32) -> Vec<f32> {
        (0..count)
            .map(|_| self.0.random_range(-1.0_f32..1.0) * bound)
            .collect()
    }
}
