//! [`Answers`]: decisions of the run's checkpoints on the game's probe positions, computed while somebody looks.
//!
//! Each kept checkpoint gives its priors and values; the chosen one also searches. In a game with an exact solver the
//! milestones take [solver tests](super::optimal) after that. The analysis engine of the
//! studio computes, and nothing new begins soon after the last look. Results stay until the studio ends.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use arena::{
    Player, Spec,
    analysis::{Engine, Job},
    players::{
        NetworkOptions, Networks,
        spec::{Kind, SearchSpec},
    },
    solver_test::SolverTest,
};
use checkpoints::Version;
use config::Provider;
use games::{
    erased::{AnyState, Variant},
    probes::Probe,
    registry::UnknownGame,
};
use parking_lot::Mutex;
use search::{Decision, Draws, GameKey, Purpose, Settings};
use tokio::{runtime::Handle, time::Instant};

use super::optimal::{Questions, solver_tests};
use crate::run::{self, Kept, Run};

/// Visits of the search on each position.
pub const VISITS: u32 = 50;
/// Visits of a position for which the network alone is asked: one visit is made.
const GLANCE: u32 = 1;
/// Most checkpoints that are compared, next to milestones and checkpoints with a label.
const MOST: usize = 120;
/// Age from which the list of checkpoints is read again.
const FRESH: Duration = Duration::from_secs(5);
/// Time after the last look at a checkpoint for which it is worked on.
const WATCHED: Duration = Duration::from_secs(5);
/// Time after which a checkpoint that failed is tried again.
const RETRY: Duration = Duration::from_secs(30);

/// Decisions of one checkpoint, one for each probe.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Training steps of the checkpoint.
    pub step: u64,
    /// Visits of each search.
    pub visits: u32,
    /// Decisions in the order of the probes; a sentence if the network cannot be used.
    pub decisions: Result<Vec<Decision>, String>,
    at: Instant,
}

/// Answers of a run's checkpoints.
#[derive(Debug)]
pub struct Answers {
    run: Run,
    listed: tokio::sync::Mutex<Option<(Instant, Listed)>>,
    inner: Mutex<Inner>,
    /// Empty until they are drawn.
    questions: OnceLock<Questions>,
    networks: Mutex<Networks>,
}

/// The kept checkpoints in the order of training, or a sentence why they cannot be listed.
pub type Listed = Result<Arc<Vec<Kept>>, String>;

#[derive(Debug, Default)]
struct Inner {
    known: BTreeMap<Version, Arc<Answer>>,
    /// Results of the solver tests: the share of optimal moves that the network finds alone; `None` if it cannot be used.
    tested: BTreeMap<Version, Option<f64>>,
    /// Times of the last looks.
    looked: BTreeMap<Version, Instant>,
    is_working: bool,
    /// True if the game has an exact solver.
    has_solver: bool,
}

/// Something to compute for a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// A search of each probe, with this number of visits.
    Search(u32),
    /// The solver tests.
    SolverTests,
}

impl Answer {
    /// The decision on a probe; `None` if the network cannot be used.
    pub fn on(&self, probe: usize) -> Option<&Decision> {
        self.decisions.as_ref().ok()?.get(probe)
    }

    /// True if each position was searched, so that visits and values of moves say something.
    pub fn is_searched(&self) -> bool {
        self.visits >= VISITS
    }

    fn lacks(&self, visits: u32) -> bool {
        match self.decisions {
            Ok(_) => self.visits < visits,
            Err(_) => self.at.elapsed() >= RETRY,
        }
    }
}

impl Answers {
    /// Answers of a run, of which none is known yet.
    pub fn new(run: &Run) -> Self {
        let options = NetworkOptions {
            provider: Provider::Cpu,
            cache_mib: 0,
            ..NetworkOptions::default()
        };
        Self {
            run: run.clone(),
            listed: tokio::sync::Mutex::default(),
            inner: Mutex::new(Inner {
                has_solver: has_solver(run),
                ..Inner::default()
            }),
            questions: OnceLock::new(),
            networks: Mutex::new(Networks::new(options).of_run(run.config.security.clone())),
        }
    }

    /// The checkpoints that are compared.
    pub async fn kept(&self) -> Listed {
        let mut listed = self.listed.lock().await;
        if let Some((at, known)) = &*listed
            && at.elapsed() < FRESH
        {
            return known.clone();
        }
        let found = run::kept(&self.run).await;
        let found = found
            .map(|kept| Arc::new(thinned(kept)))
            .map_err(|error| format!("The checkpoints cannot be listed: {}.", service::chain(&error)));
        *listed = Some((Instant::now(), found.clone()));
        found
    }

    /// Everything that is known, by version. Notes that somebody watches the checkpoint `looked`, and begins to compute what is
    /// missing, with `engine`.
    pub fn look(
        self: &Arc<Self>,
        kept: &Arc<Vec<Kept>>,
        looked: &Version,
        engine: &Arc<Engine>,
    ) -> BTreeMap<Version, Arc<Answer>> {
        let mut inner = self.inner.lock();
        inner.looked.insert(looked.clone(), Instant::now());
        if !inner.is_working && inner.next(kept).is_some() {
            inner.is_working = true;
            let (answers, kept, engine) = (Arc::clone(self), Arc::clone(kept), Arc::clone(engine));
            Handle::current().spawn_blocking(move || answers.work(&kept, &engine));
        }
        inner.known.clone()
    }

    /// Computes what is missing, until nothing is or nobody looks.
    fn work(&self, kept: &[Kept], engine: &Engine) {
        loop {
            let next = {
                let mut inner = self.inner.lock();
                let next = inner.next(kept);
                inner.is_working = next.is_some();
                next
            };
            let Some((checkpoint, task)) = next else {
                return;
            };
            let version = checkpoint.version.clone();
            match task {
                Task::Search(visits) => {
                    let decisions = self.decide_probes(checkpoint, visits, engine);
                    let answer = Answer {
                        step: checkpoint.step,
                        visits,
                        decisions: decisions.map_err(|error| format!("{error:#}")),
                        at: Instant::now(),
                    };
                    self.inner.lock().known.insert(version, Arc::new(answer));
                }
                Task::SolverTests => {
                    let share = self.share_of_optimal(checkpoint, engine).ok().flatten();
                    self.inner.lock().tested.insert(version, share);
                }
            }
        }
    }

    /// The solver tests; `None` before they are drawn.
    pub fn questions(&self) -> Option<&[SolverTest]> {
        self.questions.get().map(|(_, questions)| questions.as_slice())
    }

    /// Steps of the checkpoints that took the solver tests, in the order of training, each with its share of optimal moves.
    pub fn optimal(&self) -> Vec<(u64, f64)> {
        let inner = self.inner.lock();
        let tested = inner.tested.iter();
        tested
            .filter_map(|(version, share)| Some((version.step(), (*share)?)))
            .collect()
    }

    /// Share of optimal moves of a checkpoint's network alone; `None` if the game has no solver.
    fn share_of_optimal(&self, checkpoint: &Kept, engine: &Engine) -> anyhow::Result<Option<f64>> {
        let variant = variant(&self.run)?;
        let (states, questions) = self.questions.get_or_init(|| solver_tests(&*variant));
        let decisions = self.decide(checkpoint, states, GLANCE, engine)?;
        let right = decisions.iter().zip(questions).filter(|(decision, question)| {
            let moves = decision.actions.iter().zip(&decision.priors);
            let best = moves.max_by(|one, other| one.1.total_cmp(other.1));
            best.is_some_and(|(action, _)| question.optimal.contains(action))
        });
        let right = right.count();
        Ok((!questions.is_empty()).then(|| right as f64 / questions.len() as f64))
    }

    fn decide_probes(
        &self,
        checkpoint: &Kept,
        visits: u32,
        engine: &Engine,
    ) -> anyhow::Result<Vec<Decision>> {
        let probes = probes(&self.run)?.into_iter();
        let states: Vec<Box<dyn AnyState>> = probes.map(|probe| probe.state).collect();
        self.decide(checkpoint, &states, visits, engine)
    }

    /// Decisions of a checkpoint on positions, with a search of `visits` visits on each.
    fn decide(
        &self,
        checkpoint: &Kept,
        states: &[Box<dyn AnyState>],
        visits: u32,
        engine: &Engine,
    ) -> anyhow::Result<Vec<Decision>> {
        let mut networks = self.networks.lock();
        // Only one network is open at a time.
        networks.close_unused(0);
        let spec = Spec {
            name: checkpoint.name(),
            written: checkpoint.version.to_string(),
            kind: Kind::Model(checkpoint.model(&self.run), SearchSpec::default()),
        };
        let game = self.run.game()?;
        let player = Arc::new(Player::open(game, &spec, &mut networks)?);
        let jobs = states.iter().zip(0..).map(|(state, number)| {
            let job = Job::new(Arc::clone(&player), state.copy(), state.position(), visits);
            Job {
                settings: Settings {
                    // Moves are compared with each other, also where one is proven.
                    solver: false,
                    exact_leaves: false,
                    ..job.settings.clone()
                },
                key: GameKey {
                    run_seed: 0,
                    game: number,
                },
                ..job
            }
        });
        engine.run(jobs, |search| search.decision())
    }
}

impl Inner {
    /// Next checkpoint and task; `None` if all is done, or nobody watches.
    fn next<'a>(&mut self, kept: &'a [Kept]) -> Option<(&'a Kept, Task)> {
        self.looked.retain(|_, looked| looked.elapsed() < WATCHED);
        if self.looked.is_empty() {
            return None;
        }
        let lacks = |checkpoint: &Kept, visits: u32| {
            let known = self.known.get(&checkpoint.version);
            known.is_none_or(|known| known.lacks(visits))
        };
        let looked = || {
            kept.iter()
                .filter(|checkpoint| self.looked.contains_key(&checkpoint.version))
        };
        let milestones = || kept.iter().filter(|checkpoint| checkpoint.milestone.is_some());
        let glances = milestones().chain(kept).map(|checkpoint| (checkpoint, GLANCE));
        let search = looked()
            .map(|checkpoint| (checkpoint, VISITS))
            .chain(glances)
            .find(|(checkpoint, visits)| lacks(checkpoint, *visits));
        if let Some((checkpoint, visits)) = search {
            return Some((checkpoint, Task::Search(visits)));
        }
        let may_be_tested = |checkpoint: &Kept| {
            let known = self.known.get(&checkpoint.version);
            known.is_some_and(|known| known.decisions.is_ok())
                && !self.tested.contains_key(&checkpoint.version)
        };
        let tested = looked().chain(milestones()).chain(kept.last());
        let next = tested
            .filter(|_| self.has_solver)
            .find(|checkpoint| may_be_tested(checkpoint));
        next.map(|checkpoint| (checkpoint, Task::SolverTests))
    }
}

/// The run's game under the run's rules; under the usual ones, if this build knows no such rules.
fn variant(run: &Run) -> Result<Arc<dyn Variant>, UnknownGame> {
    let config = &run.config.game;
    let game = run.game()?;
    let rules = serde_json::to_value(&config.rules).unwrap_or_default();
    let variant = game.variant(&rules, Some(config.options));
    let variant = variant.or_else(|_| game.variant(&game.rules(), None));
    variant.map_err(|_| UnknownGame::new(&config.name))
}

/// Probes of the run's game, under the run's rules: the same at each call.
///
/// # Errors
/// [`UnknownGame`] if this build does not know the game.
pub fn probes(run: &Run) -> Result<Vec<Probe<Box<dyn AnyState>>>, UnknownGame> {
    let key = GameKey { run_seed: 0, game: 0 };
    let mut draws = Draws::new(key, 0, Purpose::Problem);
    Ok(variant(run)?.probes(&mut |below| draws.below(below)))
}

/// True if a run's game has an exact solver.
pub fn has_solver(run: &Run) -> bool {
    run.game().is_ok_and(|game| game.has_solver)
}

/// Leaves out checkpoints of a long list at equal distances.
fn thinned(mut kept: Vec<Kept>) -> Vec<Kept> {
    let stride = kept.len().div_ceil(MOST).max(1);
    let last = kept.len().saturating_sub(1);
    let mut number = 0;
    kept.retain(|checkpoint| {
        let stays = number % stride == 0
            || number == last
            || checkpoint.milestone.is_some()
            || !checkpoint.labels.is_empty();
        number += 1;
        stays
    });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(step: u64, milestone: Option<&str>) -> Kept {
        Kept {
            version: format!("{step:012}-00000000").parse().unwrap(),
            step,
            created_at_ms: 0,
            milestone: milestone.map(String::from),
            labels: Vec::new(),
        }
    }

    #[test]
    fn a_long_list_is_thinned_and_keeps_its_milestones_and_its_end() {
        let short: Vec<Kept> = (0..MOST as u64).map(|step| checkpoint(step, None)).collect();
        assert_eq!(thinned(short.clone()), short);
        let long = (0..1_000).map(|step| checkpoint(step, (step == 7).then_some("minute 1")));
        let steps: Vec<u64> = thinned(long.collect()).iter().map(|kept| kept.step).collect();
        assert_eq!(steps[..4], [0, 7, 9, 18]);
        assert_eq!(steps.last(), Some(&999));
    }

    #[tokio::test]
    async fn the_watched_checkpoint_comes_first_then_milestones_and_nothing_while_nobody_looks() {
        let kept = [
            checkpoint(1, None),
            checkpoint(2, Some("minute 1")),
            checkpoint(3, None),
        ];
        let mut inner = Inner::default();
        assert!(inner.next(&kept).is_none());
        inner.looked.insert(kept[2].version.clone(), Instant::now());
        inner.has_solver = true;
        let mut order = Vec::new();
        while let Some((checkpoint, task)) = inner.next(&kept) {
            order.push((checkpoint.step, task));
            if task == Task::SolverTests {
                inner.tested.insert(checkpoint.version.clone(), None);
                continue;
            }
            let answer = Answer {
                step: checkpoint.step,
                visits: VISITS,
                decisions: Ok(Vec::new()),
                at: Instant::now(),
            };
            inner.known.insert(checkpoint.version.clone(), Arc::new(answer));
        }
        let glance = Task::Search(GLANCE);
        let searches = [(3, Task::Search(VISITS)), (2, glance), (1, glance)];
        assert_eq!(order[..3], searches);
        assert_eq!(order[3..], [(3, Task::SolverTests), (2, Task::SolverTests)]);
    }
}
