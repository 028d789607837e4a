//! One run of an experiment: an arm with a seed, in lock step. [`run`].
//!
//! A round has three steps. The learner makes every step that the stored positions allow, and publishes. Self-play continues with
//! the newest network until enough games have ended. The games are stored. Self-play and training never run at the same time, so
//! the speed of the machine changes neither their ratio nor the network that plays a game.

use std::{fs, path::Path};

use actor::play::lock_step::LockStep;
use anyhow::Context as _;
use games::{
    Game, Notation,
    registry::{self, Visitor},
};
use network::{LocalNetwork, ModelFile, ModelName, loader::Loader};

use super::{
    experiment::{Arm, Experiment},
    rating,
    roles::Roles,
    state::{RunState, Spent},
};

/// Positions in the largest batch that the network evaluates at once.
const BATCH: usize = 256;
/// The progress is printed each time another share of the budget is spent.
const REPORTS: u64 = 20;

/// Begins or continues the run in `folder`, until its budget is spent. `control` is the folder of the first arm's run with the same
/// seed.
///
/// # Errors
/// The arm does not exist, a process fails, or a file cannot be written.
pub fn run(
    experiment: &Experiment,
    arm: &str,
    seed: u64,
    (folder, control): (&Path, &Path),
) -> anyhow::Result<()> {
    let arm = experiment.arm(arm)?;
    let state = RunState::read(folder)?;
    if state.is_complete {
        return Ok(());
    }
    let cell = Cell {
        experiment,
        arm,
        seed,
        folder,
        control: (experiment.rating.control_games > 0 && folder != control).then_some(control),
        state,
    };
    registry::visit(registry::find(&experiment.game)?.name, cell)?
}

struct Cell<'a> {
    experiment: &'a Experiment,
    arm: &'a Arm,
    seed: u64,
    folder: &'a Path,
    /// Run whose last network the last one of this run plays. `None`: no such match.
    control: Option<&'a Path>,
    state: RunState,
}

impl Visitor for Cell<'_> {
    type Output = anyhow::Result<()>;

    fn visit<G: Notation>(mut self) -> anyhow::Result<()> {
        let config = self.experiment.config(self.arm, self.seed)?;
        let mut roles = Roles::start(&config, self.folder)?;
        let spool = &roles.config().actor.spool;
        fs::create_dir_all(spool).with_context(|| format!("cannot create {}", spool.display()))?;
        let mut games = LockStep::<G>::new(roles.config())?;
        let inference = roles.config().inference.clone();
        let loader = Loader::new(inference.threads.max(1), BATCH, inference.provider)?;
        let mut network: Option<LocalNetwork> = None;
        let mut learner_seconds = 0.0;
        loop {
            let (version, steps) = roles.train()?;
            let network = match network.take() {
                Some(same) if network::Network::description(&same).version == version.as_str() => {
                    network.insert(same)
                }
                _ => network.insert(self.load(&loader, version.as_str())?),
            };
            let spent = &mut self.state.spent;
            spent.steps = steps;
            spent.samples = steps * config.learner.batch_size as u64;
            let used = roles.learner_cpu_seconds()?;
            spent.learner_cpu_seconds += used - learner_seconds;
            learner_seconds = used;
            let budget = self.experiment.budget;
            let is_over = spent.evaluations >= budget.evaluations || spent.samples >= budget.samples;
            let mark = self.experiment.rating.every * (self.state.ratings.len() as u64 + 1);
            if is_over || spent.evaluations >= mark {
                let rated = rating::measure(
                    self.experiment,
                    (self.folder, self.control.filter(|_| is_over)),
                    inference.provider,
                    version.as_str(),
                    *spent,
                )?;
                println!("{}, seed {}: {}", self.arm.name, self.seed, rating::text(&rated));
                self.state.ratings.push(rated);
            }
            self.state.is_complete = is_over;
            self.state.write(self.folder)?;
            if is_over {
                roles.stop();
                return Ok(());
            }
            self.play(&mut games, network, &mut roles)?;
            self.state.write(self.folder)?;
        }
    }
}

impl Cell<'_> {
    fn load(&self, loader: &Loader, version: &str) -> anyhow::Result<LocalNetwork> {
        let file = ModelFile::find(&ModelName::Folder {
            path: self.folder.into(),
            version: Some(version.into()),
        })?;
        Ok(loader.open(&file)?)
    }

    /// Plays and stores the games of a round.
    fn play<G: Game>(
        &mut self,
        games: &mut LockStep<G>,
        network: &LocalNetwork,
        roles: &mut Roles,
    ) -> anyhow::Result<()> {
        let (before, seconds) = (games.counts(), own_cpu_seconds()?);
        let finished = games.play(network, self.experiment.round_positions)?;
        let new = games.counts().since(&before);
        let spent = &mut self.state.spent;
        let earlier = share(spent, self.experiment);
        spent.rounds += 1;
        spent.visits += new.visits;
        spent.evaluations += new.fresh_evaluations;
        spent.cached += new.cache_hits;
        spent.duplicates += new.duplicates_in_flight;
        spent.gray += new.gray_visits;
        spent.terminal += new.terminal_visits;
        spent.games += finished.len() as u64;
        spent.positions += finished.iter().map(|game| game.actions.len() as u64).sum::<u64>();
        spent.self_play_cpu_seconds += own_cpu_seconds()? - seconds;
        let now = share(spent, self.experiment);
        if now != earlier {
            println!(
                "{}, seed {}: {} evaluations, {} samples, {} games, round {}",
                self.arm.name, self.seed, spent.evaluations, spent.samples, spent.games, spent.rounds
            );
        }
        roles.store(finished)
    }
}

/// Returns the number of reports that are due after what is spent.
fn share(spent: &Spent, experiment: &Experiment) -> u64 {
    spent.evaluations * REPORTS / experiment.budget.evaluations
}

fn own_cpu_seconds() -> anyhow::Result<f64> {
    service::process::usage(std::process::id())
        .map(|usage| usage.cpu_seconds)
        .context("the system does not report the processor time of this process")
}
