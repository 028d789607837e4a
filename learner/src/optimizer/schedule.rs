//! The learning rate by step: a linear warm-up, then constant. Other schedules belong here.

use service::config::LearnerConfig;

/// The learning rate of a step, counted from 0.
pub fn learning_rate(config: &LearnerConfig, step: u64) -> f64 {
    let share = (step + 1) as f64 / config.warmup_steps.max(1) as f64;
    config.learning_rate * share.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_to_its_value_and_stays() {
        let config = LearnerConfig {
            learning_rate: 0.5,
            warmup_steps: 4,
            ..LearnerConfig::default()
        };
        let rates: Vec<f64> = (0..6).map(|step| learning_rate(&config, step)).collect();
        assert_eq!(rates, [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]);
        let at_once = LearnerConfig {
            warmup_steps: 0,
            ..config
        };
        assert_eq!(learning_rate(&at_once, 0), 0.5);
    }
}
