//! [`Learning`]: losses of training and of held-out games, from `learner/metrics.jsonl`.

use std::path::Path;

use launcher::losses::{self, Line};
use service::figures::Tail;

use super::series::Series;

/// Loss of one head over the steps of training.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Loss in training.
    pub training: Series,
    /// Loss on games that are held out of training.
    pub held_out: Series,
    /// Loss on held-out games less that on games that were trained on, at the last validation.
    pub gap: Option<f64>,
}

/// Losses over the steps of training.
#[derive(Debug)]
pub struct Learning {
    tail: Tail,
    /// Policy: divergence of the network's policy from the visits, in nats.
    pub policy: Head,
    /// Value: the loss that the value is trained with.
    pub value: Head,
}

impl Learning {
    /// Reads the figures of the run in `folder` with [`Learning::refresh`].
    pub fn new(folder: &Path) -> Self {
        Self::of(Tail::new(folder.join(losses::FILE)))
    }

    /// Reads the figures in this file with [`Learning::refresh`].
    pub fn of(tail: Tail) -> Self {
        Self {
            tail,
            policy: Head::default(),
            value: Head::default(),
        }
    }

    /// Reads what was written since the last call.
    pub fn refresh(&mut self) {
        for line in self.tail.read_all::<Line>() {
            let (x, at_ms) = (line.step as f64, line.time_ms);
            if line.steps > 0 {
                // No network can be better than the entropy of the targets: without it, 0 is the best loss.
                let policy = line
                    .policy_loss
                    .map(|loss| loss - line.target_entropy.unwrap_or(0.0));
                self.policy.training.push(x, at_ms, policy);
                self.value.training.push(x, at_ms, line.value_loss);
            }
            if let Some(validation) = line.validation {
                self.policy.held_out.push(x, at_ms, validation.held_out.policy);
                self.value.held_out.push(x, at_ms, validation.held_out.value);
                self.policy.gap = validation.policy_gap();
                self.value.gap = validation.value_gap();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::figures::series::newest;

    #[test]
    fn losses_and_validations_are_read_and_other_fields_are_ignored() {
        let run = tempfile::tempdir().unwrap();
        fs::create_dir(run.path().join("learner")).unwrap();
        let lines = concat!(
            r#"{"step":10,"steps":10,"policy_loss":2.5,"value_loss":0.9,"target_entropy":1.5,"new":1}"#,
            "\n",
            r#"{"step":10,"steps":0,"policy_loss":0,"value_loss":0,"target_entropy":0,"checkpoint":"v","#,
            r#""validation":{"held_out":{"policy":0.75,"value":0.5},"trained":{"policy":0.5,"value":0.25}}}"#,
            "\n",
            r#"{"step":20,"steps":10,"policy_loss":null,"value_loss":0.8,"target_entropy":1.5}"#,
            "\n",
        );
        fs::write(run.path().join("learner/metrics.jsonl"), lines).unwrap();
        let mut learning = Learning::new(run.path());
        learning.refresh();
        assert_eq!(learning.policy.training.points()[0].mean, 1.0);
        assert!(learning.policy.training.points()[1].mean.is_nan());
        assert_eq!(learning.value.training.points().len(), 2);
        assert_eq!(newest(learning.policy.held_out.points()).unwrap().mean, 0.75);
        assert_eq!(
            (learning.policy.gap, learning.value.gap),
            (Some(0.25), Some(0.25))
        );
    }
}
