//! Tests of the whole learner, with a replay store over gRPC and a folder of checkpoints.

use std::{fs, path::Path, sync::atomic::Ordering};

use crate::common::{
    all_parts,
    run::{Learner, Place},
    store::State,
};
use checkpoints::{LATEST, LeaseTimes, MODEL, Manifest, WEIGHTS};
use config::{GameConfig, Precision};
use learner::publishing::lease::LearnerFolder;
use test_support::until;

fn digests(manifest: &Manifest) -> Vec<&str> {
    manifest.files.values().map(|file| file.sha256.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_changes_no_bit() {
    let generator = GameConfig {
        name: "generator".into(),
        options: 0,
        ..GameConfig::default()
    };
    for (game, with_all_parts) in [
        (GameConfig::default(), false),
        (GameConfig::default(), true),
        (generator, false),
    ] {
        let place = async |positions| {
            let state = State {
                game: game.clone(),
                ..State::default()
            };
            Place::with(state, positions).await
        };
        let start = |place: &Place| {
            let mut config = place.config();
            config.game = game.clone();
            if with_all_parts {
                config.model = all_parts(&config.model);
            }
            Learner::start(config)
        };
        let straight = place(192).await;
        let learner = start(&straight);
        learner.reaches(12).await;
        let straight_end = learner.stop().await;

        let place = place(96).await;
        let learner = start(&place);
        learner.reaches(6).await;
        let half = learner.stop().await;
        assert_eq!(half.draft.step, 6);
        place.store.insert(96);
        let learner = start(&place);
        learner.reaches(12).await;
        let end = learner.stop().await;
        assert_eq!(end.draft.step, 12);
        assert_eq!(end.version, straight_end.version);
        assert_eq!(digests(&end), digests(&straight_end));
        assert_ne!(digests(&half), digests(&end));
        // No batch was drawn twice.
        assert_eq!(*place.store.handed_out.lock(), (0..12).collect::<Vec<_>>());
    }
}

/// The checkpoint from which training resumes says that it was trained for a moment less than eight minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn milestones_get_labels_that_protect_them_and_time_goes_on_after_a_restart() {
    let place = Place::new(96).await;
    let mut config = place.config();
    config.checkpoints.keep = 1;
    config.checkpoints.keep_for_games = 0;
    let learner = Learner::start(config.clone());
    learner.reaches(6).await;
    let repository = learner.repository.clone();
    let half = learner.stop().await;
    assert!(half.draft.trained_ms > 0);
    let path = Path::new(&config.checkpoints.store).join(format!("versions/{}/manifest.json", half.version));
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["trained_ms"] = 479_999.into();
    fs::write(&path, manifest.to_string()).unwrap();

    place.store.insert(96);
    let learner = Learner::start(config);
    learner.reaches(12).await;
    let end = learner.stop().await;
    assert!(end.draft.trained_ms >= 480_000);
    let labels = repository.labels().await.unwrap();
    assert_eq!(labels["minute-0"].step(), 0);
    assert_eq!(labels["minute-8"], end.version);
    assert_eq!(labels.len(), 3, "{labels:?}");
    let kept = repository.list().await.unwrap();
    let steps: Vec<u64> = kept.iter().map(|manifest| manifest.draft.step).collect();
    assert_eq!(steps, [0, 12], "the newest one and milestones");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn training_survives_a_store_that_is_unavailable_or_sends_invalid_batches() {
    let place = Place::without_store().await;
    let state = &place.store;
    let learner = place.learner();
    learner.reaches(0).await;

    state.breaks.store(true, Ordering::SeqCst);
    state.is_damaged.store(true, Ordering::SeqCst);
    state.insert(192);
    place.listen().await;
    until(|| state.handed_out.lock().len() >= 2).await;
    state.is_damaged.store(false, Ordering::SeqCst);
    learner.reaches(6).await;
    state.breaks.store(false, Ordering::SeqCst);
    learner.reaches(12).await;
    learner.stop().await;
    // Every number is drawn once and in order; the damaged batches are skipped.
    let handed_out = state.handed_out.lock().clone();
    assert_eq!(handed_out, (0..handed_out.len() as u64).collect::<Vec<_>>());
    assert!(handed_out.len() >= 14);
}

/// A store with `replay.min_uses` holds games back while positions are sampled too rarely, so it must know that the learner waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_learner_tells_the_store_that_it_waits_for_positions() {
    let place = Place::new(20).await;
    place.store.held_back.store(172, Ordering::SeqCst);
    let learner = place.learner();
    learner.reaches(12).await;
    learner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_left_behind_is_moved_and_a_damaged_checkpoint_is_refused() {
    let place = Place::new(96).await;
    let learner = place.learner();
    let repository = learner.repository.clone();
    let random = learner.reaches(0).await;
    let newest = learner.reaches(6).await;
    learner.stop().await;

    // This is the state after a crash between the checkpoint and its label.
    repository.set_label(LATEST, &random.version).await.unwrap();
    let learner = place.learner();
    assert_eq!(learner.reaches(6).await.version, newest.version);
    assert_eq!(learner.stop().await.version, newest.version);

    let folder = place
        .home
        .path()
        .join("checkpoints/versions")
        .join(newest.version.as_str());
    let file = folder.join(WEIGHTS);
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let reason = place.learner().fails().await;
    assert!(
        reason.contains("weights.safetensors` is damaged") && reason.contains("remove its folder"),
        "{reason}"
    );
    fs::remove_dir_all(&folder).unwrap();
    let learner = place.learner();
    assert_eq!(
        learner.reaches(6).await.version,
        newest.version,
        "the checkpoint is made again, bit for bit"
    );
    learner.stop().await;

    // The learner does not need its model, and exports it again.
    let file = folder.join(MODEL);
    let model = fs::read(&file).unwrap();
    for damaged in [Some(&model[1..]), None] {
        fs::remove_file(&file).unwrap();
        if let Some(bytes) = damaged {
            fs::write(&file, bytes).unwrap();
        }
        let learner = place.learner();
        until(|| fs::read(&file).is_ok_and(|bytes| bytes == model)).await;
        assert_eq!(learner.stop().await.version, newest.version);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn training_that_diverges_while_precisions_are_measured_is_called_so() {
    let place = Place::new(1000).await;
    let mut config = place.config();
    config.learner.learning_rate = 1e30;
    config.learner.precision = Precision::Auto;
    let reason = Learner::start(config).fails().await;
    for part in [
        "training diverged again",
        "loss",
        "a lower learner.learning_rate may help",
    ] {
        assert!(reason.contains(part), "{part} in {reason}");
    }
    assert!(!reason.contains("precision"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn training_that_diverges_is_restored_once_and_then_fails() {
    let place = Place::new(1000).await;
    let mut config = place.config();
    let learning_rate = std::mem::replace(&mut config.learner.learning_rate, 1e30);
    config.learner.checkpoint_steps = 100;
    let learner = Learner::start(config.clone());
    let repository = learner.repository.clone();
    let reason = learner.fails().await;
    assert!(
        reason.contains("diverged again after it was restored to step 0"),
        "{reason}"
    );
    // No network with infinite weights was published.
    let steps: Vec<u64> = repository
        .list()
        .await
        .unwrap()
        .iter()
        .map(|manifest| manifest.draft.step)
        .collect();
    assert_eq!(steps, [0]);

    // The second divergence, which ended the process, is counted too.
    config.learner.learning_rate = learning_rate;
    config.learner.checkpoint_steps = 6;
    let learner = Learner::start(config);
    let next = learner.reaches(6).await;
    assert_eq!(next.draft.learner_state["progress"]["rollbacks"], 2);
    learner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_does_not_fit_is_an_error_with_the_reason() {
    let place = Place::new(0).await;
    let learner = place.learner();
    learner.reaches(0).await;
    place.store.other_game.store(true, Ordering::SeqCst);
    place.store.insert(1000);
    let reason = learner.fails().await;
    assert!(
        reason.contains("the replay store holds chess with options 1"),
        "{reason}"
    );

    let mut wider = place.config();
    wider.model.filters = 16;
    let reason = Learner::start(wider).fails().await;
    assert!(reason.contains("filters is 16, was 8"), "{reason}");

    let mut other_rows = place.config();
    other_rows.game.options = 3;
    let reason = Learner::start(other_rows).fails().await;
    assert!(
        reason.contains("takes rows of paco-sako with options 1, not 3"),
        "{reason}"
    );

    place.store.other_game.store(false, Ordering::SeqCst);
    let mut large = place.config();
    large.learner.batch_size = 512;
    let reason = Learner::start(large).fails().await;
    assert!(
        reason.contains("the replay store refused the request: batch_size"),
        "{reason}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_precision_is_measured_once_and_kept() {
    let place = Place::new(100).await;
    let mut config = place.config();
    config.learner.precision = Precision::Auto;
    let learner = Learner::start(config.clone());
    let first = learner.reaches(6).await;
    let measured = first.draft.learner_state["progress"]["precision"].clone();
    assert!(measured == "f32" || measured == "bf16", "{measured}");
    learner.stop().await;
    place.store.insert(200);
    let learner = Learner::start(config);
    let later = learner.reaches(12).await;
    assert_eq!(later.draft.learner_state["progress"]["precision"], measured);
    learner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_learner_that_lost_its_lease_ends_with_the_reason() {
    let place = Place::new(96).await;
    let mut replaced = place.config();
    replaced.learner.folder = place.home.path().join("one");
    let learner = Learner::start(replaced.clone());
    let repository = learner.repository.clone();
    learner.reaches(6).await;
    let twin = Learner::start(replaced.clone()).fails().await;
    assert!(twin.contains("another learner runs in"), "{twin}");

    // A second learner in a folder of its own waits and publishes nothing.
    let mut other = replaced.clone();
    other.learner.folder = place.home.path().join("two");
    let second = Learner::start(other);

    // This is the state after the first learner was disconnected until its lease expired, so that another learner holds the lease.
    let name = fs::read_to_string(place.home.path().join("one/learner.lock")).unwrap();
    let times = LeaseTimes::default();
    let taken = repository.lease(&name, times).await.unwrap();
    place.store.insert(192);
    let reason = learner.fails().await;
    assert!(
        reason.contains("another process has taken over the lease of `latest`"),
        "{reason}"
    );
    let before = repository.newest().await.unwrap().unwrap();
    assert_eq!(before.token, 1, "no other learner has published");

    // After the release, the waiting learner resumes from that checkpoint.
    assert!(!second.ended.is_finished());
    taken.release().await.unwrap();
    let after = second.reaches(before.draft.step + 6).await;
    assert_eq!(after.token, 3);
    second.stop().await;
}

#[test]
fn a_folder_admits_one_learner_and_keeps_its_name() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("learner");
    let first = LearnerFolder::lock(&folder).unwrap();
    let name = first.holder.to_owned();
    let error = LearnerFolder::lock(&folder).unwrap_err().to_string();
    assert!(error.contains("another learner runs in"), "{error}");
    drop(first);
    assert_eq!(LearnerFolder::lock(&folder).unwrap().holder, name);

    let copy = home.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(folder.join("learner.lock"), copy.join("learner.lock")).unwrap();
    assert_ne!(LearnerFolder::lock(&copy).unwrap().holder, name);

    fs::write(folder.join("learner.lock"), &name[..7]).unwrap();
    let torn = LearnerFolder::lock(&folder).unwrap();
    assert!(torn.holder.len() > 32 && torn.holder != name);
}
