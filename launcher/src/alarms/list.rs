//! [`ALARMS`]: the alarms that metrics pages tell, with their alerts for Prometheus, and that of full disks on this machine.
//!
//! `deploy/prometheus/alerts.yml`, the Kubernetes rule and the section "Alerts" of `deploy/README.md` are written from this list by
//! `make pages`.

use std::time::Duration;

use indicatif::BinaryBytes;
use service::role::Role;

use super::{Alert, Definition, Evidence, Severity::*, look::Seen};
use crate::watch::{disks::LEAST_FREE, names};

/// Time for which no game may come in: the alert counts over 15 minutes and holds for 15 more.
const NO_GAME: Duration = Duration::from_secs(30 * 60);
/// Time for which no checkpoint may come: the alert counts over an hour and holds for half an hour.
const NO_CHECKPOINT: Duration = Duration::from_secs(90 * 60);
/// Time within which a server has to load a checkpoint: the alert compares with ten minutes ago and holds for 15.
const MODEL_OLD: Duration = Duration::from_secs(25 * 60);

/// All alarms.
pub const ALARMS: &[Definition] = &[
    Definition {
        name: "MinuetRoleDown",
        severity: Critical,
        limit: 0.0,
        fix: "read the last lines of the role's log in the run's folder, logs/; `minuet up` starts it again",
        setting: None,
        alert: Some(Alert {
            // A role without any process has no scrape target, so `up == 0` does not see it; absent() does.
            expr: "up{job=~\"replay-store|inference-server|learner|actor|rating\"} == 0\n\
                or absent(up{job=\"replay-store\"}) or absent(up{job=\"inference-server\"})\n\
                or absent(up{job=\"learner\"}) or absent(up{job=\"actor\"})",
            holds_for: "5m",
            summary: "{{ $labels.job }} {{ if $labels.instance }}at {{ $labels.instance }} does not answer{{ else }}has no process{{ \
                end }}",
            operator: "a process does not answer, or no process of a role exists (scaled to zero, deleted, or not found by a Service or \
                monitor). `kubectl -n minuet describe pod …` shows the reason (image, node, memory), or the role's log does. The \
                other roles wait and continue by themselves.",
        }),
        check: |evidence, _| {
            let down = evidence.processes().filter(|seen| seen.now.is_none());
            down.map(|seen| format!("{} does not answer", seen.name))
                .collect()
        },
    },
    Definition {
        name: "MinuetNoNewGame",
        severity: Critical,
        limit: 0.0,
        fix: "look at logs/actor-1.log (is there a network to play with?) and logs/replay-store.log (is the disk full?)",
        setting: None,
        alert: Some(Alert {
            expr: "(sum(increase(minuet_replay_games_inserted_total[15m])) or vector(0)) == 0",
            holds_for: "15m",
            summary: "The replay store has stored no game for 30 minutes",
            operator: "actors do not play, or games are not stored. Actors' logs: `inference-server` is not reachable (no ready server: \
                see its log for a refused model), or `replay-store` refuses (disk). A growing spool in the dashboard means the \
                store.",
        }),
        check: |evidence, _| {
            let age = evidence.now.newest_game_age;
            let age = age.filter(|&age| age > NO_GAME && evidence.now.has_actors());
            Vec::from_iter(age.map(|age| format!("no game was stored for {}", minutes(age))))
        },
    },
    Definition {
        name: "MinuetNoCheckpoint",
        severity: Warning,
        limit: 0.0,
        fix: "look at logs/learner.log: it waits for games or for the lease of another learner, or cannot write to the store",
        setting: Some("learner.checkpoint_steps=50"),
        alert: Some(Alert {
            expr: "(sum(increase(minuet_learner_checkpoints_total[1h])) or vector(0)) == 0",
            holds_for: "30m",
            summary: "The learner has published no checkpoint for 90 minutes",
            operator: "the learner waits for the lease of another one (`minuet_learner_lease_token` is 0, and its log says so); or it \
                waits for games (`minuet_learner_waiting` is 1: see MinuetNoNewGame); or it cannot write to the object store \
                (its log has the error); or its exports are refused (`minuet_learner_refused_checkpoints_total`): their proof \
                with ONNX Runtime failed, which is a bug; please report it with the log.",
        }),
        check: |evidence, _| {
            let newest = evidence
                .now
                .newest_checkpoint
                .filter(|newest| newest.age > NO_CHECKPOINT);
            Vec::from_iter(
                newest.map(|newest| format!("the newest checkpoint is {} old", minutes(newest.age))),
            )
        },
    },
    Definition {
        name: "MinuetQueueSlow",
        severity: Warning,
        limit: 0.25,
        fix: "more positions arrive than are evaluated: use fewer games at once, a smaller network or more cores",
        setting: Some("actor.games_per_thread=32"),
        alert: Some(Alert {
            expr: "minuet:inference_queue_wait_seconds:p95 > 0.25",
            holds_for: "10m",
            summary: "Positions wait {{ $value | humanizeDuration }} for evaluation (95th percentile)",
            operator: "more positions arrive than the servers evaluate. Use fewer actors or more servers. If the alert began with a new \
                network, that network is slower.",
        }),
        check: |evidence, limit| {
            let wait = |seen: Seen<'_>| seen.quantile("minuet_inference_queue_seconds", 0.95);
            above(evidence, Role::InferenceServer, limit, wait, |wait| {
                format!("positions wait {wait:.2} s for evaluation (95th percentile)")
            })
        },
    },
    Definition {
        name: "MinuetDiverged",
        severity: Warning,
        limit: 0.0,
        fix: "one divergence needs no action: the learner has restored its last checkpoint; if it comes again, lower the learning rate",
        setting: Some("learner.learning_rate=0.0005"),
        alert: Some(Alert {
            // The learner keeps this count across restarts, so the series of a new pod continues where the old pod's series ended.
            expr: "max(max_over_time(minuet_learner_divergences_total[10m])) > \
                min(min_over_time(minuet_learner_divergences_total[1h]))",
            holds_for: "",
            summary: "The loss or its gradient was not finite; the learner returned to its last checkpoint",
            operator: "loss, gradient or weights were not finite. The learner has restored its last checkpoint and continues with other \
                batches. A single alert needs no action. If the alert is repeated every hour, lower `learner.learning_rate`.",
        }),
        check: |evidence, limit| diverged(evidence, limit, limit + 1.0),
    },
    Definition {
        name: "MinuetDivergesAgain",
        severity: Critical,
        limit: 1.0,
        fix: "lower the learning rate or lengthen its warm-up, and look at the gradient norm before the event",
        setting: Some("learner.learning_rate=0.0005"),
        alert: Some(Alert {
            expr: "max(max_over_time(minuet_learner_divergences_total[10m])) > \
                min(min_over_time(minuet_learner_divergences_total[1h])) + 1",
            holds_for: "",
            summary: "Training diverged at least twice within an hour; the learner may have stopped",
            operator: "training diverged again before the next checkpoint, so the learner has ended (\"diverged again\") and was \
                restarted; or training diverged twice within an hour. Lower `learner.learning_rate`, or raise \
                `learner.warmup_steps`, and look at *Gradient norm* before the event. Weights that are not finite are never \
                published. The count belongs to the run: it is kept in the learner's folder and in checkpoints.",
        }),
        check: |evidence, limit| diverged(evidence, limit, f64::INFINITY),
    },
    Definition {
        name: "MinuetReplayDisk",
        severity: Warning,
        limit: 0.8,
        fix: "free space on the disk, or enlarge it and replay.max_disk_mib, or keep fewer positions",
        setting: Some("replay.window_positions=250000"),
        alert: Some(Alert {
            expr: "sum by (instance) (minuet_replay_disk_bytes) / sum by (instance) (minuet_replay_disk_limit_bytes) > 0.8",
            holds_for: "10m",
            summary: "The replay store at {{ $labels.instance }} uses {{ $value | humanizePercentage }} of its disk limit",
            operator: "less than a fifth of the store's space is left (`replay.max_disk_mib`, or less if its disk is smaller). Enlarge \
                the volume and the limit, or lower `replay.window_positions`. A full store refuses games; actors keep them and \
                pause.",
        }),
        check: |evidence, limit| {
            let fills = evidence.of(Role::ReplayStore).filter_map(|seen| {
                let used = seen.value("minuet_replay_disk_bytes")?;
                let most = seen.value("minuet_replay_disk_limit_bytes")?;
                (used > limit * most).then(|| {
                    let bytes = |value: f64| BinaryBytes(value as u64);
                    let free = seen.value(names::DISK_FREE);
                    let free = free.map(|free| format!("; {} are free on its disk", bytes(free)));
                    let free = free.unwrap_or_default();
                    format!("the replay store uses {} of {}{free}", bytes(used), bytes(most))
                })
            });
            fills.collect()
        },
    },
    Definition {
        name: "MinuetDiskFull",
        severity: Critical,
        limit: LEAST_FREE as f64,
        fix: "free some space on the named disk, or stop the run, move the named folder to a larger disk, and set its new place",
        setting: None,
        alert: None,
        check: |evidence, limit| {
            let full = evidence
                .now
                .disks
                .iter()
                .filter(|disk| disk.is_full(limit as u64));
            full.map(ToString::to_string).collect()
        },
    },
    Definition {
        name: "MinuetArchiveBehind",
        severity: Warning,
        limit: 1.0,
        fix: "look at logs/replay-store.log for the error of the archive; no game is lost meanwhile",
        setting: None,
        alert: Some(Alert {
            expr: "minuet_replay_unarchived_volumes > 1",
            holds_for: "30m",
            summary: "{{ $value }} sealed volumes of the replay store at {{ $labels.instance }} are not in the archive yet",
            operator: "sealed parts of the replay store wait for the archive (`replay.archive`); the store's log has the error. No game \
                is lost. The store's disk fills until the archive is back; at `replay.max_disk_mib` games are refused, and \
                actors keep them.",
        }),
        check: |evidence, limit| {
            let volumes = |seen: Seen<'_>| seen.value("minuet_replay_unarchived_volumes");
            above(evidence, Role::ReplayStore, limit, volumes, |volumes| {
                format!("{volumes} sealed volumes are not in the archive yet")
            })
        },
    },
    Definition {
        name: "MinuetGamesRefused",
        severity: Critical,
        limit: 0.0,
        fix: "free the disk, or find the sender in logs/replay-store.log: it plays another run or another game",
        setting: None,
        alert: Some(Alert {
            expr: "increase(minuet_replay_games_refused_total[10m]) > 0",
            holds_for: "",
            summary: "The replay store at {{ $labels.instance }} refuses games",
            operator: "the disk is full (see MinuetReplayDisk), or games belong to another run or game; the log names the sender.",
        }),
        check: |evidence, limit| {
            let refused = |seen: Seen<'_>| seen.increase("minuet_replay_games_refused_total");
            above(evidence, Role::ReplayStore, limit, refused, |games| {
                format!("the replay store refused {games} games")
            })
        },
    },
    Definition {
        name: "MinuetLockedOut",
        severity: Critical,
        limit: 1.0,
        fix: "repair the token file (security.tokens): it is missing, empty or malformed, and the server's log has the line",
        setting: None,
        alert: Some(Alert {
            expr: "minuet_server_tokens < 1",
            holds_for: "2m",
            summary: "The server at {{ $labels.instance }} cannot use its file of tokens and refuses every call",
            operator: "a server's file of tokens is missing, empty or malformed; its log has the line. Calls are refused, and repeated \
                by actors and learners, until the file is repaired.",
        }),
        check: |evidence, limit| {
            let tokens = |seen: &Seen<'_>| seen.value("minuet_server_tokens");
            let locked = evidence
                .processes()
                .filter(|seen| tokens(seen).is_some_and(|tokens| tokens < limit));
            locked
                .map(|seen| format!("{} has no usable token and refuses every call", seen.name))
                .collect()
        },
    },
    Definition {
        name: "MinuetGamesDamaged",
        severity: Warning,
        limit: 0.0,
        fix: "check the disk, then `minuet games check`; only the named games are lost",
        setting: None,
        alert: Some(Alert {
            expr: "increase(minuet_replay_damaged_games_total[1h]) > 0",
            holds_for: "",
            summary: "The replay store at {{ $labels.instance }} found damaged games",
            operator: "a disk returned other bytes than were written. Only the named games are lost; check the disk.",
        }),
        check: |evidence, limit| {
            let damaged = |seen: Seen<'_>| seen.increase("minuet_replay_damaged_games_total");
            above(evidence, Role::ReplayStore, limit, damaged, |games| {
                format!("the replay store found {games} damaged games")
            })
        },
    },
    Definition {
        name: "MinuetActorPaused",
        severity: Warning,
        limit: 1.0,
        fix: "the actor's spool is full because the store takes no games: look at logs/replay-store.log",
        setting: Some("actor.max_spool_mib=1024"),
        alert: Some(Alert {
            expr: "minuet_actor_paused == 1",
            holds_for: "10m",
            summary: "The actor at {{ $labels.instance }} has paused because its spool is full",
            operator: "an actor's spool is full because the store does not accept games: see MinuetGamesRefused and MinuetRoleDown.",
        }),
        check: |evidence, limit| {
            let paused = |seen: &Seen<'_>| seen.value("minuet_actor_paused");
            let actors = evidence.of(Role::Actor);
            actors
                .filter(|seen| paused(seen).is_some_and(|paused| paused >= limit))
                .map(|seen| {
                    let games = seen.value("minuet_actor_spool_games").unwrap_or_default();
                    format!("{} has paused: {games} games wait in its spool", seen.name)
                })
                .collect()
        },
    },
    Definition {
        name: "MinuetRulesFail",
        severity: Warning,
        limit: 0.0,
        fix: "logs/actor-1.log has the exceptions of your game, with the actions that lead there; these games are not recorded",
        setting: None,
        // A game of one's own is trained by its author, who looks at the run.
        alert: None,
        check: |evidence, limit| {
            let failed = |seen: Seen<'_>| seen.increase("minuet_actor_games_failed_total");
            above(evidence, Role::Actor, limit, failed, |games| {
                format!("the rules failed in {games} games")
            })
        },
    },
    Definition {
        name: "MinuetModelOld",
        severity: Warning,
        limit: 0.0,
        fix: "look at logs/inference-server.log for the checkpoint that it refuses or cannot fetch",
        setting: None,
        alert: Some(Alert {
            // Compared with the newest checkpoint of ten minutes ago, because a learner that publishes every minute is always ahead.
            expr: "min(minuet_inference_model_step) < max(minuet_learner_checkpoint_step offset 10m)",
            holds_for: "15m",
            summary: "An inference server does not load new checkpoints",
            operator: "a server still serves a checkpoint that was replaced more than ten minutes ago, because it refuses or cannot \
                fetch newer ones; its log has the file and the reason. *Age of the served model* shows the age.",
        }),
        check: |evidence, _| {
            let refuses = |seen: Seen<'_>| seen.value(names::NEWEST_REFUSED);
            let refused = above(evidence, Role::InferenceServer, 0.0, refuses, |_| {
                "the inference server refuses the newest checkpoint".into()
            });
            if !refused.is_empty() {
                return refused;
            }
            let Some(newest) = evidence
                .now
                .newest_checkpoint
                .filter(|newest| newest.age > MODEL_OLD)
            else {
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
fn diverged(evidence: Evidence<'_>, limit: f64, most: f64) -> Vec<String> {
    let times = |seen: Seen<'_>| {
        let times = seen.increase("minuet_learner_divergences_total");
        times.filter(|&times| times <= most)
    };
    above(evidence, Role::Learner, limit, times, |times| {
        format!("training diverged {times} times")
    })
}

/// Returns a sentence for each process of a role whose number is above `limit`.
fn above(
    evidence: Evidence<'_>,
    role: Role,
    limit: f64,
    number: impl Fn(Seen<'_>) -> Option<f64>,
    text: impl Fn(f64) -> String,
) -> Vec<String> {
    let numbers = evidence.of(role).filter_map(number);
    numbers.filter(|&number| number > limit).map(text).collect()
}

fn minutes(age: Duration) -> String {
    format!("{} minutes", age.as_secs() / 60)
}
