//! Milestones: labels of checkpoints that are kept permanently, at training times that double.
//!
//! Pruning keeps checkpoints with a label. So a run of any length keeps a few checkpoints of every age, and people can play against the
//! network of the first minute: `minuet play runs/x@minute-1`.

use std::time::Duration;

/// Label of a run's first checkpoint, made before the first step of training.
pub const FIRST: &str = "minute-0";

/// Labels of the milestones, with the minutes of training from which a checkpoint gets them, ascending.
const MILESTONES: [(&str, u64); 19] = [
    (FIRST, 0),
    ("minute-1", 1),
    ("minute-2", 2),
    ("minute-4", 4),
    ("minute-8", 8),
    ("minute-15", 15),
    ("minute-30", 30),
    ("hour-1", 60),
    ("hour-2", 2 * 60),
    ("hour-4", 4 * 60),
    ("hour-8", 8 * 60),
    ("hour-16", 16 * 60),
    ("day-1", 24 * 60),
    ("day-2", 2 * 24 * 60),
    ("day-4", 4 * 24 * 60),
    ("day-8", 8 * 24 * 60),
    ("day-16", 16 * 24 * 60),
    ("day-32", 32 * 24 * 60),
    ("day-64", 64 * 24 * 60),
];

/// Returns the label that a checkpoint gets after `trained` of training, if the checkpoint before it had `before` (`None`: it is the
/// first). If several milestones lie between the two, returns the last one.
pub fn reached(before: Option<Duration>, trained: Duration) -> Option<&'static str> {
    let Some(before) = before else {
        return Some(FIRST);
    };
    let passed = |minutes: u64| before < minutes_of(minutes) && minutes_of(minutes) <= trained;
    let found = MILESTONES.iter().rfind(|(_, minutes)| passed(*minutes));
    found.map(|(label, _)| *label)
}

/// Returns the training time from which a checkpoint gets a label; `None` if the label is not that of a milestone.
pub(crate) fn time(label: &str) -> Option<Duration> {
    let found = MILESTONES.iter().find(|(known, _)| *known == label);
    found.map(|(_, minutes)| minutes_of(*minutes))
}

/// Returns the name of a milestone for people, e.g. `minute 8`; `None` if the label is not that of a milestone.
pub fn name(label: &str) -> Option<String> {
    let is_milestone = MILESTONES.iter().any(|(known, _)| *known == label);
    is_milestone.then(|| label.replace('-', " "))
}

const fn minutes_of(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_checkpoint_after_a_time_gets_its_label() {
        let seconds = Duration::from_secs;
        assert_eq!(reached(None, seconds(0)), Some(FIRST));
        assert_eq!(reached(Some(seconds(0)), seconds(59)), None);
        assert_eq!(reached(Some(seconds(59)), seconds(60)), Some("minute-1"));
        assert_eq!(reached(Some(seconds(60)), seconds(119)), None);
        // A slow machine publishes every five minutes.
        assert_eq!(reached(Some(seconds(10)), seconds(310)), Some("minute-4"));
        assert_eq!(reached(Some(seconds(0)), Duration::MAX), Some("day-64"));
    }

    #[test]
    fn labels_are_in_order_and_have_names() {
        assert!(MILESTONES.is_sorted_by_key(|(_, minutes)| *minutes));
        assert_eq!(name("minute-8").unwrap(), "minute 8");
        assert_eq!(name("best"), None);
        for (label, _) in MILESTONES {
            crate::version::check_name("label", label).unwrap();
        }
    }
}
