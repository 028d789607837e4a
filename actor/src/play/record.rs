//! Builds the record of a game while it is played: everything needed to replay it, to check it and to train on it.

use std::{
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Context as _;
use games::{Action, Drawn, Game, MoverValue, Outcome, Symmetry};
use proto::{
    decisions::{DecisionEntry, Recorder},
    endings,
    v1::{self, DecisionKind, GameResult, VisitTotals},
};
use search::{Decision, Root, Settings};
use sha2::{Digest as _, Sha256};

use super::setup::Setup;
use crate::{
    GameId,
    evaluator::{VersionId, Versions},
};

/// Reason for the end of a game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GameEnd {
    /// The rules of the game, with this outcome.
    Rules(Outcome),
    /// The player to act has no legal action and the rules give no outcome: a draw (a score of 0 with one player).
    NoAction,
    /// The game has reached the run's limit of actions: a draw (a score of 0 with one player).
    MaxActions,
}

impl GameEnd {
    /// Returns the outcome of a game that ended in `state`, and the name of its ending.
    pub(crate) fn outcome<G: Game>(self, state: &G) -> (Outcome, &'static str) {
        let undecided = match G::players() {
            1 => Outcome::Scored(0.0),
            _ => Outcome::Draw,
        };
        match self {
            Self::Rules(outcome) => (outcome, state.ending().unwrap_or_default()),
            Self::NoAction => (undecided, endings::NO_ACTION),
            Self::MaxActions => (undecided, endings::MAX_ACTIONS),
        }
    }

    /// Returns the owner of each square and the score of a game that ended in `state`, as a record has them: empty and 0 if the rules
    /// did not end the game, or nobody owns squares.
    pub(crate) fn territory<G: Game>(self, state: &G) -> (Vec<u8>, f32) {
        match self {
            Self::Rules(_) => state.territory().map_or_else(Default::default, |found| {
                let owners = found.owners.into_iter().map(i8::cast_unsigned);
                (owners.collect(), found.score)
            }),
            Self::NoAction | Self::MaxActions => Default::default(),
        }
    }
}

/// The record of a game in progress.
#[derive(Debug)]
pub struct Record {
    /// Id of the game.
    pub id: GameId,
    message: v1::Game,
    decisions: Recorder,
    movers: Vec<u8>,
    row_lengths: Vec<u32>,
    /// The record's `model_versions`, in the order of their first evaluation.
    versions: Vec<VersionId>,
    /// Index of the newest version in `versions`.
    newest: usize,
    /// Evaluations of the present gather: index of the leaf, and index of the version in `versions`.
    gathered: Vec<(usize, u32)>,
}

impl Record {
    /// Begins the record of a game from the position `start` (empty for the usual one).
    pub fn new<G: Game>(setup: &Setup<G>, (number, id): (u64, GameId), start: String) -> Self {
        let message = v1::Game {
            id: id.0.to_vec().into(),
            game_number: number,
            start,
            game: G::name().into(),
            options: setup.options,
            rules_json: setup.rules_json.clone(),
            discount: if G::players() == 1 {
                setup.settings.discount
            } else {
                0.0
            },
            run_seed: setup.run_seed,
            search_json: setup.search_json.clone(),
            actor: setup.actor.clone(),
            build: build().into(),
            ..v1::Game::default()
        };
        Self {
            id,
            message,
            decisions: Recorder::default(),
            movers: Vec::new(),
            row_lengths: Vec::new(),
            versions: Vec::new(),
            newest: 0,
            gathered: Vec::new(),
        }
    }

    /// Returns the actions played so far.
    pub fn played(&self) -> &[Action] {
        &self.message.actions
    }

    /// Notes the version of the model that evaluated a leaf of the present gather, fresh or cached. `is_last` ends the gather.
    pub fn evaluated_by(&mut self, leaf: usize, version: VersionId, is_last: bool) {
        let number = self.number(version);
        self.gathered.push((leaf, number));
        if !is_last {
            return;
        }
        // Evaluations may arrive in any order; the search uses them in the order of the leaves.
        self.gathered.sort_unstable();
        let Self {
            message, gathered, ..
        } = self;
        for (_, number) in gathered.drain(..) {
            match message.evaluation_counts.last_mut() {
                Some(count) if message.evaluation_models.last() == Some(&number) => *count += 1,
                _ => {
                    message.evaluation_models.push(number);
                    message.evaluation_counts.push(1);
                }
            }
        }
    }

    /// Returns the index of a version in `versions`; adds the version if it is new.
    fn number(&mut self, version: VersionId) -> u32 {
        // The version is nearly always the newest one.
        if self.versions.get(self.newest) == Some(&version) {
            return self.newest as u32;
        }
        if let Some(known) = self.versions.iter().position(|&known| known == version) {
            return known as u32;
        }
        let number = self.versions.len();
        let is_newest = self
            .versions
            .get(self.newest)
            .is_none_or(|&newest| version > newest);
        if is_newest {
            self.newest = number;
        }
        self.versions.push(version);
        number as u32
    }

    /// Adds a position: its row, the decision of the search, and the action played.
    pub fn add<G: Game>(&mut self, state: &G, setup: &Setup<G>, decision: &Decision, action: Action) {
        let encoding = setup.encoding;
        let game = &mut self.message;
        game.actions.push(action);
        self.movers.push(decision.mover.index() as u8);
        let start = game.rows.len();
        state.write_row(encoding, Symmetry::IDENTITY, &mut game.rows);
        self.row_lengths.push((game.rows.len() - start) as u32);
        let visited = visited(decision);
        game.visit_counts.push(visited.len() as u32);
        for &(legal, visits) in &visited {
            game.visit_actions
                .push(state.policy_index(encoding, Symmetry::IDENTITY, legal));
            game.visits.push(visits);
        }
        let index = |action| state.policy_index(encoding, Symmetry::IDENTITY, action);
        record_search(&mut self.decisions, decision, &visited, action, index);
        game.policy_surprises.push(surprise(decision, &setup.settings));
        game.root_values.push(decision.value.get());
        game.model_of_position.push(self.newest as u32);
    }

    /// Completes the record.
    pub fn finish<G: Game>(
        self,
        state: &G,
        end: GameEnd,
        totals: VisitTotals,
        setup: &Setup<G>,
        versions: &Versions,
    ) -> v1::Game {
        let described = self.versions.iter().map(|&version| versions.described(version));
        let (model_versions, model_providers) = described.unzip();
        v1::Game {
            model_versions,
            model_providers,
            tree_bytes: setup.settings.tree_bytes as u64,
            totals: Some(totals),
            ..self.complete(state, end, setup)
        }
    }

    /// Completes the parts that do not depend on a search.
    fn complete<G: Game>(mut self, state: &G, end: GameEnd, setup: &Setup<G>) -> v1::Game {
        let (outcome, ending) = end.outcome(state);
        let (territory, territory_score) = end.territory(state);
        if self.versions.is_empty() {
            // No network took part: the rules gave the outcome of every position, or a solution was known.
            self.message.model_of_position.clear();
        }
        let rows_vary = setup.row_len.is_none();
        v1::Game {
            movers: self.movers.into(),
            row_lengths: if rows_vary { self.row_lengths } else { Vec::new() },
            decisions: (!self.decisions.is_empty()).then(|| self.decisions.finish()),
            result: result_of(outcome).into(),
            score: outcome.value().get(),
            ending: ending.into(),
            territory: territory.into(),
            territory_score,
            finished_at_ms: now_ms(),
            ..self.message
        }
    }
}

/// Returns the record of a known solution that was not played. Every action of the solution is the policy to learn.
///
/// # Errors
/// The solution contains an action that the rules forbid.
pub fn of_solution<G: Game>(
    drawn: &Drawn<G>,
    provenance: &str,
    named: (u64, GameId),
    setup: &Setup<G>,
) -> anyhow::Result<v1::Game> {
    let mut record = Record::new(setup, named, drawn.start.position());
    let mut state = drawn.start.clone();
    let length = drawn.solution.len() as i32;
    for (&action, left) in drawn.solution.iter().zip((1..=length).rev()) {
        let decision = Decision {
            solution: Some(action),
            ..Decision::unsearched(
                state.to_move(),
                MoverValue::new(setup.settings.discount.powi(left)),
            )
        };
        record.add(&state, setup, &decision, action);
        state
            .play(action)
            .context("the solution of a problem is invalid")?;
    }
    let end = GameEnd::Rules(state.outcome().unwrap_or(Outcome::Draw));
    Ok(v1::Game {
        provenance: provenance.into(),
        ..record.complete(&state, end, setup)
    })
}

/// Returns the result of a game in the form of its record.
pub fn result_of(outcome: Outcome) -> GameResult {
    match outcome {
        Outcome::Won(games::Player::First) => GameResult::FirstWon,
        Outcome::Won(games::Player::Second) => GameResult::SecondWon,
        Outcome::Draw => GameResult::Draw,
        Outcome::Scored(_) => GameResult::Scored,
    }
}

fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

/// Returns KataGo's policy surprise: the Kullback-Leibler divergence of the search's policy from the network's priors, in nats,
/// rounded to eight bits of mantissa. The policy is the visits, or with a Gumbel root the one that the values of actions improve.
fn surprise(decision: &Decision, settings: &Settings) -> f32 {
    let policy = match settings.root {
        Root::Puct => {
            let visits: f64 = decision.visits.iter().map(|&visits| f64::from(visits)).sum();
            let shares = decision.visits.iter().map(|&count| f64::from(count) / visits);
            shares.collect()
        }
        Root::Gumbel => decision.policy(settings.completed_q()).unwrap_or_default(),
    };
    let divergence: f64 = policy
        .iter()
        .zip(&decision.priors)
        .filter(|&(&share, _)| share > 0.0)
        .map(|(&share, &prior)| {
            // The lower bound keeps the result finite where half precision has rounded a prior to 0.
            share * (share / f64::from(prior).max(1e-7)).ln()
        })
        .sum();
    f32::from_bits((divergence.max(0.0) as f32).to_bits() & 0xffff_0000)
}

/// Returns the actions that a record names as visited, with their visits. Once a solution is known, its next action is the policy to
/// learn, whatever the visits are.
pub fn visited(decision: &Decision) -> Vec<(Action, u32)> {
    match decision.solution {
        Some(solution) => vec![(solution, decision.visits.iter().sum::<u32>().max(1))],
        None => {
            let visits = decision
                .actions
                .iter()
                .copied()
                .zip(decision.visits.iter().copied());
            visits.filter(|&(_, visits)| visits > 0).collect()
        }
    }
}

/// Records the results of a search in addition to its visits: priors of all legal actions, values of those named as `visited`, and
/// the evaluation. `index` returns the policy index of an action.
pub fn record_search(
    recorder: &mut Recorder,
    decision: &Decision,
    visited: &[(Action, u32)],
    played: Action,
    index: impl Fn(Action) -> u32,
) {
    // A known solution is recorded without a search, and the decision node may not be evaluated before a solution is followed.
    if visited.is_empty() || decision.actions.is_empty() || decision.priors.len() != decision.actions.len() {
        return recorder.push_unrecorded(visited.len());
    }
    let is_named = |action| visited.iter().any(|&(named, _)| named == action);
    let searched = || {
        let numbers = decision.priors.iter().zip(&decision.values);
        decision.actions.iter().zip(numbers)
    };
    let named: Vec<(Action, (f32, f32))> = searched()
        .filter(|&(&action, _)| is_named(action))
        .map(|(&action, (&prior, value))| match decision.solution {
            Some(_) => (action, (prior, decision.value.get())),
            None => (action, (prior, value.get())),
        })
        .collect();
    // A policy computed from these numbers gives nothing to an action that a proof refutes.
    let others: Vec<(Action, f32)> = searched()
        .zip(&decision.refuted)
        .filter(|&((&action, _), _)| !is_named(action))
        .map(|((&action, (&prior, _)), &is_refuted)| (action, if is_refuted { 0.0 } else { prior }))
        .collect();
    let mut places = named
        .iter()
        .map(|&(action, _)| action)
        .chain(others.iter().map(|&(action, _)| action));
    recorder.push(&DecisionEntry {
        kind: match decision.solution {
            Some(_) => DecisionKind::Solved,
            None => DecisionKind::Searched,
        },
        played: places.position(|action| action == played).unwrap_or_default(),
        visited: &named.iter().map(|&(_, numbers)| numbers).collect::<Vec<_>>(),
        unvisited: &others
            .iter()
            .map(|&(action, prior)| (index(action), prior))
            .collect::<Vec<_>>(),
        evaluation: decision.evaluation.get(),
    });
}

/// Identifies this program: its version and the first six bytes of the SHA-256 of its file.
pub fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let version = env!("CARGO_PKG_VERSION");
        // The link of the process leads to the running program even if its file was replaced since.
        match std::fs::read("/proc/self/exe") {
            Ok(program) => {
                let digest = Sha256::digest(&program);
                let digits: String = digest[..6].iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{version}+{digits}")
            }
            Err(_) => version.to_owned(),
        }
    })
}
