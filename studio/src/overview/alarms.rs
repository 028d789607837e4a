//! Alarms of the run on the overview: those of `minuet doctor`.
//!
//! The list has a fixed height and scrolls, so that an alarm that comes or goes moves nothing else. Screen readers are told the titles
//! alone, and only when they change: the numbers in the list change all the time.

use std::time::Duration;

use launcher::alarms::{self, Alarm, NewestCheckpoint, Severity, title};
use maud::{Markup, html};

use super::{state::State, watch::Findings};
use crate::{
    figures::words::{capital, moment, with_code},
    live::Slots,
};

/// Newest checkpoint of the run, as `minuet up` recorded it.
pub fn newest_checkpoint(state: &State) -> Option<NewestCheckpoint> {
    let now = state.journal.newest.as_ref()?;
    let checkpoint = now.summary.checkpoint.as_ref()?;
    let recorded = launcher::moment::age(now.at_ms);
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
            @if let Some(findings) = findings { span.quiet.small { " · seen " (moment(findings.at_ms)) } }
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
            p.empty { "A run is checked while it is at work." }
        } @else if raised.is_empty() {
            p.empty {
                "Nothing is wrong. These alarms are checked, as " code { "minuet doctor" } " does: "
                (alarms::all().map(|kind| title(kind.name).to_lowercase()).collect::<Vec<String>>().join(", ")) "."
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
                    b { (title(alarm.name)) }
                    @if is_critical { span.hidden-text { " (critical)" } }
                    ": " (alarm.text) "."
                }
                p.fix {
                    (with_code(&capital(alarm.fix))) "."
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
    let mut titles: Vec<String> = raised.iter().map(|alarm| title(alarm.name)).collect();
    titles.dedup();
    html! {
        @match titles.len() {
            0 => { "No alarm." }
            1 => { "Alarm: " (titles.join(", ")) "." }
            _ => { "Alarms: " (titles.join(", ")) "." }
        }
    }
}
