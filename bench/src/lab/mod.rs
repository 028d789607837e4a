//! `minuet lab`: compares settings by training with each of them, in lock step, with equal budgets and paired seeds.
//!
//! | module | contents |
//! |---|---|
//! | [`experiment`] | the file of an experiment: arms, seeds, budget, measurements |
//! | [`cell`] | one run: an arm with a seed |
//! | [`roles`] | the replay store and the learner of a run |
//! | [`rating`] | measures a network against fixed opponents and an exact solver |
//! | [`state`] | counts and measurements of a run, kept in its folder |
//! | [`report`] | table, JSON, measurements as lines of JSON |

mod cell;
mod experiment;
mod rating;
mod report;
mod roles;
mod state;

use std::{
    fs::File,
    io,
    num::NonZero,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};

use self::{experiment::Experiment, report::Printed, state::RunState};
use crate::harness::child::Killed;

const POLL: Duration = Duration::from_millis(200);

/// Arguments of `minuet lab`.
#[derive(clap::Args)]
#[command(
    override_usage = "minuet lab [OPTIONS] <FILE>",
    after_help = "\
Examples:
  minuet lab lab/first-minutes.toml
      trains every arm with every seed and prints the table; after Ctrl-C the same command continues
  minuet lab lab/first-minutes.toml --jobs 1
      one run at a time; the results do not depend on the number of jobs
  minuet lab lab/first-minutes.toml --json > points.jsonl
      one line for each opponent of each measurement, also of earlier calls, with what the run had spent by then"
)]
pub struct Arguments {
    /// File of the experiment.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Folder of the runs and results. [default: runs/lab/ and the name of the file]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Number of runs at a time. [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Print one JSON object per line for each opponent of each measurement. Everything else goes to standard error.
    #[arg(long)]
    json: bool,
    /// Make only this run: ARM/SEED. The command starts itself with it.
    #[arg(long, value_name = "RUN", hide = true)]
    run: Option<String>,
}

/// Runs an experiment and prints its table.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let experiment = Experiment::read(&arguments.file)?;
    let folder = match arguments.folder {
        Some(folder) => folder,
        None => {
            let name = arguments.file.file_stem().context("FILE has no name")?;
            Path::new("runs/lab").join(name)
        }
    };
    let place = |arm: &str, seed: u64| folder.join(format!("{arm}-{seed}"));
    if let Some(run) = arguments.run {
        let (arm, seed) = run.split_once('/').context("--run is ARM/SEED")?;
        let seed = seed.parse().context("--run is ARM/SEED")?;
        end_with_parent();
        let control = experiment.arms.first().context("there is no [[arm]]")?;
        let folders = (&*place(arm, seed), &*place(&control.name, seed));
        return cell::run(&experiment, arm, seed, folders);
    }
    report::claim(&folder, &arguments.file)?;
    let jobs = match arguments.jobs {
        Some(jobs) => usize::from(jobs),
        None => thread::available_parallelism().map_or(1, NonZero::get),
    };
    // Other arms may play against the first one, so its runs come before theirs.
    let mut waiting = [Vec::new(), Vec::new()];
    let mut printed = Vec::new();
    // The seeds come one after the other, so that an unfinished experiment has complete comparisons.
    for &seed in &experiment.seeds {
        for arm in &experiment.arms {
            let path = place(&arm.name, seed);
            if arguments.json {
                printed.push(Printed {
                    arm: arm.name.clone(),
                    seed,
                    folder: path.clone(),
                    count: 0,
                });
            }
            if !RunState::read(&path)?.is_complete {
                let group = usize::from(!experiment.is_control(&arm.name));
                waiting[group].push((format!("{}/{seed}", arm.name), path));
            }
        }
    }
    let left = waiting.iter().map(Vec::len).sum::<usize>();
    let all = experiment.seeds.len() * experiment.arms.len();
    let say = |text: String| match arguments.json {
        true => eprint!("{text}"),
        false => print!("{text}"),
    };
    say(format!(
        "{}: {all} runs, {} complete, {} at a time\n",
        folder.display(),
        all - left,
        jobs.min(left.max(1))
    ));
    let begin = |run: &str, path: &Path| {
        let progress = match arguments.json {
            true => io::stderr().into(),
            false => Stdio::inherit(),
        };
        start(&arguments.file, &folder, run, path, progress)
    };
    for group in waiting {
        make(group, jobs, begin, || report::print_new(&mut printed))?;
    }
    let results = report::read(&experiment, place)?;
    say(format!("\n{}", report::write(&experiment, &results, &folder)?));
    Ok(())
}

/// Ends this process when its standard input is closed, which happens when the process that started it ends in any way.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing waits for this process, and its children end because their input is closed"
)]
fn end_with_parent() {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        process::exit(1);
    });
}

/// A run in progress. Killed when dropped.
struct Running {
    name: String,
    log: PathBuf,
    child: Killed,
}

/// Makes all `waiting` runs, `jobs` at a time, and calls `look` again and again until after the last one.
fn make(
    waiting: Vec<(String, PathBuf)>,
    jobs: usize,
    start: impl Fn(&str, &Path) -> anyhow::Result<Running>,
    mut look: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut waiting = waiting.into_iter();
    let mut running: Vec<Running> = Vec::new();
    loop {
        while running.len() < jobs {
            let Some((run, path)) = waiting.next() else { break };
            running.push(start(&run, &path)?);
        }
        look()?;
        if running.is_empty() {
            return Ok(());
        }
        let mut place = 0;
        while let Some(run) = running.get_mut(place) {
            match run.child.0.try_wait()? {
                None => place += 1,
                Some(status) if status.success() => {
                    running.swap_remove(place);
                }
                Some(status) => bail!(
                    "the run {} ended with {status}; {} shows why. The same command continues the experiment",
                    run.name,
                    run.log.display()
                ),
            }
        }
        thread::sleep(POLL);
    }
}

/// Starts a run as a process of its own, so that its processor time can be measured. Its `progress` is its standard output.
fn start(file: &Path, folder: &Path, run: &str, path: &Path, progress: Stdio) -> anyhow::Result<Running> {
    std::fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
    let log = path.join("log");
    let errors = File::options()
        .create(true)
        .append(true)
        .open(&log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    let child = Command::new(std::env::current_exe()?)
        .arg("lab")
        .arg(file)
        .arg("--folder")
        .arg(folder)
        .args(["--run", run])
        .stdin(Stdio::piped())
        .stdout(progress)
        .stderr(errors)
        .spawn()
        .context("cannot start another process of this program")?;
    Ok(Running {
        name: run.into(),
        log,
        child: Killed(child),
    })
}
