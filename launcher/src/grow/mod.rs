//! `minuet grow`: trains a larger network on the games of a run, beside it, until it is as strong; then the run continues with it.
//!
//! A second learner, with a folder and a lease of its own, samples from the run's replay store and publishes a second line ([`LINE`]) of
//! checkpoints in the run's model store. Nothing of the run changes until the takeover. All state is on disk ([`growth`]) and in that
//! line, so no signal is handled: the command may be killed at any moment, its processes end by themselves, and the next start continues.

pub(crate) mod growth;

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use arena::{
    rating::{
        MATCHES, RatingError,
        duel::{self, Contender, Duel, Finished},
    },
    statistics::Verdict,
};
use checkpoints::{LATEST, Repository, Version};
use config::{Override, RunConfig};
use futures::StreamExt as _;
use service::role::Role;

use self::growth::{CANDIDATE, Growth, LINE, PACE};
use crate::{
    BadUsage,
    event::Event,
    plan::Plan,
    processes::{binaries, groups::ProcessGroups, list::ProcessList},
    run::{
        addresses::Addresses,
        folder::{CONFIG, RunFolder},
    },
    screen::Screen,
};

/// Default of [`PACE`], as a multiple of the run's own value.
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

For a run in a cluster, see the page \"Grow the network\" of the guide.")]
pub struct Arguments {
    /// The run's folder.
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// A setting of the larger network or of its training, e.g. --set model.blocks=6. The run takes it over, except for
    /// learner.samples_per_position, which sets how fast the network catches up [default: twice the run's]. May be given several times.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    overrides: Vec<String>,
    /// Take over once the larger network is at most this many Elo weaker than the run's newest checkpoint, at equal visits. 1 to 1000.
    #[arg(long, value_name = "ELO", default_value_t = 35, value_parser = clap::value_parser!(u16).range(1..=1000))]
    margin: u16,
    /// Delete the larger network.
    #[arg(long, conflicts_with = "overrides")]
    abort: bool,
    /// Print one JSON line for each event.
    #[arg(long)]
    json: bool,
    /// Folder of the roles' binaries. [default: that of this program]
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// [`BadUsage`] for arguments that cannot be used; else what stopped the command.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let file = arguments.run.join(CONFIG);
    let missing = format!("there is no {}", file.display());
    ensure!(file.is_file(), BadUsage(missing));
    let run = arguments.run.canonicalize()?;
    // Before any thread is started: on Linux a thread inherits the niceness of its creator.
    rustix::process::nice(NICE).context("cannot set the process's niceness")?;
    crate::block_on(async {
        let screen = Screen::new(arguments.json);
        let mut growth = Growth::lock(&run).await?;
        let is_taking_over = growth.state.candidate.is_some();
        if arguments.abort {
            let refused = "the takeover has begun; run the command without --abort to complete it";
            ensure!(!is_taking_over, refused);
            let found = growth.folder.exists();
            growth.delete().await?;
            return Ok(screen.event(&Event::Aborted { found })?);
        }
        if !is_taking_over {
            train(&arguments, &mut growth, &screen).await?;
        }
        let version = growth.complete_takeover().await?;
        Ok(screen.event(&Event::TakenOver { version })?)
    })
}

/// Trains until a checkpoint is good enough, which becomes the growth's candidate.
async fn train(arguments: &Arguments, growth: &mut Growth, screen: &Screen) -> anyhow::Result<()> {
    let (run, given, saved) = (growth.run.clone(), &arguments.overrides, &growth.state.set);
    let names = saved.join(", ");
    let other = format!("another network ({names}) is in training; leave out --set, or use --abort");
    let is_other = !saved.is_empty() && !given.is_empty() && given != saved;
    ensure!(!is_other, BadUsage(other));
    let set = if saved.is_empty() { given } else { saved }.clone();
    let mut config = config::load(&run.join(CONFIG))?;
    let mut settings = learner_settings(&run, &config, &set)?;
    // No inference server has loaded the larger network.
    config.rating.remote = false;
    (config.rating.elo0, config.rating.elo1) = (-f64::from(arguments.margin), 0.0);
    config.rating.folder = growth.folder.clone();
    let running = Addresses::of_running(&run);
    let folder = match &running {
        Some(addresses) => {
            settings.push(Override::text("replay.address", &addresses.replay)?);
            RunFolder::of_running(&run)
        }
        // The lock keeps `minuet up` from starting a second replay store.
        None => RunFolder::open(&run, None, &[])?,
    };
    settings.extend([
        Override::text("learner.folder", &growth.folder.to_string_lossy())?,
        Override::text("learner.health", "")?,
        Override::text("checkpoints.line", LINE)?,
    ]);
    let beside = running.is_some();
    let mut processes = Plan::new(&folder, &settings, 0)?.processes;
    processes.retain(|process| match process.role {
        Role::ReplayStore => !beside,
        role => role == Role::Learner,
    });
    if let Some(learner) = processes.last_mut() {
        learner.name = "learner-grown".into();
    }
    growth.state.set = set.clone();
    growth.save()?;
    let list = ProcessList::open(&growth.folder);
    let binaries = binaries(arguments.binaries.as_deref())?;
    let (mut groups, mut events) = ProcessGroups::start(&processes, &run, &binaries, list)?;
    screen.event(&Event::Growing { set, beside })?;
    let candidate = good_candidate(&config, &mut events, screen).await?;
    growth.state.candidate = Some(candidate);
    growth.save()?;
    groups.stop(&[Role::Learner, Role::ReplayStore]).await;
    Ok(())
}

/// Checks the settings of the larger network. Returns those of the second learner, with the default of [`PACE`].
fn learner_settings(run: &Path, config: &RunConfig, set: &[String]) -> anyhow::Result<Vec<Override>> {
    let uses = config.learner.samples_per_position;
    let mut settings = vec![Override::new(PACE, CATCH_UP * uses)?];
    for text in set {
        let refused = format!("--set {text}: only [model] and [learner] can differ from the run's");
        let is_allowed = text.starts_with("model.") || text.starts_with("learner.");
        ensure!(is_allowed, BadUsage(refused));
        settings.push(text.parse()?);
    }
    let larger = config::load_with(Some(&run.join(CONFIG)), &settings)?;
    let same = "--set changes nothing in [model]: say what is to be larger, e.g. --set model.filters=96";
    ensure!(larger.model != config.model, BadUsage(same.into()));
    let (most, both) = (config.replay.max_uses, uses + larger.learner.samples_per_position);
    let too_low = format!(
        "replay.max_uses is {most}, but the run's learner and the larger network use each position {both} times, so they would \
         wait for each other. Raise replay.max_uses to {both} or set it to 0, or set a lower {PACE}"
    );
    ensure!(most == 0.0 || both <= most, BadUsage(too_low));
    Ok(settings)
}

/// Plays checkpoints of the larger network against the run's newest one, until one passes the test in `[rating]`.
async fn good_candidate(
    config: &RunConfig,
    events: &mut tokio::sync::mpsc::Receiver<Event>,
    screen: &Screen,
) -> anyhow::Result<Version> {
    let repository = Repository::open(&config.checkpoints.store)?;
    let mut published = repository.watch(LINE, Duration::from_millis(config.checkpoints.poll_ms));
    let began = Instant::now();
    // A match is played with a checkpoint of this step or a later one.
    let mut next_step = 1;
    loop {
        let manifest = tokio::select! {
            Some(event) = events.recv() => {
                screen.event(&event)?;
                match event.failure() {
                    Some(reason) => bail!(reason),
                    None => continue,
                }
            }
            manifest = published.next() => manifest.context("the model store is not watched any more")?,
        };
        screen.event(&Event::checkpoint(&manifest, began.elapsed()))?;
        if manifest.draft.step < next_step {
            continue;
        }
        let finished = match play(config, &repository, &manifest.version).await {
            Err(error) if error.is_temporary() => {
                let text = format!("no match was played: {:#}", anyhow::Error::from(error));
                screen.event(&Event::Warning { text })?;
                continue;
            }
            finished => finished?,
        };
        screen.event(&Event::played(&finished))?;
        if finished.verdict == Verdict::Elo1 {
            return Ok(manifest.version);
        }
        next_step = (manifest.draft.step as f64 * (1.0 + TRAIN_ON)).ceil() as u64;
    }
}

/// Plays a match of a checkpoint of the larger network against the run's newest checkpoint.
async fn play(
    config: &RunConfig,
    repository: &Repository,
    candidate: &Version,
) -> Result<Finished, RatingError> {
    let opponent = repository.resolve(LATEST).await?.version;
    repository.set_label(CANDIDATE, candidate).await?;
    let duel = Duel {
        config,
        sprt: duel::sprt(&config.rating)?,
        contenders: [candidate, &opponent].map(|version| Contender::stored(version, config)),
        matches: &config.rating.folder.join(MATCHES),
    };
    let play = || duel.play(&mut duel::networks(config), &AtomicBool::new(false), &mut |_| {});
    tokio::task::block_in_place(play)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let run = tempfile::tempdir().unwrap();
        let refused = |text: &str, set: &[&str]| {
            std::fs::write(run.path().join(CONFIG), text).unwrap();
            let config = config::load(&run.path().join(CONFIG)).unwrap();
            let set: Vec<String> = set.iter().map(|&text| text.into()).collect();
            let settings = learner_settings(run.path(), &config, &set);
            settings
                .err()
                .map(|error| format!("{error:#}"))
                .unwrap_or_default()
        };
        let chess =
            "[game]\nname = \"chess\"\n[learner]\nsamples_per_position = 4.0\n[replay]\nmax_uses = 10.0\n";
        let larger = "model.blocks=9";
        for (text, set, reason) in [
            (chess, &[][..], "--set changes nothing in [model]"),
            (
                chess,
                &["learner.batch_size=64"],
                "--set changes nothing in [model]",
            ),
            (
                chess,
                &[larger, "search.visits=9"],
                "only [model] and [learner] can differ",
            ),
            (chess, &[larger, "model.block=9"], "did you mean `model.blocks`"),
            (chess, &[larger], "Raise replay.max_uses to 12"),
            (
                chess,
                &[larger, "learner.samples_per_position=11"],
                "replay.max_uses",
            ),
            (chess, &[larger, "learner.samples_per_position=6"], ""),
            ("[game]\nname = \"chess\"", &[larger], ""),
            ("[game]\nname = \"generator\"\noptions = 0", &[larger], ""),
        ] {
            let error = refused(text, set);
            assert!(error.contains(reason), "{set:?}: {error}");
            assert_eq!(error.is_empty(), reason.is_empty(), "{set:?}: {error}");
        }
    }
}
