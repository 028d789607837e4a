//! Test of the number of samples for each position: the learner waits for positions, and publishes its last steps when it ends. The test
//! is a binary of its own, because metrics are global to a process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "learner/common/mod.rs"]
mod common;

use std::time::Duration;

use checkpoints::{LATEST, MODEL};
use common::run::Place;
use metrics_exporter_prometheus::PrometheusBuilder;
use test_support::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_learner_trains_as_far_as_the_ratio_allows_and_publishes_at_both_ends() {
    let page = PrometheusBuilder::new().install_recorder().unwrap();
    let place = Place::new(0).await;
    let state = &place.store;
    state.holds_out.store(true, std::sync::atomic::Ordering::SeqCst);
    let learner = place.learner();
    let random = learner.reaches(0).await;
    assert_eq!(
        (random.draft.positions_seen, random.draft.parent.as_ref()),
        (0, None)
    );
    assert_eq!(
        (random.draft.game.as_str(), random.draft.actions),
        ("paco-sako", 132)
    );
    assert!(state.handed_out.lock().is_empty());

    // 2 × 130 samples are 8 steps of 32.
    state.insert(130);
    until(|| page.render().contains("minuet_learner_step 8")).await;
    // The learner requests more positions twice a second; three requests change nothing.
    tokio::time::sleep(Duration::from_millis(1600)).await;
    assert_eq!(*state.handed_out.lock(), (0..8).collect::<Vec<_>>());

    assert_eq!(
        learner.reaches(6).await.draft.step,
        6,
        "later steps are not published yet"
    );
    let page = page.render();
    for line in [
        "minuet_learner_steps_total 8",
        "minuet_learner_samples_total 256",
        "minuet_learner_checkpoints_total 2",
        "minuet_learner_checkpoint_step 6",
        "minuet_learner_waiting 1",
        "minuet_learner_positions_inserted 130",
        "minuet_learner_loss{head=\"policy\"} ",
        "minuet_learner_loss{head=\"value\"} ",
        "minuet_learner_samples_per_position_ratio 1.96",
    ] {
        assert!(page.contains(line), "{line} is missing in\n{page}");
    }
    for gauge in ["minuet_learner_validation_loss", "minuet_learner_validation_gap"] {
        for head in ["policy", "value"] {
            let name = format!("{gauge}{{head=\"{head}\"}} ");
            let line = page.lines().find_map(|line| line.strip_prefix(&name));
            let number: f64 = line.unwrap_or_else(|| panic!("{name}\n{page}")).parse().unwrap();
            assert!(number.is_finite(), "{name}{number}");
        }
    }

    let repository = learner.repository.clone();
    let last = learner.stop().await;
    assert_eq!(
        (last.draft.step, last.draft.positions_seen, last.draft.games_seen),
        (8, 256, 13)
    );
    assert_eq!(repository.resolve(LATEST).await.unwrap(), last);
    let list = repository.list().await.unwrap();
    let steps: Vec<u64> = list.iter().map(|manifest| manifest.draft.step).collect();
    assert_eq!(steps, [0, 6, 8]);
    for (parent, child) in list.iter().zip(&list[1..]) {
        assert_eq!(child.draft.parent.as_ref(), Some(&parent.version));
    }
    let file = repository.fetch(&last, MODEL).await.unwrap();
    let metadata = onnx::metadata_of(&file).unwrap();
    assert_eq!(metadata.step, 8);
    assert_eq!(serde_json::to_value(metadata.layout).unwrap(), last.draft.layout);
    let lines = std::fs::read_to_string(place.home.path().join("learner/metrics.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    // The random network is not validated, because it was not trained.
    assert!(lines[0].get("validation").is_none());
    let validation = &lines[1]["validation"];
    for side in ["held_out", "trained"] {
        for head in ["policy", "value"] {
            assert!(validation[side][head].as_f64().unwrap() > 0.0, "{}", lines[1]);
        }
    }
}
