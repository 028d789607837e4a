use std::time::Duration;

use service::role::Role;

use super::*;
use crate::{page::Page, run::addresses::Member, watch::Disk};

const RECORDINGS: &str = "\
groups:
  - name: minuet-recordings
    rules:
      - record: minuet:inference_queue_wait_seconds:p95
        expr: histogram_quantile(0.95, sum by (le) (rate(minuet_inference_queue_seconds_bucket[2m])))
      - record: minuet:inference_busy:ratio
        expr: avg(rate(minuet_inference_device_seconds_sum[2m]))
      # Target wait divided by the measured wait, 0.5 to 2. The target is 20 ms. Above 1 the queues are short: add actors.
      - record: minuet_actors_wanted_ratio
        expr: clamp(0.02 / clamp_min(minuet:inference_queue_wait_seconds:p95, 0.0001), 0.5, 2)
  - name: minuet-alerts
    rules:
";
const WRITTEN: &str = "# Written by `make pages` from launcher/src/alarms/list.rs.\n";
const RESOURCE: &str = "\
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: minuet}
spec:
";

/// Widest line of the operator's page.
const WIDTH: usize = 140;

/// All alarms with an alert.
fn alerts() -> impl Iterator<Item = (&'static Definition, &'static Alert)> {
    all().filter_map(|kind| Some((kind, kind.alert.as_ref()?)))
}

/// Recording rules and alerts, as Prometheus reads them.
fn rules() -> String {
    let mut text = RECORDINGS.to_owned();
    for (kind, alert) in alerts() {
        let severity = match kind.severity {
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        };
        let summary = serde_json::to_string(alert.summary).unwrap();
        text += &format!(
            "      - alert: {}\n        expr: >-\n          {}\n",
            kind.name,
            alert.expr.replace('\n', "\n          ")
        );
        if !alert.holds_for.is_empty() {
            text += &format!("        for: {}\n", alert.holds_for);
        }
        text += &format!(
            "        labels: {{severity: {severity}}}\n        annotations:\n          summary: {summary}\n"
        );
    }
    text
}

/// Entries of the operator's page.
fn entries() -> String {
    let mut text = String::new();
    for (kind, alert) in alerts() {
        let mut line = format!("- **{}**:", kind.name);
        for word in alert.operator.split(' ') {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                text += &format!("{line}\n");
                line = " ".into();
            }
            line += &format!(" {word}");
        }
        text += &format!("{line}\n");
    }
    text
}

/// Compares a file of `deploy/`, or writes it where `MINUET_WRITE_PAGES` is set.
fn expect_file(name: &str, expected: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy")
        .join(name);
    if std::env::var_os("MINUET_WRITE_PAGES").is_some() {
        std::fs::write(path, expected).unwrap();
        return;
    }
    let found = std::fs::read_to_string(path).unwrap();
    assert!(
        found == expected,
        "deploy/{name} differs from the list of alarms; `make pages` writes it"
    );
}

#[test]
fn rules_and_page_of_a_cluster_are_those_of_the_list() {
    let rules = rules();
    expect_file("prometheus/alerts.yml", &format!("{WRITTEN}{rules}"));
    let indented: String = rules.lines().map(|line| format!("  {line}\n")).collect();
    let resource = format!("{WRITTEN}{RESOURCE}{indented}");
    expect_file("kubernetes/components/monitoring/prometheus-rule.yaml", &resource);
    let (begin, end) = ("## Alerts\n\n", "\n## Security\n");
    let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/README.md"));
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    expect_file("README.md", &format!("{before}{begin}{}{end}{after}", entries()));
}

#[test]
fn alerts_have_the_limits_of_the_checks() {
    for (kind, alert) in alerts() {
        // Alarms without a number of their own compare ages or absence.
        let forms = ["> ", "< ", "== ", "+ "].map(|sign| format!("{sign}{}", kind.limit));
        let has_limit = kind.limit == 0.0 || forms.iter().any(|form| alert.expr.contains(form));
        assert!(has_limit, "{}: {}", kind.name, alert.expr);
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

/// A look at processes with these metrics pages.
fn look<'a>(pages: impl IntoIterator<Item = (Role, Option<&'a str>)>) -> Look {
    let processes = pages.into_iter().map(|(role, page)| {
        let member = Member {
            name: role.name().into(),
            role,
            metrics: None,
        };
        (member, page.map(Page::parse))
    });
    Look {
        processes: processes.collect(),
        ..Look::default()
    }
}

fn names(now: &Look, before: Option<&Look>) -> Vec<&'static str> {
    raised(now, before).iter().map(|alarm| alarm.name).collect()
}

/// Names of the alarms that the page of one process raises, with an earlier page of it.
fn names_of(role: Role, now: &str, before: Option<&str>) -> Vec<&'static str> {
    let before = before.map(|page| look([(role, Some(page))]));
    names(&look([(role, Some(now))]), before.as_ref())
}

#[test]
fn nothing_is_raised_without_figures_and_by_a_healthy_run() {
    assert!(names(&Look::default(), None).is_empty());
    let store =
        "minuet_replay_disk_bytes 7\nminuet_replay_disk_limit_bytes 10\nminuet_replay_games_refused_total 0";
    let healthy = look([
        (Role::Actor, Some("minuet_actor_paused 0")),
        (Role::ReplayStore, Some(store)),
        (Role::Learner, Some("minuet_learner_divergences_total 0")),
    ]);
    assert!(names(&healthy, None).is_empty());
}

#[test]
fn each_fault_raises_its_alarm_and_critical_ones_come_first() {
    let store = "minuet_replay_disk_bytes 9\nminuet_replay_disk_limit_bytes 10\nminuet_replay_unarchived_volumes 2\n\
                 minuet_replay_games_refused_total 3\nminuet_replay_damaged_games_total 1\nminuet_server_tokens 0";
    let actor = "minuet_actor_paused 1\nminuet_actor_spool_games 4\nminuet_actor_games_failed_total 2";
    let pages = [
        (Role::ReplayStore, Some(store)),
        (Role::Learner, None),
        (Role::Actor, Some(actor)),
    ];
    let found = names(&look(pages), None);
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
            "MinuetRulesFail",
        ]
    );
}

#[test]
fn a_refused_checkpoint_is_told_at_once() {
    let of = |value: u32| {
        names_of(
            Role::InferenceServer,
            &format!("minuet_inference_model_newest_refused {value}"),
            None,
        )
    };
    assert_eq!((of(0), of(1)), (vec![], vec!["MinuetModelOld"]));
}

#[test]
fn a_full_disk_is_named_with_its_free_bytes() {
    let of = |free_bytes| {
        let disk = Disk {
            content: "checkpoints".into(),
            setting: "checkpoints.store".into(),
            folder: "/big".into(),
            free_bytes,
        };
        let look = Look {
            disks: vec![disk],
            ..Look::default()
        };
        raised(&look, None)
    };
    assert_eq!(of(64 << 20), []);
    let found = of(5 << 20);
    assert_eq!((found.len(), found[0].name), (1, "MinuetDiskFull"));
    assert!(
        found[0].text.contains("5.00 MiB are free on the disk of /big"),
        "{found:?}"
    );
}

#[test]
fn a_title_is_the_name_in_words() {
    assert_eq!(title("MinuetReplayDisk"), "Replay disk");
}

#[test]
fn counters_count_from_the_earlier_page() {
    let diverged = |now: &str, before: Option<&str>| names_of(Role::Learner, now, before);
    let times = |count: u32| format!("minuet_learner_divergences_total {count}");
    assert_eq!(diverged(&times(1), None), ["MinuetDiverged"]);
    assert_eq!(diverged(&times(1), Some("")), ["MinuetDiverged"]);
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
    let raised = |now: &str, before: Option<&str>| names_of(Role::InferenceServer, now, before);
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
    let old = |game: u64, checkpoint: u64, step| {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let mut look = Look {
            newest_game_age: Some(minutes(game)),
            newest_checkpoint: Some(NewestCheckpoint {
                step,
                age: minutes(checkpoint),
            }),
            ..look([
                (Role::InferenceServer, Some("minuet_inference_model_step 100")),
                (Role::Actor, Some("minuet_actor_paused 0")),
            ])
        };
        let alarms = names(&look, None);
        // A run without actors expects no games.
        look.processes.pop();
        let is_game = |name: &&str| *name == "MinuetNoNewGame";
        assert_eq!(
            names(&look, None),
            alarms
                .iter()
                .filter(|name| !is_game(name))
                .copied()
                .collect::<Vec<_>>()
        );
        alarms
    };
    assert!(old(29, 89, 100).is_empty());
    assert_eq!(old(31, 0, 200), ["MinuetNoNewGame"]);
    assert_eq!(old(0, 91, 100), ["MinuetNoCheckpoint"]);
    assert_eq!(old(0, 26, 200), ["MinuetModelOld"]);
    assert!(old(0, 24, 200).is_empty());
}

#[test]
fn a_process_that_does_not_answer_is_down_except_while_the_run_starts() {
    let mut look = look([(Role::Learner, None)]);
    assert_eq!(names(&look, None), ["MinuetRoleDown"]);
    look.is_starting = true;
    assert!(names(&look, None).is_empty());
    assert_eq!(look.answers(), (0, 1));
}
