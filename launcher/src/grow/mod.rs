//! `minuet grow`: trains a larger network on the games of a run, beside it, until it is as good; then the run has it.
//!
//! | module | what it is for |
//! |---|---|
//! | [`nursery`] | the folder in which it grows, apart from everything of the run |
//! | [`processes`] | its learner, and the replay stores where the run is not at work |
//! | [`judge`] | matches against the run's newest checkpoint |
//! | [`takeover`] | the larger network takes the place of the run's own |
//! | [`edit`] | changing single values of a `run.toml` |
//! | [`said`] | what is told |
//!
//! Until it takes over, nothing of the run changes: its learner has a folder, a model store and a lease of its own and
//! asks the run's replay store for batches. It may draw more samples for each position than the run's learner does, since it has to catch
//! up; both count against `replay.max_uses`.

mod edit;
mod judge;
mod nursery;
mod processes;
mod said;
mod takeover;

use std::{
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use anyhow::{Context as _, bail};
use checkpoints::{LATEST, Manifest, Repository, Version};
use config::{self, Override, RunConfig};
use futures::StreamExt as _;

use self::{
    judge::{Judge, Judgement},
    nursery::Nursery,
    processes::Processes,
    said::Said,
};
use crate::{
    BadUsage,
    up::{self, conduct::Signals, event::Event, folder::CONFIG},
};

pub use takeover::recover;

/// The key that says how fast the larger network catches up; it never becomes the run's.
const PACE: &str = "learner.samples_per_position";
/// Samples for each position that the larger network may draw, times the run's own.
const CATCH_UP: f64 = 2.0;
/// Niceness of everything that is started here, above what it has by itself.
const NICE: i32 = 5;
/// After a test that failed it trains on for this share of its steps before the next one.
const TRAIN_ON: f64 = 0.25;

/// Arguments of `minuet grow`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet grow --run runs/chess --set model.blocks=6 --set model.filters=96
      while the run is at work or not; Ctrl-C stops it, and
  minuet grow --run runs/chess
      goes on with it
  minuet grow --run runs/chess --abort
      throws it away; the run is as it was
It works on a run's folder. For a run in a cluster: make a folder with the cluster's run.toml, without its folders and addresses but with its
checkpoints.store; carry the games there (minuet games export --store HOST:PORT, minuet games import --run DIR); grow there. It takes over in the
cluster's model store; then put the new [model] into the cluster's run.toml and start its learner again. README.md has it step by step.")]
pub struct Arguments {
    /// The run's folder.
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// A setting of the larger network or its training, e.g. --set model.blocks=6. It becomes the run's own when the network takes over, all
    /// but learner.samples_per_position, which says how fast it catches up [default: twice the run's]. May be given often.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    overrides: Vec<Override>,
    /// It is as good once it is known to be no more than so many Elo weaker than the run's newest checkpoint, at equal visits.
    #[arg(long, value_name = "ELO", default_value_t = 35.0, value_parser = margin)]
    margin: f64,
    /// Throw away what has grown.
    #[arg(long, conflicts_with_all = ["overrides", "limit"])]
    abort: bool,
    /// Stop after this long, e.g. 90s, 4m, 1h30m.
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    limit: Option<Duration>,
    /// Print one JSON line for each event.
    #[arg(long)]
    json: bool,
    /// Folder of the roles' binaries. [default: this one's]
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
}

fn margin(text: &str) -> Result<f64, String> {
    let margin = text.parse::<f64>().ok();
    let margin = margin.filter(|margin| *margin > 0.0 && *margin <= 1000.0);
    margin.ok_or_else(|| "a number of Elo above 0, at most 1000".into())
}

/// Runs it.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let file = arguments.run.join(CONFIG);
    if !file.is_file() {
        return Err(BadUsage(format!(
            "there is no run in {}: no {CONFIG}",
            arguments.run.display()
        ))
        .into());
    }
    let run = arguments.run.canonicalize()?;
    if arguments.abort {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        let found = runtime.block_on(Nursery::abort(&run))?;
        return Ok(Said::Aborted { found }.print(arguments.json)?);
    }
    // Before any thread is started: on Linux a thread inherits what its creator had.
    rustix::process::nice(NICE).context("cannot set the process's niceness")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(grow(&arguments, &run))
}

async fn grow(arguments: &Arguments, run: &Path) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let nursery = Nursery::open(run, &arguments.overrides)?;
    nursery.no_left_overs().await;
    if let Some(version) = takeover::recover(run).await? {
        let said = Said::TakenOver {
            version: version.to_string(),
            step: Some(version.step()),
            instead_of: None,
        };
        nursery.clear()?;
        return Ok(said.print(arguments.json)?);
    }
    let file = run.join(CONFIG);
    let config = config::load(&file)?;
    let wishes = match checked(&file, &config, nursery.wishes()) {
        Ok(wishes) => wishes,
        Err(error) => {
            if nursery.is_new() {
                nursery.clear()?;
            }
            return Err(error);
        }
    };
    nursery.keep().context("cannot keep what is to grow")?;
    let binaries = up::binaries(arguments.binaries.as_deref())?;
    let mut processes = Processes::start(run, &config, &nursery, &wishes, &binaries)?;
    let said = Said::Growing {
        run: run.display().to_string(),
        set: nursery.wishes().iter().map(ToString::to_string).collect(),
        resumed: !nursery.is_new(),
        beside: processes.is_beside(),
    };
    said.print(arguments.json)?;
    let mut growing = Growing {
        json: arguments.json,
        repository: Repository::open(&nursery.store())?,
        judge: Judge::new(&config, nursery.path(), &nursery.store(), arguments.margin)?,
        newest: None,
        next_step: 1,
    };
    let poll = Duration::from_millis(config.checkpoints.poll_ms);
    let ended = growing
        .until_good(&mut processes, &mut signals, poll, arguments.limit)
        .await;
    growing.judge.stop().await;
    let ended = match ended {
        Ok(Ended::Good(judgement)) => {
            processes.stop_learner().await;
            let changes: Vec<Override> = nursery
                .wishes()
                .iter()
                .filter(|wish| wish.key() != PACE)
                .cloned()
                .collect();
            let taken = takeover::take_over(run, &growing.repository, &judgement.candidate, &changes).await;
            taken.map(|taken| {
                let said = Said::TakenOver {
                    version: taken.version.to_string(),
                    step: Some(taken.step),
                    instead_of: Some(taken.instead_of.to_string()),
                };
                (said, Some(judgement))
            })
        }
        Ok(Ended::Asked(reason)) => Ok((Said::Stopped { reason }, None)),
        Err(error) => Err(error),
    };
    processes.stop().await;
    let (said, judgement) = ended?;
    if let Some(judgement) = judgement {
        judge::keep_match(&config, &judgement);
        nursery
            .clear()
            .context("the run has the larger network, but its folder is still there")?;
    }
    Ok(said.print(arguments.json)?)
}

/// Checks what was wished for; gives it with the pace.
fn checked(file: &Path, config: &RunConfig, wishes: &[Override]) -> anyhow::Result<Vec<Override>> {
    up::check_game(&config.game)?;
    if arena::rating::check_game(&config.game.name).is_err() {
        let name = &config.game.name;
        return Err(BadUsage(format!(
            "{name} has one player: no match could say when a larger network is as good"
        ))
        .into());
    }
    let strange = wishes.iter().map(Override::key).find(|key| {
        let section = key.split('.').next().unwrap_or_default();
        !["model", "learner"].contains(&section)
    });
    if let Some(key) = strange {
        return Err(BadUsage(format!(
            "--set {key}: a larger network has settings in [model] and [learner] of its own, all others are the run's"
        ))
        .into());
    }
    let mut wishes = wishes.to_vec();
    if !wishes.iter().any(|wish| wish.key() == PACE) {
        wishes.push(Override::new(
            PACE,
            CATCH_UP * config.learner.samples_per_position,
        )?);
    }
    // The store's own bound is another matter, below.
    let mut grown_wishes = vec![
        Override::new("replay.max_uses", "0.0")?,
        Override::new("replay.min_uses", "0.0")?,
    ];
    grown_wishes.extend(wishes.iter().cloned());
    let grown = config::load_with(Some(file), &grown_wishes)?;
    if grown.model == config.model {
        return Err(BadUsage(
            "--set changes nothing in [model]: say what is to be larger, e.g. --set model.filters=96".into(),
        )
        .into());
    }
    let (most, own, its) = (
        config.replay.max_uses,
        config.learner.samples_per_position,
        grown.learner.samples_per_position,
    );
    if most > 0.0 && own + its > most {
        bail!(
            "replay.max_uses is {most}, but the run's learner uses positions {own} times and the larger network {its} times: \
             they would wait for each other. Raise replay.max_uses to {} or switch it off (0), or let the larger network use fewer \
             with --set {PACE}=…",
            own + its
        );
    }
    Ok(wishes)
}

/// Why it ended.
enum Ended {
    /// It is as good.
    Good(Box<Judgement>),
    /// Somebody wants it to stop.
    Asked(String),
}

/// The course of it.
struct Growing {
    json: bool,
    /// The larger network's own store.
    repository: Repository,
    judge: Judge,
    newest: Option<Manifest>,
    /// The next match is played with a checkpoint of this step or a later one.
    next_step: u64,
}

impl Growing {
    async fn until_good(
        &mut self,
        processes: &mut Processes,
        signals: &mut Signals,
        poll: Duration,
        limit: Option<Duration>,
    ) -> anyhow::Result<Ended> {
        let mut published = self.repository.watch(LATEST, poll);
        let mut time_is_up = pin!(up::conduct::sleep(limit));
        loop {
            self.play_if_due().await?;
            let said = tokio::select! {
                name = signals.next() => return Ok(Ended::Asked(name.into())),
                () = &mut time_is_up => {
                    let limit = humantime::format_duration(limit.unwrap_or_default());
                    return Ok(Ended::Asked(format!("the {limit} are over")));
                }
                event = processes.next() => match event {
                    Event::RoleFailed { name, reason, log, last_lines } => {
                        let lines = last_lines.join("\n    | ");
                        bail!("{name}: {reason}; its log is {log}\n    | {lines}");
                    }
                    Event::RoleExited { name, status, .. } => Said::Exited { name, status },
                    _ => continue,
                },
                Some(manifest) = published.next() => {
                    let (version, step) = (manifest.version.to_string(), manifest.step);
                    self.newest = Some(manifest);
                    Said::Checkpoint { version, step }
                }
                judgement = self.judge.judged() => {
                    let Some(judgement) = judgement? else {
                        // A store was away; a moment later it may not be.
                        tokio::time::sleep(poll).await;
                        continue;
                    };
                    judgement.said().print(self.json)?;
                    if judgement.is_good() {
                        return Ok(Ended::Good(Box::new(judgement)));
                    }
                    let step = judgement.candidate.step() as f64;
                    self.next_step = (step * (1.0 + TRAIN_ON)).ceil() as u64;
                    continue;
                }
            };
            said.print(self.json)?;
        }
    }

    /// Begins a match with the newest checkpoint where it is time for one.
    async fn play_if_due(&mut self) -> anyhow::Result<()> {
        let Some(newest) = &self.newest else {
            return Ok(());
        };
        if self.judge.is_playing() || newest.step < self.next_step {
            return Ok(());
        }
        let candidate: Version = newest.version.clone();
        if let Some(opponent) = self.judge.begin(&self.repository, &candidate).await? {
            let said = Said::Playing {
                candidate: candidate.to_string(),
                opponent: opponent.to_string(),
            };
            said.print(self.json)?;
        }
        Ok(())
    }
}
