//! The diagram of the run: roles, and what flows between them with its rate.
//!
//! The diagram is a list in the order of a position's journey, which a wide page lays out as a loop.

use launcher::watch::Inference;
use maud::{Markup, html};

use super::state::State;
use crate::figures::words::{bytes, count, moment, percent, rate, short_time, shown, version};

/// The diagram. Unknown figures are dashes, so it has its form before the run begins.
pub fn flow(state: &State) -> Markup {
    let newest = state.journal.newest.as_ref();
    let summary = newest.map(|now| now.summary.clone()).unwrap_or_default();
    let (actor, inference) = (&summary.actor, &summary.inference);
    let (replay, learner) = (&summary.replay, &summary.learner);
    let published = newest.zip(summary.checkpoint.as_ref());
    html! {
        ol.flow {
            li.node.actors {
                (head("Actors", actor.busy_ratio, "busy"))
                @if actor.off {
                    p { b { "off" } } p.quiet { "--actors 0: no self-play" }
                } @else {
                    p { b { (shown(actor.visits_per_second, rate)) } " visits/s" }
                    p.quiet { (shown(actor.cache_hit_ratio, percent)) " from the cache" }
                }
            }
            li.arrow.down.games-arrow {
                span { b { (shown(replay.games_per_hour, count)) } " games/h" }
                span.quiet { (shown(actor.spooled_games, |games| count(games as f64))) " in the spool" }
            }
            li.node.replay {
                (head("Replay", None, ""))
                p { b { (shown(replay.window_positions, |positions| count(positions as f64))) } " positions" }
                p.quiet { (shown(replay.games, |games| count(games as f64))) " games · " (shown(replay.disk_bytes, bytes)) " (" (shown(replay.free_bytes, bytes)) " free)" }
            }
            li.arrow.right.samples-arrow {
                span { b { (shown(learner.samples_per_position, |ratio| format!("{ratio:.2}"))) } " samples a position" }
                span.quiet { @if learner.waiting { "the learner waits for positions" } @else { "drawn at random" } }
            }
            li.node.learner {
                (head("Learner", None, ""))
                p { b { (shown(learner.steps_per_second, rate)) } " steps/s" }
                p.quiet { "step " (shown(learner.step, |step| count(step as f64))) }
            }
            li.arrow.up.publish-arrow {
                span { b { "publishes" } }
                span.quiet { "each proven first" }
            }
            li.node.checkpoints {
                (head("Checkpoints", None, ""))
                @match published {
                    Some((now, checkpoint)) => {
                        p { b { (version(&checkpoint.version)) } }
                        p.quiet { (moment(now.at_ms.saturating_sub((1e3 * checkpoint.age_seconds) as u64))) }
                    }
                    None => { p { b { "none yet" } } p.quiet { "the first is untrained" } }
                }
            }
            li.arrow.left.serve-arrow {
                @match &inference.version {
                    Some(served) => { span { b { (version(served)) } } span.quiet { (served_note(inference, "serves now")) } }
                    None => { span { b { "–" } } span.quiet { (served_note(inference, "no network yet")) } }
                }
            }
            li.node.inference {
                (head("Inference", inference.busy_ratio, "busy"))
                p { b { (shown(inference.positions_per_second, rate)) } " positions/s" }
                p.quiet {
                    "batch " (shown(inference.batch_size, |size| format!("{size:.0}")))
                    " (" (shown(inference.batch_fill_ratio, percent)) ") · waits " (shown(inference.queue_seconds, short_time))
                }
            }
            li.arrow.both.rows-arrow {
                span { b { (shown(actor.fresh_evaluations_per_second, rate)) } " rows/s" }
                span.quiet { "priors and values back" }
            }
        }
    }
}

/// Words below the served version.
fn served_note(inference: &Inference, usual: &'static str) -> &'static str {
    match inference.newest_refused {
        Some(_) => "refuses the newest",
        None => usual,
    }
}

/// Title of a role, with its busy share as words and as a bar.
fn head(name: &str, busy: Option<f64>, word: &str) -> Markup {
    html! {
        h3 {
            (name)
            @if !word.is_empty() { span.quiet { (shown(busy, percent)) " " (word) } }
        }
        @if !word.is_empty() {
            meter min="0" max="1" value=(format!("{:.2}", busy.unwrap_or(0.0))) aria-label=(format!("{name}: share of the time with work")) {}
        }
    }
}
