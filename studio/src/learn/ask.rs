//! Asks one checkpoint about positions: the probes of the game, or its exam.

use std::sync::atomic::AtomicBool;

use arena::{
    Player, PlayerError, Spec,
    players::{
        Networks,
        thinker::{Limits, ThinkError, Thinker},
    },
    solver_test::SolverTest,
};
use games::{
    Notation,
    erased::{AnyState, Typed},
    probes::Probe,
    registry::{self, UnknownGame, Visitor},
};
use search::{Decision, Draws, GameKey, Purpose, Reuse, Settings};

use super::optimal;
use crate::run::Run;

/// Visits of a position for which the network alone is asked: one visit is made.
pub const GLANCE: u32 = 1;
/// Leaves that a search evaluates at once.
pub const LEAVES: u32 = 8;

/// Error: a checkpoint cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// This build does not know the game.
    #[error(transparent)]
    Game(#[from] UnknownGame),
    /// The network cannot be opened.
    #[error(transparent)]
    Player(#[from] PlayerError),
    /// The search failed.
    #[error(transparent)]
    Think(#[from] ThinkError),
}

/// Probes of the run's game, under the run's rules: the same at each call.
///
/// # Errors
/// [`UnknownGame`] if this build does not know the game.
pub fn probes(run: &Run) -> Result<Vec<Probe<Box<dyn AnyState>>>, UnknownGame> {
    let config = &run.config.game;
    let game = registry::find(&config.name)?;
    let rules = serde_json::to_value(&config.rules).unwrap_or_default();
    let variant = game
        .variant(&rules, Some(config.options))
        .or_else(|_| game.variant(&game.rules(), None));
    let key = GameKey { run_seed: 0, game: 0 };
    let mut draws = Draws::new(key, 0, Purpose::Problem);
    let probes = variant.map(|variant| variant.probes(&mut |below| draws.below(below)));
    Ok(probes.unwrap_or_default())
}

/// Positions on which a checkpoint is asked.
#[derive(Clone, Copy, Debug)]
pub enum Positions<'a> {
    /// The probes, each with a search of this number of visits.
    Probes(u32),
    /// The exam, for the network alone.
    SolverTests(&'a [SolverTest]),
}

/// Asks one checkpoint about positions.
pub struct Ask<'a> {
    /// Run of the checkpoint.
    pub run: &'a Run,
    /// The checkpoint.
    pub spec: &'a Spec,
    /// Positions.
    pub positions: Positions<'a>,
    /// Networks that are open.
    pub networks: &'a mut Networks,
}

impl Visitor for Ask<'_> {
    type Output = Result<Vec<Decision>, Fault>;

    fn visit<G: Notation>(self) -> Self::Output {
        let player = Player::<G>::open(self.spec, self.networks)?;
        let settings = Settings {
            leaves: LEAVES,
            reuse: Reuse::Drop,
            random_symmetry: false,
            // Moves are compared with each other, also where one is proven.
            solver: false,
            exact_leaves: false,
            ..player.settings().cloned().unwrap_or_default()
        };
        let (states, visits): (Vec<G>, u32) = match self.positions {
            Positions::Probes(visits) => {
                let probes = probes(self.run)?;
                let states = probes.iter().filter_map(|probe| Typed::<G>::find(&*probe.state));
                (states.map(|typed| typed.state.clone()).collect(), visits)
            }
            Positions::SolverTests(questions) => (optimal::states(self.run, questions), GLANCE),
        };
        let mut decisions = Vec::new();
        for (number, state) in states.into_iter().enumerate() {
            let Some(evaluator) = player.evaluator(0) else {
                break;
            };
            let key = GameKey {
                run_seed: 0,
                game: number as u64,
            };
            let mut thinker = Thinker::new(state, settings.clone(), key, evaluator);
            thinker.think(&Limits::visits(visits), &AtomicBool::new(false), |_| {})?;
            decisions.push(thinker.decision());
        }
        Ok(decisions)
    }
}
