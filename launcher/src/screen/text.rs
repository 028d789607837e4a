//! Formats events as lines of text.

use super::figures::{age, count, or_dash};
use crate::event::{Event, StoppedRun, is_needed};

/// Returns the lines for an event; some events have none.
pub fn lines(event: &Event) -> Vec<String> {
    match event {
        Event::Studio { url } => vec![format!("studio: {url}")],
        Event::Started {
            run,
            game,
            new,
            settings,
            ..
        } => {
            let begins = if *new { "a new run" } else { "the run continues" };
            let mut lines = vec![format!("{game}: {begins} in {run}")];
            lines.extend(settings.clone());
            lines.push(format!(
                "settings: {run}/run.toml   logs: {run}/logs/   Ctrl-C stops without loss"
            ));
            lines
        }
        Event::LeftOver { name, pid } => {
            vec![format!(
                "waiting for the {name} of an earlier start (process {pid}) to finish"
            )]
        }
        Event::RoleStarted { .. } | Event::Summary(_) => Vec::new(),
        Event::RoleReady { name, after_seconds } => {
            vec![format!("{name} is ready after {after_seconds:.1} s")]
        }
        Event::RoleExited {
            name,
            status,
            after_seconds,
            again_in_seconds,
            last_lines,
        } => {
            let first = format!(
                "{name} ended after {} ({status}); restarting in {again_in_seconds:.1} s",
                age(*after_seconds)
            );
            quoted(first, last_lines)
        }
        Event::RoleFailed {
            name,
            reason,
            log,
            last_lines,
        } => quoted(
            format!(
                "{name} failed permanently: {reason}; its log is {log}{}",
                if is_needed(name) {
                    ""
                } else {
                    "; the run continues without it"
                }
            ),
            last_lines,
        ),
        Event::Warning { text } => vec![format!("warning: {text}")],
        Event::Chosen {
            key,
            value,
            reason,
            kept,
        } => {
            let when = if *kept {
                "measured at an earlier start"
            } else {
                "measured"
            };
            vec![format!(
                "{key} = {value} ({when}: {reason}); --set {key}=N fixes it"
            )]
        }
        Event::FirstGame { after_seconds } => {
            vec![format!("first game stored after {}", age(*after_seconds))]
        }
        Event::Checkpoint {
            version,
            step,
            positions_seen,
            ..
        } => vec![match step {
            0 => format!("checkpoint {version}: the first network, before any training step"),
            _ => format!(
                "checkpoint {version}: {} steps, {} samples",
                count(*step as f64),
                count(*positions_seen as f64)
            ),
        }],
        Event::Promoted { version, step, .. } => vec![format!(
            "{version} ({} steps) is the best checkpoint now",
            count(*step as f64)
        )],
        Event::Serving { version, .. } => vec![format!("the inference server serves {version}")],
        Event::Stopping { reason } => vec![format!("{reason}: stopping (a second signal stops at once)")],
        Event::RoleStopped { name, killed } => vec![if *killed {
            format!("{name} did not stop in time and was killed; acknowledged games are kept")
        } else {
            format!("{name} stopped")
        }],
        Event::Stopped(kept) => stopped(kept),
    }
}

fn quoted(first: String, log: &[String]) -> Vec<String> {
    let rest = log.iter().map(|line| format!("    | {line}"));
    std::iter::once(first).chain(rest).collect()
}

fn stopped(kept: &StoppedRun) -> Vec<String> {
    let number = |value: Option<u64>| or_dash(value, |value| count(value as f64));
    let counts = format!(
        "{} games, {} positions, checkpoint {}",
        number(kept.games),
        number(kept.positions),
        kept.checkpoint.as_deref().unwrap_or("none")
    );
    match kept.moved {
        false => vec![
            format!("kept in {}: {counts}", kept.run),
            "the same command continues the run".into(),
        ],
        true => vec![
            format!("{counts} were stored"),
            format!(
                "{} was moved or deleted meanwhile; if it was moved, minuet up --run with its new name continues the run",
                kept.run
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_an_ended_role_is_quoted() {
        let said = lines(&Event::RoleExited {
            name: "learner".into(),
            status: "exit status: 1".into(),
            after_seconds: 2.0,
            again_in_seconds: 0.4,
            last_lines: vec!["ERROR the store is gone".into()],
        });
        assert_eq!(
            said,
            [
                "learner ended after 2 s (exit status: 1); restarting in 0.4 s",
                "    | ERROR the store is gone"
            ]
        );
    }

    #[test]
    fn the_end_shows_the_counts_that_are_kept() {
        let said = lines(&Event::Stopped(StoppedRun {
            run: "runs/paco-sako".into(),
            games: Some(1_204),
            ..StoppedRun::default()
        }));
        assert_eq!(
            said[0],
            "kept in runs/paco-sako: 1,204 games, – positions, checkpoint none"
        );
    }
}
