use std::{collections::BTreeMap, time::Duration};

use service::role::Role;

use super::*;
use crate::page::Page;

const RULES: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../deploy/prometheus/alerts.yml"
));

/// Text of each alert of the rules, by name.
fn alerts() -> BTreeMap<&'static str, &'static str> {
    let parts = RULES.split("- alert: ").skip(1);
    parts.filter_map(|part| part.split_once('\n')).collect()
}

#[test]
fn the_list_has_the_alerts_of_the_cluster_with_their_urgency_and_limits() {
    let alerts = alerts();
    let names: Vec<&str> = ALARMS.iter().map(|kind| kind.name).collect();
    assert_eq!(names.len(), alerts.len());
    for kind in ALARMS {
        let text = alerts[kind.name];
        let severity = match kind.severity {
            Severity::Warning => "severity: warning",
            Severity::Critical => "severity: critical",
        };
        assert!(text.contains(severity), "{}", kind.name);
        // Alarms without a number of their own compare ages or absence.
        if kind.limit != 0.0 {
            let forms = ["> ", "< ", "== ", "+ "].map(|sign| format!("{sign}{}", kind.limit));
            assert!(
                forms.iter().any(|form| text.contains(form)),
                "{}: {text}",
                kind.name
            );
        }
    }
}

#[test]
fn settings_to_copy_are_settings_of_a_run() {
    for kind in all() {
        if let Some(setting) = kind.setting {
            config::parse_with("", &[setting.parse().unwrap()]).unwrap();
        }
    }
}

/// Names of the alarms that pages raise.
fn names(pages: &[(Role, Option<&str>, Option<&str>)]) -> Vec<&'static str> {
    let parsed: Vec<_> = pages
        .iter()
        .map(|(role, now, before)| (*role, now.map(Page::parse), before.map(Page::parse)))
        .collect();
    let evidence = Evidence {
        processes: parsed
            .iter()
            .map(|(role, now, before)| Seen {
                name: role.name(),
                role: *role,
                now: now.as_ref(),
                before: before.as_ref(),
            })
            .collect(),
        ..Evidence::default()
    };
    raised(&evidence).iter().map(|alarm| alarm.name).collect()
}

#[test]
fn nothing_is_raised_without_figures_and_by_a_healthy_run() {
    assert!(raised(&Evidence::default()).is_empty());
    let healthy = [
        (Role::Actor, Some("minuet_actor_paused 0"), None),
        (
            Role::ReplayStore,
            Some(
                "minuet_replay_disk_bytes 7\nminuet_replay_disk_limit_bytes 10\nminuet_replay_games_refused_total 0",
            ),
            None,
        ),
        (Role::Learner, Some("minuet_learner_divergences_total 0"), None),
    ];
    assert!(names(&healthy).is_empty());
}

#[test]
fn each_fault_raises_its_alarm_and_critical_ones_come_first() {
    let store = "minuet_replay_disk_bytes 9\nminuet_replay_disk_limit_bytes 10\nminuet_replay_unarchived_volumes 2\n\
                 minuet_replay_games_refused_total 3\nminuet_replay_damaged_games_total 1\nminuet_server_tokens 0";
    let found = names(&[
        (Role::ReplayStore, Some(store), None),
        (Role::Learner, None, None),
        (
            Role::Actor,
            Some("minuet_actor_paused 1\nminuet_actor_spool_games 4"),
            None,
        ),
    ]);
    assert_eq!(
        found,
        [
            "MinuetRoleDown",
            "MinuetGamesRefused",
            "MinuetLockedOut",
            "MinuetReplayDisk",
            "MinuetArchiveBehind",
            "MinuetGamesDamaged",
            "MinuetActorPaused",
        ]
    );
}

#[test]
fn a_title_is_the_name_in_words() {
    let page = Page::parse("minuet_replay_disk_bytes 9\nminuet_replay_disk_limit_bytes 10");
    let evidence = Evidence {
        processes: vec![Seen {
            name: "replay-store",
            role: Role::ReplayStore,
            now: Some(&page),
            before: None,
        }],
        ..Evidence::default()
    };
    assert_eq!(raised(&evidence)[0].title(), "Replay disk");
}

#[test]
fn counters_count_from_the_earlier_page() {
    let diverged = |now: &str, before: Option<&str>| names(&[(Role::Learner, Some(now), before)]);
    let times = |count: u32| format!("minuet_learner_divergences_total {count}");
    assert_eq!(diverged(&times(1), None), ["MinuetDiverged"]);
    assert_eq!(diverged(&times(2), None), ["MinuetDivergesAgain"]);
    assert!(diverged(&times(2), Some(&times(2))).is_empty());
    assert_eq!(diverged(&times(3), Some(&times(2))), ["MinuetDiverged"]);
}

#[test]
fn a_slow_queue_is_found_in_what_a_histogram_has_gained() {
    let page = |fast: u32, slow: u32| {
        let name = "minuet_inference_queue_seconds_bucket";
        format!(
            "{name}{{le=\"0.1\"}} {fast}\n{name}{{le=\"0.5\"}} {}\n{name}{{le=\"+Inf\"}} {}",
            fast + slow,
            fast + slow
        )
    };
    let raised = |now: &str, before: Option<&str>| names(&[(Role::InferenceServer, Some(now), before)]);
    assert!(raised(&page(100, 4), None).is_empty());
    assert_eq!(raised(&page(100, 10), None), ["MinuetQueueSlow"]);
    assert_eq!(
        raised(&page(1_000, 10), Some(&page(1_000, 0))),
        ["MinuetQueueSlow"]
    );
    assert!(raised(&page(2_000, 10), Some(&page(1_000, 10))).is_empty());
}

#[test]
fn ages_of_games_and_checkpoints_raise_alarms() {
    let server = Page::parse("minuet_inference_model_step 100");
    let old = |game: u64, checkpoint: u64, step| {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let evidence = Evidence {
            processes: vec![Seen {
                name: "inference-server",
                role: Role::InferenceServer,
                now: Some(&server),
                before: None,
            }],
            newest_game_age: Some(minutes(game)),
            newest_checkpoint: Some(NewestCheckpoint {
                step,
                age: minutes(checkpoint),
            }),
            ..Evidence::default()
        };
        let alarms = raised(&evidence);
        alarms.iter().map(|alarm| alarm.name).collect::<Vec<_>>()
    };
    assert!(old(29, 89, 100).is_empty());
    assert_eq!(old(31, 0, 200), ["MinuetNoNewGame"]);
    assert_eq!(old(0, 91, 100), ["MinuetNoCheckpoint"]);
    assert_eq!(old(0, 26, 200), ["MinuetModelOld"]);
    assert!(old(0, 24, 200).is_empty());
}
