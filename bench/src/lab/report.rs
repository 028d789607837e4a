//! The results of an experiment: a table as Markdown, everything as JSON ([`write`]), and with `minuet lab --json` one line of JSON for
//! each measured result of a run ([`print_new`]).

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    experiment::Experiment,
    rating::CONTROL,
    state::{Match, Rated, RunState},
};

/// The runs of an arm.
#[derive(Serialize)]
pub struct ArmResult {
    /// Name of the arm.
    pub arm: String,
    /// Seed and state of each run.
    pub runs: Vec<(u64, RunState)>,
}

/// A measured figure.
#[derive(Clone, Copy)]
enum Figure {
    /// Elo against the opponent of this number.
    Elo(usize),
    /// Elo against the first arm.
    Control,
    /// Share of optimal moves of the network alone, in percent.
    Alone,
    /// Share of optimal moves with search, in percent.
    Searched,
}

impl Figure {
    /// Returns the figures that an experiment measures.
    fn all(experiment: &Experiment) -> Vec<Self> {
        let mut figures: Vec<Self> = (0..experiment.rating.against.len()).map(Self::Elo).collect();
        if experiment.rating.control_games > 0 {
            figures.push(Self::Control);
        }
        if experiment.rating.solver_positions > 0 {
            figures.extend([Self::Alone, Self::Searched]);
        }
        figures
    }

    fn name(self, experiment: &Experiment) -> String {
        let rating = &experiment.rating;
        match self {
            Self::Elo(number) => format!("Elo against {}", rating.against[number]),
            Self::Control => "Elo against the first arm".into(),
            Self::Alone => "optimal moves alone, %".into(),
            Self::Searched => format!("optimal moves with {} visits, %", rating.visits),
        }
    }

    /// Returns the value in a measurement; `None` if it was not measured, and for an Elo where every game was won or lost.
    fn of(self, rated: &Rated) -> Option<f64> {
        match self {
            Self::Elo(number) => rated.matches.get(number)?.elo,
            Self::Control => rated.matches.iter().find(|played| played.against == CONTROL)?.elo,
            Self::Alone => Some(100.0 * rated.optimal_alone?),
            Self::Searched => Some(100.0 * rated.optimal_searched?),
        }
    }
}

/// Writes `table.md` and `result.json` into `folder`. Returns the table.
///
/// # Errors
/// A file cannot be written.
pub fn write(experiment: &Experiment, arms: &[ArmResult], folder: &Path) -> anyhow::Result<String> {
    let save = |name: &str, bytes: &[u8]| {
        let path: PathBuf = folder.join(name);
        durable::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    let figures = Figure::all(experiment);
    let table = table(experiment, arms, &figures);
    save("table.md", table.as_bytes())?;
    save("result.json", &serde_json::to_vec_pretty(arms)?)?;
    Ok(table)
}

/// Reads the states of all runs.
///
/// # Errors
/// A state cannot be read.
pub fn read(experiment: &Experiment, run: impl Fn(&str, u64) -> PathBuf) -> anyhow::Result<Vec<ArmResult>> {
    let result = |arm: &super::experiment::Arm| {
        let state = |&seed: &u64| Ok((seed, RunState::read(&run(&arm.name, seed))?));
        Ok(ArmResult {
            arm: arm.name.clone(),
            runs: experiment
                .seeds
                .iter()
                .map(state)
                .collect::<anyhow::Result<_>>()?,
        })
    };
    experiment.arms.iter().map(result).collect()
}

/// Returns the first measurements of all runs of an arm, then the second ones, and so on. A run that has not come so far is
/// left out.
fn measurements(arm: &ArmResult) -> impl Iterator<Item = Vec<&Rated>> {
    let ratings = || arm.runs.iter().map(|(_, state)| &state.ratings);
    let longest = ratings().map(Vec::len).max().unwrap_or(0);
    (0..longest).map(move |place| ratings().filter_map(|ratings| ratings.get(place)).collect())
}

/// Returns the mean, smallest and largest of some values; `None` without any.
fn summary(values: &[f64]) -> Option<(f64, f64, f64)> {
    let fold = |first: f64, pick: fn(f64, f64) -> f64| values.iter().copied().fold(first, pick);
    (!values.is_empty()).then(|| {
        (
            values.iter().sum::<f64>() / values.len() as f64,
            fold(f64::INFINITY, f64::min),
            fold(f64::NEG_INFINITY, f64::max),
        )
    })
}

fn table(experiment: &Experiment, arms: &[ArmResult], figures: &[Figure]) -> String {
    let seeds = experiment.seeds.len();
    let mut text = format!(
        "{}\n\n{}, {seeds} seeds for each arm. Each figure is the mean over the seeds, with the lowest and the highest seed.\n\n",
        experiment.question, experiment.game
    );
    text += "| arm | runs | evaluations | samples | positions |";
    for figure in figures {
        text += &format!(" {} |", figure.name(experiment));
    }
    text += &format!("\n|{}\n", "---|".repeat(5 + figures.len()));
    for arm in arms {
        for measured in measurements(arm) {
            let mean = |of: fn(&Rated) -> u64| {
                measured.iter().map(|rated| of(rated)).sum::<u64>() / measured.len().max(1) as u64
            };
            text += &format!(
                "| {} | {} | {} | {} | {} |",
                arm.arm,
                measured.len(),
                mean(|rated| rated.spent.evaluations),
                mean(|rated| rated.spent.samples),
                mean(|rated| rated.spent.positions)
            );
            for figure in figures {
                let values: Vec<f64> = measured.iter().filter_map(|rated| figure.of(rated)).collect();
                text += &match summary(&values) {
                    // An Elo is missing where every game was won or lost.
                    Some((mean, low, high)) if values.len() == measured.len() => {
                        format!(" {mean:.1} ({low:.1} to {high:.1}) |")
                    }
                    None if matches!(figure, Figure::Control) => " – |".into(),
                    _ => " beyond measure |".into(),
                };
            }
            text.push('\n');
        }
    }
    text
}

/// Refuses a folder that holds another experiment; keeps a copy of the file in a new one.
///
/// # Errors
/// The folder holds another experiment, or a file cannot be read or written.
pub fn claim(folder: &Path, file: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let kept = folder.join("experiment.toml");
    match fs::read(&kept) {
        Ok(begun) if begun == text => Ok(()),
        Ok(_) => anyhow::bail!(
            "{} holds another experiment (its experiment.toml differs from {}); name another folder with --folder",
            folder.display(),
            file.display()
        ),
        Err(_) => durable::write(&kept, &text).with_context(|| format!("cannot write {}", kept.display())),
    }
}

/// A run whose measurements are printed, each once, as soon as the run has kept it.
pub struct Printed {
    /// Name of the arm.
    pub arm: String,
    /// Seed of the run.
    pub seed: u64,
    /// Folder of the run.
    pub folder: PathBuf,
    /// Number of measurements printed so far.
    pub count: usize,
}

/// Prints the measurements that the runs have kept since the last call. The first call prints all earlier ones.
///
/// # Errors
/// The state of a run cannot be read, or standard output cannot be written.
pub fn print_new(runs: &mut [Printed]) -> anyhow::Result<()> {
    for run in runs {
        let state = RunState::read(&run.folder)?;
        let mut out = io::stdout().lock();
        for rated in state.ratings.iter().skip(run.count) {
            for point in points(&run.arm, run.seed, rated)? {
                writeln!(out, "{}", Value::Object(point))?;
            }
            out.flush()?;
            run.count += 1;
        }
    }
    Ok(())
}

/// Returns one line for each opponent of a measurement. In an experiment without opponents it is one line, whose `reference` is
/// null and which lacks the fields of a match.
fn points(arm: &str, seed: u64, rated: &Rated) -> anyhow::Result<Vec<Map<String, Value>>> {
    let spent = &rated.spent;
    let mut common = as_map(&json!({
        "arm": arm,
        "seed": seed,
        "version": rated.version,
        "cpu_seconds": spent.self_play_cpu_seconds + spent.learner_cpu_seconds,
        "reference": null,
        "optimal_alone": rated.optimal_alone,
        "optimal_searched": rated.optimal_searched,
    }))?;
    common.extend(as_map(spent)?);
    if rated.matches.is_empty() {
        return Ok(vec![common]);
    }
    let point = |played: &Match| {
        let [won, drawn, lost] = played.games;
        let mut point = common.clone();
        point.extend(as_map(&json!({
            "reference": played.against,
            "won": won,
            "drawn": drawn,
            "lost": lost,
            "score": played.score,
            "elo": played.elo,
            "elo_interval": played.elo_interval,
        }))?);
        Ok(point)
    };
    rated.matches.iter().map(point).collect()
}

fn as_map(value: &impl Serialize) -> anyhow::Result<Map<String, Value>> {
    Ok(serde_json::from_value(serde_json::to_value(value)?)?)
}
