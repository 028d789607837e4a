//! The learning rate by step: a linear warm-up, a plateau, and a cool-down to the last rate, which is then kept.
//!
//! A run without an end stays on the plateau. One that is to end well cools down over its last steps; a cosine over
//! the whole run is a cool-down that begins where the warm-up ends (Loshchilov and Hutter, 2017).

use std::f64::consts::PI;

use config::{Cooldown, LearnerConfig};

/// The learning rate of a step, counted from 0.
pub fn learning_rate(config: &LearnerConfig, step: u64) -> f64 {
    let warm = ((step + 1) as f64 / config.warmup_steps.max(1) as f64).min(1.0);
    if config.cooldown_steps == 0 {
        return config.learning_rate * warm;
    }
    let past = step.saturating_sub(config.cooldown_from) as f64 / config.cooldown_steps as f64;
    let past = past.min(1.0);
    // Share of the way from the last rate back to the plateau's.
    let left = match config.cooldown {
        Cooldown::Linear => 1.0 - past,
        Cooldown::Cosine => 0.5 * (1.0 + (PI * past).cos()),
    };
    let last = config.last_learning_rate;
    warm * (last + (config.learning_rate - last) * left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(config: &LearnerConfig, steps: u64) -> Vec<f64> {
        (0..steps).map(|step| learning_rate(config, step)).collect()
    }

    #[test]
    fn it_rises_to_its_value_and_stays() {
        let config = LearnerConfig {
            learning_rate: 0.5,
            warmup_steps: 4,
            ..LearnerConfig::default()
        };
        assert_eq!(rates(&config, 6), [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]);
        let at_once = LearnerConfig {
            warmup_steps: 0,
            ..config
        };
        assert_eq!(learning_rate(&at_once, 0), 0.5);
    }

    #[test]
    fn it_cools_down_to_the_last_rate() {
        let linear = LearnerConfig {
            learning_rate: 0.5,
            warmup_steps: 2,
            cooldown: Cooldown::Linear,
            cooldown_from: 4,
            cooldown_steps: 4,
            last_learning_rate: 0.1,
            ..LearnerConfig::default()
        };
        let expected = [0.25, 0.5, 0.5, 0.5, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1];
        for (rate, expected) in rates(&linear, 10).into_iter().zip(expected) {
            assert!((rate - expected).abs() < 1e-12, "{rate} {expected}");
        }
        let cosine = LearnerConfig {
            cooldown: Cooldown::Cosine,
            ..linear
        };
        let rates = rates(&cosine, 12);
        assert!((rates[6] - 0.3).abs() < 1e-12 && (rates[11] - 0.1).abs() < 1e-12);
        assert!(rates[4..9].is_sorted_by(|left, right| left > right), "{rates:?}");
    }
}
