//! Formats the figures as rows, one for each stage in the order of a position's journey, and as one line.

use std::time::Duration;

use super::figures::{age, bar, bytes, clock, count, or_dash, percent, rate, short_time};
use crate::watch::{Elo, Problems, Rating, Summary};

/// A stage of the run: its name, its load, and its figures, which three spaces separate.
struct Stage(&'static str, Option<f64>, String);

fn stages(summary: &Summary) -> Vec<Stage> {
    let Summary {
        actor,
        inference,
        replay,
        learner,
        ..
    } = summary;
    let known = |value: Option<f64>| or_dash(value, rate);
    let whole = |value: Option<u64>| or_dash(value, |value| count(value as f64));
    let cores: f64 = summary.processes.iter().filter_map(|process| process.cores).sum();
    let self_play = match actor.off {
        true => "off (--actors 0)".into(),
        false => format!(
            "{} visits/s   {} fresh/s   {} cached   {} games in spool",
            known(actor.visits_per_second),
            known(actor.fresh_evaluations_per_second),
            or_dash(actor.cache_hit_ratio, percent),
            whole(actor.spooled_games)
        ),
    };
    let evaluation = format!(
        "{} positions/s   batch {} ({} full)   wait {}   {}",
        known(inference.positions_per_second),
        or_dash(inference.batch_size, |size| format!("{size:.0}")),
        or_dash(inference.batch_fill_ratio, percent),
        or_dash(inference.queue_seconds, short_time),
        inference.provider.as_deref().unwrap_or("–"),
    );
    let stored = format!(
        "{} games   {} positions ({} in the window)   {} positions/s   {} games/h   {} ({} free)",
        whole(replay.games_inserted),
        whole(replay.positions_inserted),
        whole(replay.window_positions),
        known(replay.positions_per_second),
        or_dash(replay.games_per_hour, count),
        or_dash(replay.disk_bytes, bytes),
        or_dash(replay.free_bytes, bytes)
    );
    let training = format!(
        "step {}   loss policy {} value {}   {} steps/s   {} samples a position{}",
        whole(learner.step),
        loss(learner.policy_loss),
        loss(learner.value_loss),
        known(learner.steps_per_second),
        or_dash(learner.samples_per_position, |ratio| format!("{ratio:.2}")),
        match learner.waiting {
            true => "   waiting for positions",
            false => "",
        }
    );
    let mut all = vec![Stage("self-play", actor.busy_ratio, self_play)];
    if !summary.problems.is_empty() {
        all.push(Stage("problems", None, problems(summary)));
    }
    all.push(Stage("inference", inference.busy_ratio, evaluation));
    all.push(Stage("replay", None, stored));
    all.push(Stage("learner", None, training));
    all.push(Stage("checkpoint", None, checkpoint(summary)));
    if let Some(rating) = &summary.rating {
        let figures = format!("{}   {} games", elo(rating), whole(rating.games));
        all.push(Stage("rating", None, figures));
    }
    let machine = format!("{} memory   {cores:.1} cores", bytes(summary.memory_bytes));
    all.push(Stage("machine", None, machine));
    all
}

/// Returns the rows of the table: each stage, its load, and its figures.
pub fn rows(summary: &Summary) -> Vec<String> {
    let row = |Stage(name, busy, figures)| {
        let fill = or_dash(busy, |busy| format!("{} {:>5}", bar(busy), percent(busy)));
        format!("{name:<11} {fill:<16}  {figures}")
    };
    let mut all = vec![String::new()];
    all.extend(stages(summary).into_iter().map(row));
    let since = clock(Duration::from_secs_f64(summary.after_seconds));
    all.push(format!("{since}  {}", summary.limit));
    let down = summary.processes.iter().filter(|process| !process.ready);
    let down: Vec<&str> = down.map(|process| process.name.as_str()).collect();
    if !down.is_empty() {
        all.push(format!("not ready   {}", down.join(", ")));
    }
    all
}

/// Returns the figures as one line.
pub fn line(summary: &Summary) -> String {
    let part = |Stage(name, busy, figures): Stage| {
        let busy = busy.map_or_else(String::new, |busy| format!(" {} busy,", percent(busy)));
        format!("{name}{busy} {}", figures.replace("   ", ", "))
    };
    let mut parts: Vec<String> = stages(summary).into_iter().map(part).collect();
    parts.push(summary.limit.clone());
    parts.join(" | ")
}

/// Formats the progress with each kind of problem: level, share of solved ones, mean length of their solutions.
fn problems(summary: &Summary) -> String {
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
    all.join("   ")
}

/// Formats the ratings of the best checkpoint and of the one that plays against it, each with half its interval.
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
    let candidate = rating
        .latest
        .filter(|latest| Some(latest.step) != rating.best.map(|best| best.step));
    format!("best {}, candidate {}", one(rating.best), one(candidate))
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
        _ if summary.inference.newest_refused.is_some() => ", refused by the inference server",
        _ => ", not serving yet",
    };
    format!(
        "{} ({}, {} old{serving})",
        checkpoint.version,
        match checkpoint.step {
            0 => "no steps yet",
            _ => "trained",
        },
        age(checkpoint.age_seconds)
    )
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use crate::watch::{Checkpoint, Elo, Problems, Rating};

    #[test]
    fn unknown_figures_are_dashes_and_known_ones_are_shown() {
        let mut summary = Summary::default();
        assert!(line(&summary).starts_with("self-play – visits/s, – fresh/s"));
        summary.actor.off = true;
        assert!(line(&summary).starts_with("self-play off (--actors 0) | inference"));
        summary.actor.off = false;
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
        assert!(!line(&summary).contains("rating") && !line(&summary).contains("level"));
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
        let text = line(&summary);
        assert!(text.contains(&format!(" | problems {draw}, {pair} | ")), "{text}");
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
        let rated = "best +212 ± 35 (step 1,100), candidate –";
        let text = line(&summary);
        assert!(text.contains(&format!("| rating {rated}, 34 games |")), "{text}");
        let all = rows(&summary).join("\n");
        assert!(all.contains(&format!("{rated}   34 games")), "{all}");
    }

    #[test]
    fn picture_of_the_readme_has_every_word_of_the_table() {
        let picture = include_str!("../../../docs/pictures/make-up.svg").replace("&#160;", " ");
        let mut summary = Summary {
            rating: Some(Rating::default()),
            checkpoint: Some(Checkpoint {
                version: String::new(),
                step: 1,
                age_seconds: 1.0,
            }),
            ..Summary::default()
        };
        summary.inference.version = Some(String::new());
        for word in stages(&summary)
            .iter()
            .flat_map(|Stage(name, _, figures)| iter::once(*name).chain(figures.split_whitespace()))
        {
            let word = word.trim_matches(['(', ')', ',']);
            let is_figure = word.contains(|letter: char| letter.is_ascii_digit() || letter == '–');
            assert!(
                is_figure || picture.contains(word),
                "{word} is not in docs/pictures/make-up.svg: take it anew with make pictures"
            );
        }
    }
}
