//! `minuet lab --json`: one line of JSON for each measured result of a run. [`Points`].

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use serde::Serialize;

use super::state::{Match, Rated, Spent, State};

/// Result of a network against one opponent. The field `reference` is `null`, and the fields of the match are missing, in an experiment
/// without opponents.
#[derive(Serialize)]
struct Point<'a> {
    arm: &'a str,
    seed: u64,
    version: &'a str,
    #[serde(flatten)]
    spent: Spent,
    /// Processor time of self-play and of the learner, in seconds.
    cpu_seconds: f64,
    /// The opponent, as in the experiment.
    reference: Option<&'a str>,
    #[serde(flatten)]
    result: Option<Result<'a>>,
    /// Share of optimal moves of the network alone, in [0, 1]; `null` if it is not measured.
    optimal_alone: Option<f64>,
    /// Share of optimal moves with search, in [0, 1]; `null` if it is not measured.
    optimal_searched: Option<f64>,
}

/// Games of a match.
#[derive(Serialize)]
struct Result<'a> {
    won: u64,
    drawn: u64,
    lost: u64,
    score: f64,
    elo: Option<f64>,
    elo_interval: &'a [Option<f64>; 2],
}

/// A run whose measurements are printed.
struct Printed {
    arm: String,
    seed: u64,
    folder: PathBuf,
    /// Number of measurements printed so far.
    count: usize,
}

/// The runs of an experiment whose measurements are printed, each once, as soon as the run has kept it.
#[derive(Default)]
pub struct Points(Vec<Printed>);

impl Points {
    /// Adds the run in `folder`.
    pub fn add(&mut self, arm: &str, seed: u64, folder: PathBuf) {
        self.0.push(Printed {
            arm: arm.into(),
            seed,
            folder,
            count: 0,
        });
    }

    /// Prints the measurements that the runs have kept since the last call. The first call prints all earlier ones.
    ///
    /// # Errors
    /// The state of a run cannot be read, or standard output cannot be written.
    pub fn print_new(&mut self) -> anyhow::Result<()> {
        for run in &mut self.0 {
            let state = State::read(&run.folder)?;
            let mut out = io::stdout().lock();
            for rated in state.ratings.iter().skip(run.count) {
                for point in points(&run.arm, run.seed, rated) {
                    writeln!(out, "{}", serde_json::to_string(&point)?)?;
                }
                out.flush()?;
                run.count += 1;
            }
        }
        Ok(())
    }
}

/// Returns one point for each opponent of a measurement, or one without an opponent.
fn points<'a>(arm: &'a str, seed: u64, rated: &'a Rated) -> Vec<Point<'a>> {
    let point = |played: Option<&'a Match>| Point {
        arm,
        seed,
        version: &rated.version,
        spent: rated.spent,
        cpu_seconds: rated.spent.self_play_cpu_seconds + rated.spent.learner_cpu_seconds,
        reference: played.map(|played| played.against.as_str()),
        result: played.map(|played| {
            let [won, drawn, lost] = played.games;
            Result {
                won,
                drawn,
                lost,
                score: played.score,
                elo: played.elo,
                elo_interval: &played.elo_interval,
            }
        }),
        optimal_alone: rated.optimal_alone,
        optimal_searched: rated.optimal_searched,
    };
    if rated.matches.is_empty() {
        return vec![point(None)];
    }
    rated.matches.iter().map(|played| point(Some(played))).collect()
}
