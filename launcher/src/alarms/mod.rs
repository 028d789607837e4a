//! Alarms of a run: what is wrong with it, by which number, what to do, and a setting that may help.
//!
//! The first list has alarms that metrics pages tell. Each has an alert for Prometheus, which evaluates series of hours; the checks
//! here read the metrics pages at one moment, with an earlier moment if there is one. The second list is about what
//! the run learns, which no metrics page tells: its losses, its games, its matches, its network on known positions.
//!
//! | module | contents |
//! |---|---|
//! | [`look`] | the figures that the checks read, and how those of a run at work are read |
//! | [`list`] | the alarms that metrics pages tell, their checks and alerts |
//! | [`learned`] | what the run learns: losses, games, matches, the network on known positions |
//! | [`learning`] | the alarms about that, and their checks |

pub mod learned;
pub mod learning;
pub mod list;
pub mod look;

use serde::Serialize;

pub use learned::{Learned, LearningReader};
pub use learning::LEARNING;
pub use list::ALARMS;
pub use look::{Evidence, Look, NewestCheckpoint};

/// Urgency of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The run continues, but something needs attention.
    Warning,
    /// The run makes no progress, or may lose some.
    Critical,
}

/// A kind of alarm.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Name, also of the alert.
    pub name: &'static str,
    /// Urgency.
    pub severity: Severity,
    /// Number that the check compares with; an alert's expression has the same.
    pub limit: f64,
    /// Remedy: an action of a person.
    pub fix: &'static str,
    /// A setting for `--set` or `run.toml` that may help; none: no setting helps.
    pub setting: Option<&'static str>,
    /// Alert for Prometheus; `None` if no metrics page tells the alarm.
    pub alert: Option<Alert>,
    /// Returns a sentence with the cause and its number for each case of the alarm.
    check: fn(Evidence<'_>, f64) -> Vec<String>,
}

/// Alert for Prometheus, as `deploy/` has it.
#[derive(Clone, Copy, Debug)]
pub struct Alert {
    /// Expression; it has the alarm's limit.
    pub expr: &'static str,
    /// Time for which the expression must hold, e.g. `5m`; empty: the alert fires at once.
    pub holds_for: &'static str,
    /// Cause, with templates of Prometheus.
    pub summary: &'static str,
    /// Causes and remedies for the operator of a cluster, as Markdown.
    pub operator: &'static str,
}

/// An alarm that the figures of a run show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alarm {
    /// Name.
    pub name: &'static str,
    /// Urgency.
    pub severity: Severity,
    /// Cause, with its number.
    pub text: String,
    /// Remedy: an action of a person.
    pub fix: &'static str,
    /// A setting that may help.
    pub setting: Option<&'static str>,
}

/// Title of an alarm for people: `Replay disk` for `MinuetReplayDisk`.
pub fn title(name: &str) -> String {
    let mut title = String::new();
    for letter in name.trim_start_matches("Minuet").chars() {
        if letter.is_uppercase() && !title.is_empty() {
            title.push(' ');
            title.extend(letter.to_lowercase());
        } else {
            title.push(letter);
        }
    }
    title
}

/// All kinds of alarms.
pub fn all() -> impl Iterator<Item = &'static Definition> {
    ALARMS.iter().chain(LEARNING)
}

/// Returns all alarms that a look at a run shows, the critical ones first. `before` is an earlier look, since which counters have
/// grown.
pub fn raised(now: &Look, before: Option<&Look>) -> Vec<Alarm> {
    let evidence = Evidence { now, before };
    let alarms = all().flat_map(|kind| {
        let texts = (kind.check)(evidence, kind.limit);
        texts.into_iter().map(|text| Alarm {
            name: kind.name,
            severity: kind.severity,
            text,
            fix: kind.fix,
            setting: kind.setting,
        })
    });
    let mut raised: Vec<Alarm> = alarms.collect();
    raised.sort_by_key(|alarm| alarm.severity != Severity::Critical);
    raised
}

#[cfg(test)]
mod tests;
