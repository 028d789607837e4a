//! [`Check`]: one line of the result.

use launcher::alarms::{Alarm, Severity};
use serde::Serialize;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing to do.
    Ok,
    /// Runs work, but slower or with less safety.
    Warn,
    /// A run would not work.
    Fail,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Name of the thing.
    pub name: String,
    /// Result.
    pub state: State,
    /// Finding.
    pub text: String,
    /// Remedy: an action of a person; empty if all is well.
    pub fix: String,
}

impl Check {
    /// A finding that needs nothing.
    pub fn ok(name: &str, text: impl Into<String>) -> Self {
        Self::new(name, State::Ok, text, "")
    }

    /// A finding that makes runs slower or less safe.
    pub fn warn(name: &str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(name, State::Warn, text, fix)
    }

    /// A finding with which a run would not work.
    pub fn fail(name: &str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(name, State::Fail, text, fix)
    }

    fn new(name: &str, state: State, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state,
            text: text.into(),
            fix: fix.into(),
        }
    }

    /// An alarm as a line.
    pub fn of_alarm(alarm: &Alarm) -> Self {
        let state = match alarm.severity {
            Severity::Warning => State::Warn,
            Severity::Critical => State::Fail,
        };
        let setting = alarm.setting.map(|setting| format!("; perhaps --set {setting}"));
        let fix = format!("{}{}", alarm.fix, setting.unwrap_or_default());
        Self::new(alarm.name, state, alarm.text.as_str(), fix)
    }

    /// Formats the check for people: a line, and one with the remedy.
    pub fn lines(&self) -> String {
        let state = match self.state {
            State::Ok => "ok",
            State::Warn => "warn",
            State::Fail => "FAIL",
        };
        let fix = match self.fix.as_str() {
            "" => String::new(),
            fix => format!("{:>20}{fix}\n", "→ "),
        };
        format!("{state:<5} {:<12} {}\n{fix}", self.name, self.text)
    }
}
