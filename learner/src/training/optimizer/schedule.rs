//! The learning rate by step: a linear warm-up, then constant. The published weights are an average over steps, which takes
//! the place of a falling learning rate in runs without an end.

use config::LearnerConfig;

/// Returns the learning rate of a step, counted from 0.
pub fn learning_rate(config: &LearnerConfig, step: u64) -> f64 {
    let warm = ((step + 1) as f64 / config.warmup_steps.max(1) as f64).min(1.0);
    config.learning_rate * warm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learning_rate_rises_linearly_and_then_stays() {
        let config = LearnerConfig {
            learning_rate: 0.5,
            warmup_steps: 4,
            ..LearnerConfig::default()
        };
        let rates: Vec<f64> = (0..6).map(|step| learning_rate(&config, step)).collect();
        assert_eq!(rates, [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]);
        let without_warmup = LearnerConfig {
            warmup_steps: 0,
            ..config
        };
        assert_eq!(learning_rate(&without_warmup, 0), 0.5);
    }
}
