//! The printed output of `minuet arena`.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use arena::{
    matches::{
        ClassStanding, GameRecord, Plan, RULES_FAILED, Standing, conduct::Ended, standing::PairingStanding,
    },
    statistics::wilson,
};
use serde_json::json;

/// Prints the results as tables, or as one JSON object.
pub fn print(plan: &Plan, standing: &Standing, ended: Ended, folder: &Path, games: &Path, as_json: bool) {
    if as_json {
        let mut report = json!(standing);
        report["ended"] = json!(ended);
        report["seed"] = plan.seed.into();
        report["entrants"] = json!(plan.players);
        report["folder"] = json!(folder.display().to_string());
        report["games_file"] = json!(games.display().to_string());
        println!("{report}");
    } else {
        print!("{}", service::plain_lines(&text(plan, standing, games)));
    }
}

/// A line about the first two players for the progress display of a game of `players` players.
pub fn running(plan: &Plan, records: &BTreeMap<u64, GameRecord>, players: u8) -> String {
    if players == 1 {
        let problems = PairingStanding::of(plan, records, [0, 1]).problems;
        return ClassStanding::sum(&problems).map_or_else(String::new, |all| {
            format!(
                "solved {} and {} of {}",
                all.solved[0], all.solved[1], all.problems
            )
        });
    }
    let [mut wins, mut draws, mut losses] = [0, 0, 0];
    for record in records
        .values()
        .filter(|record| plan.slot(record.game).pairing == [0, 1])
    {
        match record.half_points_of(0) {
            Some(2) => wins += 1,
            Some(1) => draws += 1,
            Some(_) => losses += 1,
            None => {}
        }
    }
    format!("+{wins} ={draws} -{losses}")
}

fn text(plan: &Plan, standing: &Standing, games: &Path) -> String {
    let mut text = format!(
        "{}: {} of {} games, seed {}, in {}\n\n",
        standing.game,
        standing.games[0],
        standing.games[1],
        plan.seed,
        games.display()
    );
    if standing.players.len() > 2 {
        cross_table(&mut text, standing);
    }
    for pairing in &standing.pairings {
        push_pairing(&mut text, pairing);
    }
    let endings: Vec<String> = standing
        .endings
        .iter()
        .map(|(ending, count)| format!("{ending} {count}"))
        .collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "endings: {}", endings.join(", "));
    if let Some(failed) = standing.endings.get(RULES_FAILED) {
        let _ = writeln!(
            text,
            "{failed} games do not count, because the rules failed in them; the same command plays them again"
        );
    }
    if let Some(sprt) = &standing.sprt {
        let [lower, upper] = sprt.bounds;
        let _ = writeln!(
            text,
            "test: elo0 {}, elo1 {} ({:?}): ratio {:.2} in [{lower:.2}, {upper:.2}] after {} pairs: {}",
            sprt.settings.elo0,
            sprt.settings.elo1,
            sprt.settings.model,
            sprt.log_likelihood_ratio,
            sprt.pairs,
            match sprt.verdict {
                arena::statistics::Verdict::Undecided => "undecided",
                arena::statistics::Verdict::Elo0 => "elo0 is accepted",
                arena::statistics::Verdict::Elo1 => "elo1 is accepted",
            }
        );
    }
    text
}

fn push_pairing(text: &mut String, pairing: &PairingStanding) {
    if let Some(all) = ClassStanding::sum(&pairing.problems) {
        return push_problems(text, pairing, &all);
    }
    let [first, second] = &pairing.players;
    let PairingStanding {
        wins,
        draws,
        losses,
        first_mover_wins,
        pentanomial,
        ..
    } = pairing;
    let _ = writeln!(text, "{first}  against  {second}");
    let _ = writeln!(
        text,
        "  +{wins} ={draws} -{losses}, pairs {:?}; the first player won {first_mover_wins}",
        pentanomial.0
    );
    if let Some(estimate) = &pairing.estimate {
        let elo = |elo: Option<f64>, beyond: &str| elo.map_or(beyond.into(), |elo| format!("{elo:+.0}"));
        let beyond = if estimate.score > 0.5 { "+∞" } else { "-∞" };
        let _ = writeln!(
            text,
            "  score {:.1} %, Elo {} (95 %: {} to {}), likelihood of superiority {:.1} %",
            100.0 * estimate.score,
            elo(estimate.elo, beyond),
            elo(estimate.elo_interval[0], "-∞"),
            elo(estimate.elo_interval[1], "+∞"),
            100.0 * estimate.superiority
        );
    }
    text.push('\n');
}

/// Solve rates of two players, by kind and level, and their difference, whose interval is that of the pairs.
fn push_problems(text: &mut String, pairing: &PairingStanding, all: &ClassStanding) {
    let [first, second] = &pairing.players;
    let only = [0, 1].map(|player: usize| all.solved[player] - all.both);
    let neither = all.problems - all.both - only[0] - only[1];
    let _ = writeln!(text, "{first}  against  {second}");
    let _ = writeln!(
        text,
        "  of {} problems both solved {}, only the first {}, only the second {}, neither {neither}",
        all.problems, all.both, only[0], only[1]
    );
    if let Some(estimate) = &pairing.estimate {
        // A pair's score is 1 if only the first player solves the problem, 0 if only the second does.
        let points = |score: f64| 200.0 * score - 100.0;
        let _ = writeln!(
            text,
            "  difference of the solve rates {:+.1} points (95 %: {:+.1} to {:+.1}), likelihood of superiority {:.1} %",
            points(estimate.score),
            points(estimate.score_interval[0]),
            points(estimate.score_interval[1]),
            100.0 * estimate.superiority
        );
    }
    let _ = writeln!(
        text,
        "\n  kind  level  problems   first: solved, interval, moves   second: solved, interval, moves"
    );
    let mut row = |kind: &str, level: &str, class: &ClassStanding| {
        let _ = write!(text, "  {kind:<5} {level:>5} {:>9}", class.problems);
        for (solved, moves) in class.solved.iter().zip(class.moves) {
            let share = 100.0 * *solved as f64 / class.problems.max(1) as f64;
            let [low, high] = wilson(*solved, class.problems).map(|end| 100.0 * end);
            let interval = format!("{low:.0}-{high:.0} %");
            let moves = match solved {
                0 => "-".into(),
                solved => format!("{:.1}", moves as f64 / *solved as f64),
            };
            let _ = write!(text, "   {share:>7.1} % {interval:>10} {moves:>8}");
        }
        text.push('\n');
    };
    for class in &pairing.problems {
        row(&class.class.kind, &class.class.level.to_string(), class);
    }
    row("all", "", all);
    text.push('\n');
}

fn cross_table(text: &mut String, standing: &Standing) {
    let mut order: Vec<usize> = (0..standing.players.len()).collect();
    order.sort_by(|&left, &right| {
        let rating = |player: usize| standing.players[player].rating;
        rating(right).total_cmp(&rating(left))
    });
    let longest = standing
        .players
        .iter()
        .map(|player| player.name.chars().count())
        .max()
        .unwrap_or(0);
    let _ = write!(text, "   # {:longest$}   Elo    points  games", "player");
    for place in 1..=order.len() {
        let _ = write!(text, " {place:>7}");
    }
    text.push('\n');
    for (place, &player) in (1..).zip(&order) {
        let own = &standing.players[player];
        let _ = write!(
            text,
            "{place:>4} {:longest$} {:>+5.0} {:>9.1} {:>6}",
            own.name, own.rating, own.points, own.games
        );
        for &other in &order {
            let points = own.against[other].map_or("-".into(), |points| format!("{points:.1}"));
            let _ = write!(text, " {points:>7}");
        }
        text.push('\n');
    }
    text.push('\n');
}
