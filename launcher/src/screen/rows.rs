//! Formats the figures as rows, one for each stage in the order of a position's journey, and as one line.

use std::time::Duration;

use super::figures::{age, bar, bytes, clock, count, or_dash, percent, rate, short_time};
use crate::watch::{Elo, Problems, Rating, Summary};

/// Returns the rows of the table: a stage, its load, and its figures.
pub fn rows(summary: &Summary) -> Vec<String> {
    let row = |stage: &str, busy: Option<f64>, figures: String| {
        let fill = or_dash(busy, |busy| format!("{} {:>5}", bar(busy), percent(busy)));
        format!("{stage:<11} {fill:<16}  {figures}")
    };
    let actor = &summary.actor;
    let inference = &summary.inference;
    let replay = &summary.replay;
    let learner = &summary.learner;
    let known = |value: Option<f64>| or_dash(value, rate);
    let whole = |value: Option<u64>| or_dash(value, |value| count(value as f64));
    let cores: f64 = summary.processes.iter().filter_map(|process| process.cores).sum();
    let down: Vec<&str> = summary
        .processes
        .iter()
        .filter(|process| !process.ready)
        .map(|process| process.name.as_str())
        .collect();
    let mut all = vec![
        String::new(),
        row(
            "self-play",
            actor.busy_ratio,
            format!(
                "{} visits/s   {} fresh/s   {} cached   {} games in spool",
                known(actor.visits_per_second),
                known(actor.fresh_evaluations_per_second),
                or_dash(actor.cache_hit_ratio, percent),
                whole(actor.spooled_games)
            ),
        ),
        row(
            "inference",
            inference.busy_ratio,
            format!(
                "{} positions/s   batch {} ({} full)   wait {}   {}",
                known(inference.positions_per_second),
                or_dash(inference.batch_size, |size| format!("{size:.0}")),
                or_dash(inference.batch_fill_ratio, percent),
                or_dash(inference.queue_seconds, short_time),
                inference.provider.as_deref().unwrap_or("–"),
            ),
        ),
        row(
            "replay",
            None,
            format!(
                "{} games   {} positions ({} in the window)   {} positions/s   {} games/h   {}",
                whole(replay.games_inserted),
                whole(replay.positions_inserted),
                whole(replay.window_positions),
                known(replay.positions_per_second),
                or_dash(replay.games_per_hour, count),
                or_dash(replay.disk_bytes, bytes)
            ),
        ),
        row(
            "learner",
            None,
            format!(
                "step {}   loss policy {} value {}   {} steps/s   {} samples a position{}",
                whole(learner.step),
                loss(learner.policy_loss),
                loss(learner.value_loss),
                known(learner.steps_per_second),
                or_dash(learner.samples_per_position, |ratio| format!("{ratio:.2}")),
                if learner.waiting {
                    "   waiting for positions"
                } else {
                    ""
                }
            ),
        ),
        row("checkpoint", None, checkpoint(summary)),
        row(
            "machine",
            None,
            format!("{} memory   {cores:.1} cores", bytes(summary.memory_bytes)),
        ),
        format!(
            "{}  {}",
            clock(Duration::from_secs_f64(summary.after_seconds)),
            summary.limit
        ),
    ];
    if let Some(rating) = &summary.rating {
        let games = whole(rating.games);
        let figures = format!("{}   {games} games", elo(rating));
        all.insert(all.len() - 2, row("rating", None, figures));
    }
    if !summary.problems.is_empty() {
        // Below self-play, which the empty line precedes.
        all.insert(2, row("problems", None, problems(summary, "   ")));
    }
    if !down.is_empty() {
        all.push(format!("not ready   {}", down.join(", ")));
    }
    all
}

/// Returns the figures as one line.
pub fn line(summary: &Summary) -> String {
    let known = |value: Option<f64>| or_dash(value, rate);
    let whole = |value: Option<u64>| or_dash(value, |value| count(value as f64));
    let rated = summary.rating.as_ref();
    format!(
        "{} games, {} positions | {} visits/s, {} fresh/s, {} cached{} | batch {}, wait {}, inference busy {} | \
         step {}, policy {}, value {}, {} samples a position | checkpoint {}{} | {} | {}",
        whole(summary.replay.games_inserted),
        whole(summary.replay.positions_inserted),
        known(summary.actor.visits_per_second),
        known(summary.actor.fresh_evaluations_per_second),
        or_dash(summary.actor.cache_hit_ratio, percent),
        match &summary.problems[..] {
            [] => String::new(),
            _ => format!(" | {}", problems(summary, ", ")),
        },
        or_dash(summary.inference.batch_size, |size| format!("{size:.0}")),
        or_dash(summary.inference.queue_seconds, short_time),
        or_dash(summary.inference.busy_ratio, percent),
        whole(summary.learner.step),
        loss(summary.learner.policy_loss),
        loss(summary.learner.value_loss),
        or_dash(summary.learner.samples_per_position, |ratio| format!(
            "{ratio:.2}"
        )),
        checkpoint(summary),
        rated.map_or_else(String::new, |rating| format!(" | Elo {}", elo(rating))),
        bytes(summary.memory_bytes),
        summary.limit,
    )
}

/// Formats the progress with each kind of problem: level, share of solved ones, mean length of their solutions. Then what
/// re-analysis has found.
fn problems(summary: &Summary, separator: &str) -> String {
    let one = |problems: &Problems| {
        let Problems { kind, recent, .. } = problems;
        format!(
            "{kind} level {}: {} of {recent} solved, {} moves",
            problems.shown_level(),
            or_dash(problems.solve_rate, percent),
            or_dash(problems.moves, |moves| format!("{moves:.1}")),
        )
    };
    let all: Vec<String> = summary.problems.iter().map(one).collect();
    all.join(separator)
}

/// Formats the ratings of the best and the newest checkpoint, each with half its interval.
fn elo(rating: &Rating) -> String {
    let one = |elo: Option<Elo>| {
        or_dash(elo, |elo| {
            let Elo { step, elo, low, high } = elo;
            format!(
                "{elo:+.0} ± {:.0} (step {})",
                (high - low) / 2.0,
                count(step as f64)
            )
        })
    };
    format!("best {}, latest {}", one(rating.best), one(rating.latest))
}

fn loss(value: Option<f64>) -> String {
    or_dash(value, |value| format!("{value:.3}"))
}

fn checkpoint(summary: &Summary) -> String {
    let Some(checkpoint) = &summary.checkpoint else {
        return "none yet".into();
    };
    let serving = match &summary.inference.version {
        Some(version) if *version == checkpoint.version => "",
        _ => ", not serving yet",
    };
    format!(
        "{} ({}, {} old{serving})",
        checkpoint.version,
        if checkpoint.step == 0 {
            "no steps yet"
        } else {
            "trained"
        },
        age(checkpoint.age_seconds)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{Checkpoint, Elo, Problems, Rating};

    #[test]
    fn unknown_figures_are_dashes_and_known_ones_are_shown() {
        let mut summary = Summary::default();
        assert!(line(&summary).starts_with("– games, – positions | – visits/s"));
        assert!(rows(&summary).iter().any(|row| row.contains("none yet")));

        summary.replay.games_inserted = Some(1_204);
        summary.actor.visits_per_second = Some(21_340.2);
        summary.learner.policy_loss = Some(2.31);
        summary.inference.version = Some("000000000000-aa".into());
        summary.checkpoint = Some(Checkpoint {
            version: "000000000150-3fa94c21".into(),
            step: 150,
            age_seconds: 12.0,
        });
        summary.limit = "inference is busy 93 %".into();
        let all = rows(&summary).join("\n");
        for part in [
            "1,204 games",
            "21,340 visits/s",
            "policy 2.310",
            "000000000150-3fa94c21 (trained, 12 s old, not serving yet)",
            "inference is busy 93 %",
        ] {
            assert!(all.contains(part), "{part} in {all}");
        }
        summary.inference.version = Some("000000000150-3fa94c21".into());
        assert!(line(&summary).contains("(trained, 12 s old) |"));
        assert!(!line(&summary).contains("Elo") && !line(&summary).contains("level"));
        summary.problems = vec![
            Problems {
                kind: "draw".into(),
                level: 7.0,
                recent: 50,
                solve_rate: Some(0.68),
                moves: Some(6.14),
            },
            Problems {
                kind: "pair".into(),
                level: 1.5,
                ..Problems::default()
            },
        ];
        let (draw, pair) = (
            "draw level 7: 68 % of 50 solved, 6.1 moves",
            "pair level 1.5: – of 0 solved, – moves",
        );
        let row = rows(&summary).remove(2);
        assert!(
            row.starts_with("problems ") && row.ends_with(&format!("{draw}   {pair}")),
            "{row}"
        );
        assert!(
            line(&summary).contains(&format!(" | {draw}, {pair} | ")),
            "{}",
            line(&summary)
        );
        summary.rating = Some(Rating {
            best: Some(Elo {
                step: 1_100,
                elo: 212.4,
                low: 180.0,
                high: 250.0,
            }),
            games: Some(34),
            ..Rating::default()
        });
        let rated = "best +212 ± 35 (step 1,100), latest –";
        assert!(
            line(&summary).contains(&format!("| Elo {rated} |")),
            "{}",
            line(&summary)
        );
        let all = rows(&summary).join("\n");
        assert!(all.contains(&format!("{rated}   34 games")), "{all}");
    }
}
