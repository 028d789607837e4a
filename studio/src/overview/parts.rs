//! Parts of the overview: status, losses, strength, problems, machine, newest game, events.

use arena::{matches::ClassStanding, rating::Outcome, statistics::Rating};
use checkpoints::Version;
use maud::{Markup, html};

use super::{newest::Newest, state::State};
use crate::{
    board::{self, View},
    chart::{Chart, Curve, Look, chart, digits},
    figures::{
        learning::Head,
        series::Point,
        words::{bytes, capital, clock, count, moment, percent, shown, version},
    },
    page::columns,
    run::Run,
};

/// Events that are shown.
const EVENTS: usize = 12;
/// Milliseconds by which figures may be dated later than the studio's own clock.
const CLOCKS_DIFFER_MS: u64 = 60_000;

/// The state of the run in a sentence, with the age of its figures, and the stage that limits it.
pub fn status(state: &State) -> Markup {
    let Some(now) = &state.journal.newest else {
        return html! {
            p.status { span.lamp.off {} b { @if state.is_running { "Starting" } @else { "Not started yet" } } }
            p.limit {
                @if state.is_running { "The first figures come within seconds." }
                @else { "Start the run with " code { "minuet up" } "; the diagram below fills while it works." }
            }
        };
    };
    let summary = &now.summary;
    let step = summary
        .learner
        .step
        .or(summary.checkpoint.as_ref().map(|checkpoint| checkpoint.step));
    html! {
        p.status {
            @if state.is_running { span.lamp.on {} b { "Training" } } @else { span.lamp.off {} b { "Stopped" } }
            @if !state.is_elsewhere { span { (clock(std::time::Duration::from_secs_f64(summary.after_seconds.max(0.0)))) } }
            span { "step " (shown(step, |step| count(step as f64))) }
            span.quiet { "figures of " (moment(now.at_ms)) }
        }
        p.limit {
            @if state.is_running { (capital(&summary.limit)) "." }
            @else { "These are its last figures. The same " code { "minuet up" } " continues the run." }
        }
        @if now.at_ms > launcher::moment::now() + CLOCKS_DIFFER_MS {
            p.limit { "The figures are dated later than now: a clock was put back, or the clocks of two machines differ." }
        }
    }
}

/// Losses of one head in training and on held-out games.
pub fn losses(title: &str, head: &Head) -> Markup {
    html! {
        (chart(&Chart {
            title,
            across: "step",
            range: None,
            figure: digits,
            curves: &[
                Curve { name: "training", points: head.training.points(), look: Look::FIRST },
                Curve { name: "held-out games", points: head.held_out.points(), look: Look::SECOND },
            ],
            empty: "The learner writes its first losses ten seconds after its first step.",
        }))
        p.quiet.small {
            @match head.gap {
                Some(gap) => { "Gap between held-out and trained games: " (format!("{gap:+.3}")) "." }
                None => { "Held-out games are measured at each checkpoint." }
            }
        }
    }
}

/// Ratings of the checkpoints with their intervals.
pub fn strength(state: &State) -> Markup {
    let points = |which: fn([Option<Rating>; 2]) -> Option<Rating>| -> Vec<Point> {
        let rated = state.rated.iter().filter_map(|line| {
            let rating = which(line.ratings())?;
            Some(Point::with_interval(
                line.step as f64,
                rating.elo,
                rating.low,
                rating.high,
            ))
        });
        let mut points: Vec<Point> = rated.collect();
        points.sort_by(|left, right| left.x.total_cmp(&right.x));
        points
    };
    let newest = state.journal.newest.as_ref();
    let rating = newest.and_then(|now| now.summary.rating.as_ref());
    let mut rated = points(|[candidate, _]| candidate);
    // The match that is being played.
    let live = rating.and_then(|rating| rating.latest.as_ref());
    let live = live.filter(|live| rated.iter().all(|point| point.x != live.step as f64));
    rated.extend(live.map(|live| Point::with_interval(live.step as f64, live.elo, live.low, live.high)));
    let best = points(|[_, best]| best);
    html! {
        (rating_now(state))
        (chart(&Chart {
            title: "Elo above the first checkpoint, with 95 % intervals",
            across: "step",
            range: None,
            figure: digits,
            curves: &[
                Curve { name: "best", points: &best, look: Look::FIRST },
                Curve { name: "rated", points: &rated, look: Look::SECOND },
            ],
            empty: "No checkpoint is rated yet: the first match begins with the second checkpoint.",
        }))
        @if let Some(line) = state.rated.last() {
            p.quiet.small {
                (version(&line.candidate.to_string())) " against " (version(&line.opponent.to_string())) ": "
                @match ClassStanding::sum(&line.problems) {
                    Some(all) => {
                        "solved " (all.solved[0]) " and " (all.solved[1]) " of " (all.problems) " held-out problems; "
                    }
                    None => { (line.wins) " won, " (line.draws) " drawn, " (line.losses) " lost; " }
                }
                (outcome(line.outcome)) "."
            }
            @if !line.problems.is_empty() { (solved(&line.problems)) }
        }
    }
}

/// Rating of the newest checkpoint that was rated or is being rated, with its interval; nothing before the first match.
pub fn rating_now(state: &State) -> Markup {
    let newest = state.journal.newest.as_ref();
    let rating = newest.and_then(|now| now.summary.rating.as_ref());
    html! {
        @if let Some((rating, latest)) = rating.and_then(|rating| Some((rating, rating.latest?))) {
            p.rating {
                b { (format!("{:+.0} Elo", latest.elo)) }
                span.quiet {
                    " (95 %: " (format!("{:+.0} to {:+.0}", latest.low, latest.high)) "), step " (count(latest.step as f64))
                    @if let Some(games) = rating.games { ", " (count(games as f64)) " games" }
                }
            }
        }
    }
}

/// Shares of the held-out problems that the two checkpoints of a rated match solved, by kind and level.
fn solved(classes: &[ClassStanding]) -> Markup {
    let share = |class: &ClassStanding, player: usize| {
        let solved = class.solved.get(player).copied().unwrap_or_default();
        percent(solved as f64 / class.problems.max(1) as f64)
    };
    html! {
        table.figures {
            (columns(&["Problems", "Level", "Solved", "By the best"]))
            tbody {
                @for class in classes {
                    tr {
                        th scope="row" { (class.problems) " " (class.class.kind) }
                        td { (class.class.level) }
                        td { (share(class, 0)) }
                        td { (share(class, 1)) }
                    }
                }
            }
        }
    }
}

/// True if the run's game is about problems.
pub fn has_problems(run: &Run) -> bool {
    run.game().is_ok_and(|game| game.levels > 0)
}

/// Level, share of solved problems and length of their solutions, for each kind of problem.
pub fn problems(state: &State) -> Markup {
    let newest = state.journal.newest.as_ref();
    let kinds = newest.map_or(&[][..], |now| &now.summary.problems);
    html! {
        @if kinds.is_empty() {
            p.empty { "Level, solved problems and lengths of solutions, by kind of problem." }
        } @else {
            table.figures {
                (columns(&["Kind", "Level", "Solved", "Moves"]))
                tbody {
                    @for kind in kinds {
                        tr {
                            th scope="row" { (kind.kind) }
                            td { (kind.shown_level()) }
                            td { (shown(kind.solve_rate, percent)) span.quiet { " of " (kind.recent) } }
                            td { (shown(kind.moves, |moves| format!("{moves:.1}"))) }
                        }
                    }
                }
            }
            p.quiet.small { "The latest problems of the present level. When enough of them are solved, the next level begins." }
        }
    }
}

/// Outcome of a rated match in words.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Promoted => "it is the best checkpoint now",
        Outcome::Kept => "the best checkpoint stays",
        Outcome::Undecided => "undecided after its games or its time",
        Outcome::Overtaken => "another checkpoint became the best meanwhile",
        Outcome::Placed => "the best checkpoint got its rating",
    }
}

/// Processes with their memory and processor time.
pub fn machine(state: &State) -> Markup {
    let Some(now) = &state.journal.newest else {
        return html! { p.empty { "Memory and processor time of each process." } };
    };
    html! {
        table.figures {
            (columns(&["Process", "Cores", "Memory"]))
            tbody {
                @for process in &now.summary.processes {
                    tr {
                        th scope="row" { (process.name) }
                        td { (shown(process.cores, |cores| format!("{cores:.2}"))) }
                        td { (shown(process.memory_bytes, bytes)) }
                    }
                }
            }
            tfoot {
                tr {
                    th scope="row" { "together" }
                    td { (format!("{:.2}", now.summary.processes.iter().filter_map(|process| process.cores).sum::<f64>())) }
                    td { (bytes(now.summary.memory_bytes)) }
                }
            }
        }
    }
}

/// The newest game, with its last position.
pub fn newest(newest: Option<&Newest>) -> Markup {
    let Some(newest) = newest else {
        return html! { p.empty { "The first finished game appears here." } };
    };
    html! {
        @if let Some(end) = &newest.end { (board::boards(end, View::default())) }
        p { (newest.result) " " span.quiet { (newest.length) " · " (moment(newest.finished_at_ms)) } }
        p { a href=(format!("/games/{}?ply=0", newest.id)) { "Replay it" } }
    }
}

/// The last events, newest first.
pub fn events(state: &State) -> Markup {
    let kept = state.journal.events.iter().rev().take(EVENTS);
    html! {
        @if state.journal.events.is_empty() {
            p.empty { "What the run does is listed here." }
        } @else {
            ol.events {
                @for event in kept {
                    li {
                        (moment(event.at_ms))
                        (said(event.text.first().map_or(event.event.as_str(), String::as_str)))
                    }
                }
            }
        }
    }
}

/// A line of an event, in which the versions of checkpoints are their steps.
fn said(line: &str) -> Markup {
    html! {
        span title=(line) {
            @for word in line.split_inclusive([' ', ':']) {
                @let bare = word.trim_end_matches([' ', ':']);
                @if bare.parse::<Version>().is_ok() { (version(bare)) (word.get(bare.len()..).unwrap_or_default()) } @else { (word) }
            }
        }
    }
}
