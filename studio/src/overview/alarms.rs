//! Alarms of the run on the overview: those of `minuet doctor`, checked every two seconds while somebody looks.
//!
//! The list has a fixed height and scrolls, so that an alarm that comes or goes moves nothing else. Screen readers are told the titles
//! alone, and only when they change: the numbers in the list change all the time.

use std::time::{Duration, SystemTime};

use launcher::{
    alarms::{ALARMS, Alarm, Look, NewestCheckpoint, Severity, raised, title},
    run::addresses::Addresses,
};
use maud::{Markup, html};
use tokio::{sync::Mutex, time::Instant};

use super::{parts::capital, state::State};
use crate::{
    app::Run,
    figures::words::{moment, with_code},
    live::Slots,
};

/// Age from which the run is looked at again.
const FRESH: Duration = Duration::from_secs(2);
/// Shortest time over which counters are watched: a page that was open for twice as long shows no older event.
const WINDOW: Duration = Duration::from_secs(15 * 60);

/// Alarms of a run at one moment.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Raised alarms, the critical ones first.
    pub raised: Vec<Alarm>,
    /// Time of the look, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Looks at a run for its alarms, shared by all who watch.
#[derive(Debug, Default)]
pub struct Watch(Mutex<Looks>);

#[derive(Debug, Default)]
struct Looks {
    /// Look since which counters are compared. `None`: since the start of each process.
    before: Option<Look>,
    /// Look that takes the place of `before` after [`WINDOW`].
    next: Option<(Instant, Look)>,
    looked: Option<Instant>,
    /// `None`: the run is not at work.
    findings: Option<Findings>,
}

impl Watch {
    /// Alarms of the run; `None` if it is not at work. If the last look is old, looks at all processes, which takes two seconds at
    /// most.
    pub async fn findings(&self, run: &Run, newest: Option<NewestCheckpoint>) -> Option<Findings> {
        let mut looks = self.0.lock().await;
        if looks.looked.is_none_or(|looked| looked.elapsed() >= FRESH) {
            looks.refresh(run, newest).await;
        }
        looks.findings.clone()
    }
}

impl Looks {
    async fn refresh(&mut self, run: &Run, newest: Option<NewestCheckpoint>) {
        let Some(addresses) = Addresses::of_running(&run.folder) else {
            *self = Self::default();
            return;
        };
        let look = Look::at(&run.config, &addresses, newest).await;
        let now = Instant::now();
        if self.next.as_ref().is_none_or(|(at, _)| *at + WINDOW <= now) {
            let earlier = self.next.replace((now, look.clone()));
            self.before = earlier.map(|(_, look)| look);
        }
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        self.findings = Some(Findings {
            raised: raised(&look.evidence(self.before.as_ref())),
            at_ms: since_epoch.unwrap_or_default().as_millis() as u64,
        });
        self.looked = Some(now);
    }
}

/// Newest checkpoint of the run, as `minuet up` recorded it.
pub fn newest_checkpoint(state: &State) -> Option<NewestCheckpoint> {
    let now = state.journal.newest.as_ref()?;
    let checkpoint = now.summary.checkpoint.as_ref()?;
    let recorded = launcher::alarms::look::age(now.at_ms);
    let age = Duration::try_from_secs_f64(checkpoint.age_seconds).unwrap_or_default();
    Some(NewestCheckpoint {
        step: checkpoint.step,
        age: age + recorded,
    })
}

/// The place of the alarms in the page, with their present state.
pub fn card(slots: &Slots) -> Markup {
    html! {
        section.card.watch aria-labelledby="alarms" {
            div.head {
                h2 #alarms { "Alarms" }
                (slots.show("alarm-count"))
            }
            div.list tabindex="0" role="region" aria-label="Alarms, scrollable" { (slots.show("alarms")) }
            div.hidden-text role="status" { (slots.show("alarm-titles")) }
        }
    }
}

/// Adds the parts of the card. `None`: the run is not at work.
pub fn with_alarms(slots: Slots, findings: Option<&Findings>) -> Slots {
    let raised = findings.map_or(&[][..], |findings| &findings.raised);
    let critical = raised
        .iter()
        .filter(|alarm| alarm.severity == Severity::Critical)
        .count();
    let count = html! {
        p {
            @match (findings, raised.len()) {
                (None, _) => {}
                (_, 0) => { b { "none" } }
                (_, all) => { span.sign aria-hidden="true" { "▲ " } b { (all) } @if critical > 0 { ", " (critical) " critical" } }
            }
            @if let Some(findings) = findings { span.quiet.small { " · looked " (moment(findings.at_ms)) } }
        }
    };
    slots
        .with("alarm-count", count)
        .with("alarms", list(findings.is_some(), raised))
        .with("alarm-titles", titles(raised))
}

fn list(is_running: bool, raised: &[Alarm]) -> Markup {
    html! {
        @if !is_running {
            p.empty { "A run is looked at while it is at work." }
        } @else if raised.is_empty() {
            p.empty {
                "Nothing is wrong. These alarms are looked for, as " code { "minuet doctor" } " does: "
                (ALARMS.iter().map(|kind| title(kind.name).to_lowercase()).collect::<Vec<String>>().join(", ")) "."
            }
        } @else {
            ul.alarms {
                @for (number, alarm) in raised.iter().enumerate() { (item(number, alarm)) }
            }
        }
    }
}

/// One alarm: cause with its number, remedy, and a setting to copy.
fn item(number: usize, alarm: &Alarm) -> Markup {
    let is_critical = alarm.severity == Severity::Critical;
    let setting = alarm.setting.map(|setting| format!("--set {setting}"));
    html! {
        li.critical[is_critical] {
            span.sign aria-hidden="true" { @if is_critical { "▲" } @else { "△" } }
            div {
                p {
                    b { (alarm.title()) }
                    @if is_critical { span.hidden-text { " (critical)" } }
                    ": " (alarm.text) "."
                }
                p.mend {
                    (with_code(&capital(alarm.mend))) "."
                    @if let Some(setting) = &setting {
                        " Perhaps " code { (setting) } " "
                        button.copy type="button" id=(format!("copy-{number}")) data-copy=(setting) {
                            "Copy" span.hidden-text { " " (setting) }
                        }
                    }
                }
            }
        }
    }
}

/// The titles of all alarms in a sentence, for screen readers.
fn titles(raised: &[Alarm]) -> Markup {
    let mut titles: Vec<String> = raised.iter().map(Alarm::title).collect();
    titles.dedup();
    html! {
        @match titles.len() {
            0 => { "No alarm." }
            1 => { "Alarm: " (titles.join(", ")) "." }
            _ => { "Alarms: " (titles.join(", ")) "." }
        }
    }
}
