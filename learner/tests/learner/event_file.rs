//! TensorBoard's own reader reads the learner's event files.

use std::process::Command;

use service::figures::EventFile;

const READ: &str = r"
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
tags = events.Tags()['scalars']
print(json.dumps({tag: [[event.step, event.value] for event in events.Scalars(tag)] for tag in tags}))
";

#[test]
fn tensorboard_reads_the_scalars() {
    let Some(python) = test_support::python("tensorboard") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut events = EventFile::create(folder.path()).unwrap();
    for step in 1..=3 {
        events
            .scalars(
                step,
                &[("loss/policy", 4.0 / step as f64), ("learning_rate", 0.5)],
            )
            .unwrap();
    }
    let done = Command::new(python)
        .args(["-c", READ])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let read: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        read,
        serde_json::json!({
            "loss/policy": [[1, 4.0], [2, 2.0], [3, f64::from(4.0_f32 / 3.0)]],
            "learning_rate": [[1, 0.5], [2, 0.5], [3, 0.5]],
        })
    );
}
