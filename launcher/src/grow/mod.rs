//! `minuet grow`: trains a larger network on the games of a run, beside it, until it is as good; then the run goes on with it.
//!
//! | module | contents |
//! |---|---|
//! | [`workspace`] | the second learner's folder, and the settings of the larger network |
//! | [`processes`] | the second learner, and the replay store if the run is not at work |
//! | [`judge`] | matches against the run's newest checkpoint |
//! | [`takeover`] | the label `latest` moves to the larger network |
//! | [`event`] | what is printed |
//!
//! The larger network is a second line ([`LINE`]) of checkpoints in the run's model store: a second learner, with a folder and a lease of
//! its own, samples from the same replay store. Nothing of the run changes until the takeover.

mod event;
mod judge;
mod processes;
mod takeover;
mod workspace;

use std::{
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use anyhow::{Context as _, bail};
use checkpoints::{Repository, Version};
use config::{self, Override, RunConfig};
use futures::StreamExt as _;

use self::{
    event::GrowEvent,
    judge::{Judge, Judgement},
    processes::GrowProcesses,
    workspace::Workspace,
};
use crate::{
    BadUsage,
    event::Event,
    run::{folder::CONFIG, game},
    signals::{self, Signals},
};

pub use takeover::recover;

/// Label of the larger network's newest checkpoint, and the name of its line.
const LINE: &str = "grown";
/// Label of the checkpoint in the present match.
const CANDIDATE_LABEL: &str = "grown-candidate";
/// Key that sets how fast the larger network catches up. The run does not take it over.
const PACE: &str = "learner.samples_per_position";
/// Default of that key, as a multiple of the run's own value.
const CATCH_UP: f64 = 2.0;
/// Niceness of everything that this command starts, above its own.
const NICE: i32 = 5;
/// After a lost match the network trains on for this share of its steps before the next one.
const TRAIN_ON: f64 = 0.25;

/// Arguments of `minuet grow`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet grow --run runs/chess --set model.blocks=6 --set model.filters=96
      trains a larger network, whether `minuet up` is at work or not; Ctrl-C stops it
  minuet grow --run runs/chess
      continues
  minuet grow --run runs/chess --abort
      deletes the larger network; the run stays as it is

The command works on a run's folder. For a run in a cluster, make a folder with the cluster's run.toml (keep checkpoints.store; remove folders,
addresses and certificates), carry the games there with `minuet games export --store HOST:PORT` and `minuet games import --run DIR`, and grow
there. The takeover happens in the cluster's model store. Then put the new [model] into the cluster's run.toml and restart its learner.")]
pub struct Arguments {
    /// The run's folder.
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// A setting of the larger network or of its training, e.g. --set model.blocks=6. The run takes it over, except for
    /// learner.samples_per_position, which sets how fast the network catches up [default: twice the run's]. May be given several times.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    overrides: Vec<Override>,
    /// Take over once the larger network is at most this many Elo weaker than the run's newest checkpoint, at equal visits.
    #[arg(long, value_name = "ELO", default_value_t = 35.0, value_parser = margin)]
    margin: f64,
    /// Delete the larger network.
    #[arg(long, conflicts_with_all = ["overrides", "limit"])]
    abort: bool,
    /// Stop after this time, e.g. 90s, 4m, 1h30m.
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    limit: Option<Duration>,
    /// Print one JSON line for each event.
    #[arg(long)]
    json: bool,
    /// Folder of the roles' binaries. [default: that of this program]
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
}

fn margin(text: &str) -> Result<f64, String> {
    let margin = text.parse::<f64>().ok();
    let margin = margin.filter(|margin| *margin > 0.0 && *margin <= 1000.0);
    margin.ok_or_else(|| "a number of Elo above 0, at most 1000".into())
}

/// Runs the command.
///
/// # Errors
/// [`BadUsage`] for arguments that cannot be used; else what stopped the command.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let file = arguments.run.join(CONFIG);
    if !file.is_file() {
        let run = arguments.run.display();
        return Err(BadUsage(format!("there is no run in {run}: no {CONFIG}")).into());
    }
    let run = arguments.run.canonicalize()?;
    // Before any thread is started: on Linux a thread inherits the niceness of its creator.
    rustix::process::nice(NICE).context("cannot set the process's niceness")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let last = runtime.block_on(async {
        if arguments.abort {
            abort(&run).await
        } else {
            grow(&arguments, &run).await
        }
    })?;
    Ok(last.print(arguments.json)?)
}

async fn abort(run: &Path) -> anyhow::Result<GrowEvent> {
    if takeover::recover(run).await?.is_some() {
        bail!("the larger network has taken over already; run the command without --abort to complete that");
    }
    let workspace = Workspace::existing(run).await?;
    let found = workspace.is_some();
    if let Some(workspace) = workspace {
        workspace
            .delete(&Repository::open(
                &config::load(&run.join(CONFIG))?.checkpoints.store,
            )?)
            .await?;
    }
    Ok(GrowEvent::Aborted { found })
}

/// Trains until the larger network is good enough or the command is stopped; returns the last event.
async fn grow(arguments: &Arguments, run: &Path) -> anyhow::Result<GrowEvent> {
    let mut signals = Signals::new()?;
    let workspace = Workspace::open(run, &arguments.overrides).await?;
    let config = config::load(&run.join(CONFIG))?;
    let repository = Repository::open(&config.checkpoints.store)?;
    if let Some(version) = takeover::recover(run).await? {
        workspace.delete(&repository).await?;
        let step = Some(version.step());
        return Ok(GrowEvent::TakenOver {
            version: version.to_string(),
            step,
            instead_of: None,
        });
    }
    let settings = match checked(&run.join(CONFIG), &config, &workspace.settings) {
        Ok(settings) => settings,
        Err(error) => {
            if workspace.is_new {
                workspace.delete(&repository).await?;
            }
            return Err(error);
        }
    };
    workspace.save().context("cannot save the settings")?;
    let binaries = crate::processes::binaries(arguments.binaries.as_deref())?;
    let mut processes = GrowProcesses::start(run, &workspace.path, &config, &settings, &binaries)?;
    let growing = GrowEvent::Growing {
        run: run.display().to_string(),
        set: workspace.settings.iter().map(ToString::to_string).collect(),
        resumed: !workspace.is_new,
        beside: processes.is_beside(),
    };
    growing.print(arguments.json)?;
    let mut judge = Judge::new(
        &config,
        workspace.path.clone(),
        repository.clone(),
        arguments.margin,
    )?;
    let poll = Duration::from_millis(config.checkpoints.poll_ms);
    let ended = until_good(
        arguments,
        &repository,
        poll,
        &mut judge,
        &mut processes,
        &mut signals,
    )
    .await;
    judge.stop().await;
    processes.stop_learner().await;
    let last = match ended {
        Ok(Ended::Good(judgement)) => {
            let taken = takeover::take_over(run, &judgement.candidate, &workspace.settings).await;
            taken.map(|taken| {
                judgement.keep(&config);
                GrowEvent::TakenOver {
                    version: taken.version.to_string(),
                    step: Some(taken.version.step()),
                    instead_of: Some(taken.instead_of.to_string()),
                }
            })
        }
        Ok(Ended::Stopped(reason)) => Ok(GrowEvent::Stopped { reason }),
        Err(error) => Err(error),
    };
    processes.stop_store().await;
    if matches!(last, Ok(GrowEvent::TakenOver { .. })) {
        let deleted = workspace.delete(&repository).await;
        deleted.context("the run has the larger network, but cannot delete its line of checkpoints")?;
    }
    last
}

/// Checks the settings of the larger network and returns them with the pace.
fn checked(file: &Path, config: &RunConfig, settings: &[Override]) -> anyhow::Result<Vec<Override>> {
    let refused = |reason: String| Err(BadUsage(reason).into());
    game::check(&config.game)?;
    if arena::rating::check_game(&config.game.name).is_err() {
        return refused(format!(
            "{} has one player, so no match can compare two networks",
            config.game.name
        ));
    }
    let others = settings.iter().map(Override::key);
    if let Some(key) = others
        .into_iter()
        .find(|key| !key.starts_with("model.") && !key.starts_with("learner."))
    {
        return refused(format!(
            "--set {key}: only settings in [model] and [learner] can differ from the run's"
        ));
    }
    let mut settings = settings.to_vec();
    if !settings.iter().any(|setting| setting.key() == PACE) {
        let pace = CATCH_UP * config.learner.samples_per_position;
        settings.push(Override::new(PACE, pace)?);
    }
    // The replay store keeps these bounds for both learners together; see below.
    let mut own = vec![
        Override::new("replay.max_uses", "0.0")?,
        Override::new("replay.min_uses", "0.0")?,
    ];
    own.extend(settings.iter().cloned());
    let larger = config::load_with(Some(file), &own)?;
    if larger.model == config.model {
        return refused(
            "--set changes nothing in [model]: say what is to be larger, e.g. --set model.filters=96".into(),
        );
    }
    let most = config.replay.max_uses;
    let (run, pace) = (
        config.learner.samples_per_position,
        larger.learner.samples_per_position,
    );
    if most > 0.0 && run + pace > most {
        bail!(
            "replay.max_uses is {most}, but the run's learner uses each position {run} times and the larger network {pace} times, so              they would wait for each other. Raise replay.max_uses to {} or set it to 0, or lower the larger network's              uses with --set {PACE}=…",
            run + pace
        );
    }
    Ok(settings)
}

/// Reason why training has ended.
enum Ended {
    Good(Box<Judgement>),
    Stopped(String),
}

async fn until_good(
    arguments: &Arguments,
    repository: &Repository,
    poll: Duration,
    judge: &mut Judge,
    processes: &mut GrowProcesses,
    signals: &mut Signals,
) -> anyhow::Result<Ended> {
    let mut published = repository.watch(LINE, poll);
    let mut time_is_up = pin!(signals::sleep(arguments.limit));
    let mut newest: Option<Version> = None;
    // A match is played with a checkpoint of this step or a later one.
    let mut next_step = 1;
    loop {
        if let Some(candidate) = newest.as_ref().filter(|newest| newest.step() >= next_step)
            && !judge.is_playing()
            && let Some(opponent) = judge.begin(candidate).await?
        {
            let (candidate, opponent) = (candidate.to_string(), opponent.to_string());
            GrowEvent::Playing { candidate, opponent }.print(arguments.json)?;
        }
        let event = tokio::select! {
            name = signals.next() => return Ok(Ended::Stopped(name.into())),
            () = &mut time_is_up => {
                let limit = humantime::format_duration(arguments.limit.unwrap_or_default());
                return Ok(Ended::Stopped(format!("the time limit of {limit} is over")));
            }
            event = processes.next() => match event {
                Event::RoleFailed { name, reason, log, last_lines } => {
                    bail!("{name}: {reason}; see {log}\n    | {}", last_lines.join("\n    | "));
                }
                Event::RoleExited { name, status, .. } => GrowEvent::Exited { name, status },
                _ => continue,
            },
            Some(manifest) = published.next() => {
                let version = manifest.version.to_string();
                newest = Some(manifest.version);
                GrowEvent::Checkpoint { version, step: manifest.draft.step }
            }
            judgement = judge.result() => match judgement? {
                Some(judgement) if judgement.is_good() => {
                    judgement.event().print(arguments.json)?;
                    return Ok(Ended::Good(Box::new(judgement)));
                }
                Some(judgement) => {
                    next_step = (judgement.candidate.step() as f64 * (1.0 + TRAIN_ON)).ceil() as u64;
                    judgement.event()
                }
                None => {
                    // A store did not answer; it may answer soon.
                    tokio::time::sleep(poll).await;
                    continue;
                }
            },
        };
        event.print(arguments.json)?;
    }
}
