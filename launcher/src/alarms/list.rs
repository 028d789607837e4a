//! [`ALARMS`]: all alarms, with the names and limits of `deploy/prometheus/alerts.yml`.

use std::time::Duration;

use indicatif::BinaryBytes;
use service::role::Role;

use super::{Definition, Evidence, Severity::*};

/// Time for which no game may come in: the alert looks at 15 minutes and holds for 15 more.
const NO_GAME: Duration = Duration::from_secs(30 * 60);
/// Time for which no checkpoint may come: the alert looks at an hour and holds for half an hour.
const NO_CHECKPOINT: Duration = Duration::from_secs(90 * 60);
/// Time within which a server has to load a checkpoint: the alert looks ten minutes back and holds for 15.
const MODEL_OLD: Duration = Duration::from_secs(25 * 60);

/// All alarms.
pub const ALARMS: &[Definition] = &[
    Definition {
        name: "MinuetRoleDown",
        severity: Critical,
        limit: 0.0,
        mend: "read the last lines of the role's log in the run's folder, logs/; `minuet up` starts it again",
        setting: None,
        check: |evidence, _| {
            let down = evidence.processes.iter().filter(|seen| seen.now.is_none());
            down.map(|seen| format!("{} does not answer", seen.name))
                .collect()
        },
    },
    Definition {
        name: "MinuetNoNewGame",
        severity: Critical,
        limit: 0.0,
        mend: "look at logs/actor-1.log (is there a network to play with?) and logs/replay-store.log (is the disk full?)",
        setting: None,
        check: |evidence, _| {
            let age = evidence.newest_game_age.filter(|&age| age > NO_GAME);
            age.map(|age| format!("no game was stored for {}", minutes(age)))
                .into_iter()
                .collect()
        },
    },
    Definition {
        name: "MinuetNoCheckpoint",
        severity: Warning,
        limit: 0.0,
        mend: "look at logs/learner.log: it waits for games or for the lease of another learner, or cannot write to the store",
        setting: Some("learner.checkpoint_steps=50"),
        check: |evidence, _| {
            let age = evidence.newest_checkpoint.map(|newest| newest.age);
            age.filter(|&age| age > NO_CHECKPOINT)
                .map(|age| format!("the newest checkpoint is {} old", minutes(age)))
                .into_iter()
                .collect()
        },
    },
    Definition {
        name: "MinuetQueueSlow",
        severity: Warning,
        limit: 0.25,
        mend: "more positions arrive than are evaluated: use fewer games at once, a smaller network or more cores",
        setting: Some("actor.games_per_thread=32"),
        check: |evidence, limit| {
            let waits = evidence.of(Role::InferenceServer).filter_map(|seen| {
                seen.quantile("minuet_inference_queue_seconds", 0.95)
                    .filter(|&wait| wait > limit)
            });
            waits
                .map(|wait| format!("positions wait {wait:.2} s for evaluation (95th percentile)"))
                .collect()
        },
    },
    Definition {
        name: "MinuetDiverged",
        severity: Warning,
        limit: 0.0,
        mend: "one divergence needs no action: the learner has restored its last checkpoint; if it comes again, lower the learning rate",
        setting: Some("learner.learning_rate=0.0005"),
        check: |evidence, limit| diverged(evidence, limit, limit + 1.0),
    },
    Definition {
        name: "MinuetDivergesAgain",
        severity: Critical,
        limit: 1.0,
        mend: "lower the learning rate or lengthen its warm-up, and look at the gradient norm before the event",
        setting: Some("learner.learning_rate=0.0005"),
        check: |evidence, limit| diverged(evidence, limit, f64::INFINITY),
    },
    Definition {
        name: "MinuetReplayDisk",
        severity: Warning,
        limit: 0.8,
        mend: "enlarge the disk and replay.max_disk_mib, or keep fewer positions",
        setting: Some("replay.window_positions=250000"),
        check: |evidence, limit| {
            let fills = evidence.of(Role::ReplayStore).filter_map(|seen| {
                let used = seen.value("minuet_replay_disk_bytes")?;
                let most = seen.value("minuet_replay_disk_limit_bytes")?;
                (used > limit * most).then(|| {
                    let bytes = |value: f64| BinaryBytes(value as u64);
                    format!("the replay store uses {} of {}", bytes(used), bytes(most))
                })
            });
            fills.collect()
        },
    },
    Definition {
        name: "MinuetArchiveBehind",
        severity: Warning,
        limit: 1.0,
        mend: "look at logs/replay-store.log for the error of the archive; no game is lost meanwhile",
        setting: None,
        check: |evidence, limit| {
            over(
                evidence,
                Role::ReplayStore,
                "minuet_replay_unarchived_volumes",
                limit,
                |volumes| format!("{volumes} sealed volumes are not in the archive yet"),
            )
        },
    },
    Definition {
        name: "MinuetGamesRefused",
        severity: Critical,
        limit: 0.0,
        mend: "free the disk, or find the sender in logs/replay-store.log: it plays another run or another game",
        setting: None,
        check: |evidence, limit| {
            gained(
                evidence,
                Role::ReplayStore,
                "minuet_replay_games_refused_total",
                limit,
                |games| Some(format!("the replay store refused {games} games")),
            )
        },
    },
    Definition {
        name: "MinuetLockedOut",
        severity: Critical,
        limit: 1.0,
        mend: "mend the file of tokens (security.tokens): it is missing, empty or malformed, and the server's log has the line",
        setting: None,
        check: |evidence, limit| {
            let locked = evidence.processes.iter().filter(|seen| {
                seen.value("minuet_server_tokens")
                    .is_some_and(|tokens| tokens < limit)
            });
            locked
                .map(|seen| format!("{} has no usable token and refuses every call", seen.name))
                .collect()
        },
    },
    Definition {
        name: "MinuetGamesDamaged",
        severity: Warning,
        limit: 0.0,
        mend: "check the disk, then `minuet games check`; only the named games are lost",
        setting: None,
        check: |evidence, limit| {
            gained(
                evidence,
                Role::ReplayStore,
                "minuet_replay_damaged_games_total",
                limit,
                |games| Some(format!("the replay store found {games} damaged games")),
            )
        },
    },
    Definition {
        name: "MinuetActorPaused",
        severity: Warning,
        limit: 1.0,
        mend: "the actor's spool is full because the store takes no games: look at logs/replay-store.log",
        setting: Some("actor.max_spool_mib=1024"),
        check: |evidence, limit| {
            let paused = evidence.of(Role::Actor).filter(|seen| {
                seen.value("minuet_actor_paused")
                    .is_some_and(|paused| paused >= limit)
            });
            paused
                .map(|seen| {
                    let games = seen.value("minuet_actor_spool_games").unwrap_or_default();
                    format!("{} has paused: {games} games wait in its spool", seen.name)
                })
                .collect()
        },
    },
    Definition {
        name: "MinuetModelOld",
        severity: Warning,
        limit: 0.0,
        mend: "look at logs/inference-server.log for the checkpoint that it refuses or cannot fetch",
        setting: None,
        check: |evidence, _| {
            let Some(newest) = evidence.newest_checkpoint.filter(|newest| newest.age > MODEL_OLD) else {
                return Vec::new();
            };
            let served = evidence
                .of(Role::InferenceServer)
                .filter_map(|seen| seen.value("minuet_inference_model_step"));
            served
                .filter(|&step| step < newest.step as f64)
                .map(|step| {
                    format!(
                        "the inference server serves step {step}, but step {} was published {} ago",
                        newest.step,
                        minutes(newest.age)
                    )
                })
                .collect()
        },
    },
];

/// Checks the learner's divergences: more than `limit`, at most `most`.
fn diverged(evidence: &Evidence<'_>, limit: f64, most: f64) -> Vec<String> {
    gained(
        evidence,
        Role::Learner,
        "minuet_learner_divergences_total",
        limit,
        |times| (times <= most).then(|| format!("training diverged {times} times")),
    )
}

/// Returns a sentence for each process whose counter has grown by more than `limit`.
fn gained(
    evidence: &Evidence<'_>,
    role: Role,
    metric: &str,
    limit: f64,
    text: impl Fn(f64) -> Option<String>,
) -> Vec<String> {
    let grown = evidence.of(role).filter_map(|seen| seen.increase(metric));
    grown.filter(|&by| by > limit).filter_map(text).collect()
}

/// Returns a sentence for each process whose gauge is above `limit`.
fn over(
    evidence: &Evidence<'_>,
    role: Role,
    metric: &str,
    limit: f64,
    text: impl Fn(f64) -> String,
) -> Vec<String> {
    let values = evidence.of(role).filter_map(|seen| seen.value(metric));
    values.filter(|&value| value > limit).map(text).collect()
}

fn minutes(age: Duration) -> String {
    format!("{} minutes", age.as_secs() / 60)
}
