//! Builds a game's record while it is played: everything needed to replay it, to check it and to train on it.

use std::{
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use games::{Action, Drawn, Game, IllegalAction, MoverValue, Outcome, Symmetry};
use proto::v1::{self, GameResult, VisitTotals};
use search::{Decision, Search};
use sha2::{Digest as _, Sha256};

use super::setup::Setup;
use crate::{
    GameId,
    evaluator::{VersionId, Versions},
};

/// Why a game is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// By its rules.
    Rules(Outcome),
    /// The player to act has no action, and the rules say nothing about that: counted as a draw.
    NoAction,
    /// It has reached the run's limit of actions: counted as a draw.
    MaxActions,
}

/// A record in the making.
#[derive(Debug)]
pub struct Record {
    id: GameId,
    message: v1::Game,
    movers: Vec<u8>,
    row_lengths: Vec<u32>,
    /// In the order in which they answered first; the record's `model_versions`.
    versions: Vec<VersionId>,
    /// Which of them is the newest.
    newest: usize,
}

impl Record {
    /// The record of a game that begins now, in the position `start` (empty for the usual one).
    pub fn new(id: GameId, number: u64, start: String) -> Self {
        let message = v1::Game {
            id: id.0.to_vec().into(),
            game_number: number,
            start,
            ..v1::Game::default()
        };
        Self {
            id,
            message,
            movers: Vec::new(),
            row_lengths: Vec::new(),
            versions: Vec::new(),
            newest: 0,
        }
    }

    /// The game's id.
    pub fn id(&self) -> GameId {
        self.id
    }

    /// Number of actions played so far.
    pub fn actions(&self) -> usize {
        self.message.actions.len()
    }

    /// Actions played so far.
    pub fn played(&self) -> &[Action] {
        &self.message.actions
    }

    /// Notes which model an evaluation of this game came from, fresh or known already.
    pub fn evaluated_by(&mut self, version: VersionId) {
        // Nearly always the newest so far.
        if self.versions.get(self.newest) == Some(&version) || self.versions.contains(&version) {
            return;
        }
        let is_newest = self
            .versions
            .get(self.newest)
            .is_none_or(|&newest| version > newest);
        if is_newest {
            self.newest = self.versions.len();
        }
        self.versions.push(version);
    }

    /// Adds a position: what was known of it, what the search found, what was played.
    pub fn add<G: Game>(&mut self, state: &G, encoding: G::Encoding, decision: &Decision, action: Action) {
        let game = &mut self.message;
        game.actions.push(action);
        self.movers.push(decision.mover.index() as u8);
        let start = game.rows.len();
        state.write_row(encoding, Symmetry::IDENTITY, &mut game.rows);
        self.row_lengths.push((game.rows.len() - start) as u32);
        let before = game.visits.len();
        let index = |action| state.policy_index(encoding, Symmetry::IDENTITY, action);
        // Once a solution is known the policy to learn is the action on it, however late the search came to it.
        if let Some(solution) = decision.solution {
            game.visit_actions.push(index(solution));
            game.visits.push(decision.visits.iter().sum::<u32>().max(1));
        } else {
            for (&legal, &visits) in decision.actions.iter().zip(&decision.visits) {
                if visits > 0 {
                    game.visit_actions.push(index(legal));
                    game.visits.push(visits);
                }
            }
        }
        game.visit_counts.push((game.visits.len() - before) as u32);
        game.policy_surprises.push(surprise(decision));
        game.root_values.push(decision.value.get());
        game.model_of_position.push(self.newest as u32);
    }

    /// The finished record.
    pub fn finish<G: Game>(
        self,
        search: &Search<G>,
        end: End,
        answered: Answered,
        setup: &Setup<G>,
        versions: &Versions,
    ) -> v1::Game {
        let outcome = match end {
            End::Rules(outcome) => outcome,
            End::NoAction | End::MaxActions if G::PLAYERS == 1 => Outcome::Scored(0.0),
            End::NoAction | End::MaxActions => Outcome::Draw,
        };
        let result = result_of(outcome);
        let ending = match end {
            End::Rules(_) => search.state().ending().unwrap_or_default(),
            End::NoAction => "no-action",
            End::MaxActions => "max-actions",
        };
        let rows_vary = self
            .row_lengths
            .iter()
            .any(|&length| Some(length as usize) != setup.row_len);
        let counters = search.counters();
        v1::Game {
            game: G::NAME.into(),
            options: setup.options,
            movers: self.movers.into(),
            rules_json: setup.rules_json.clone(),
            row_lengths: if rows_vary { self.row_lengths } else { Vec::new() },
            result: result.into(),
            score: outcome.value().get(),
            discount: discount(setup),
            ending: ending.into(),
            model_versions: self
                .versions
                .iter()
                .map(|&version| versions.name(version).to_string())
                .collect(),
            run_seed: setup.run_seed,
            search_json: setup.search_json.clone(),
            actor: setup.actor.clone(),
            build: build().into(),
            tree_bytes: setup.settings.tree_bytes as u64,
            model_providers: self
                .versions
                .iter()
                .map(|&version| versions.provider(version))
                .collect(),
            finished_at_ms: now_ms(),
            totals: Some(VisitTotals {
                visits: counters.visits,
                fresh_evaluations: answered.fresh,
                cache_hits: answered.cache_hits,
                terminal_visits: counters.terminal_visits,
                duplicates_in_flight: answered.duplicates,
                gray_visits: counters.gray_visits,
            }),
            ..self.message
        }
    }
}

/// The record of a solution that was known and not played: every action on it is the policy to learn.
///
/// # Errors
/// [`IllegalAction`] where it is no solution by the rules.
pub fn of_solution<G: Game>(
    drawn: &Drawn<G>,
    provenance: &str,
    (number, id): (u64, GameId),
    setup: &Setup<G>,
) -> Result<v1::Game, IllegalAction> {
    let mut record = Record::new(id, number, drawn.start.position());
    let mut state = drawn.start.clone();
    let length = drawn.solution.len() as i32;
    for (&action, left) in drawn.solution.iter().zip((1..=length).rev()) {
        let decision = Decision {
            mover: state.to_move(),
            actions: Vec::new(),
            visits: Vec::new(),
            priors: Vec::new(),
            searched_priors: Vec::new(),
            values: Vec::new(),
            evaluation: MoverValue::default(),
            value: MoverValue::new(setup.settings.discount.powi(left)),
            solution: Some(action),
        };
        record.add(&state, setup.encoding, &decision, action);
        state.play(action)?;
    }
    let outcome = state.outcome().unwrap_or(Outcome::Draw);
    Ok(v1::Game {
        game: G::NAME.into(),
        options: setup.options,
        movers: record.movers.into(),
        rules_json: setup.rules_json.clone(),
        row_lengths: if setup.row_len.is_none() {
            record.row_lengths
        } else {
            Vec::new()
        },
        result: result_of(outcome).into(),
        score: outcome.value().get(),
        discount: discount(setup),
        ending: state.ending().unwrap_or_default().into(),
        // No network had a part in it.
        model_of_position: Vec::new(),
        run_seed: setup.run_seed,
        search_json: setup.search_json.clone(),
        actor: setup.actor.clone(),
        build: build().into(),
        finished_at_ms: now_ms(),
        provenance: provenance.into(),
        ..record.message
    })
}

fn result_of(outcome: Outcome) -> GameResult {
    match outcome {
        Outcome::Won(games::Player::First) => GameResult::FirstWon,
        Outcome::Won(games::Player::Second) => GameResult::SecondWon,
        Outcome::Draw => GameResult::Draw,
        Outcome::Scored(_) => GameResult::Scored,
    }
}

fn discount<G: Game>(setup: &Setup<G>) -> f32 {
    if G::PLAYERS == 1 {
        setup.settings.discount
    } else {
        0.0
    }
}

fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

/// What this program is: its version, and the beginning of its file's SHA-256.
pub fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let version = env!("CARGO_PKG_VERSION");
        // Read through the process's own link, so that a program that was replaced meanwhile is not taken for this one.
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

/// How far the visits have moved away from the network's own priors: their Kullback-Leibler divergence from them, in
/// nats, rounded to eight bits of mantissa (KataGo's policy surprise).
fn surprise(decision: &Decision) -> f32 {
    let visits: f64 = decision.visits.iter().map(|&visits| f64::from(visits)).sum();
    let divergence: f64 = decision
        .visits
        .iter()
        .zip(&decision.priors)
        .filter(|&(&visits, _)| visits > 0)
        .map(|(&count, &prior)| {
            let share = f64::from(count) / visits;
            // A prior that half precision has rounded to nothing is no infinite surprise.
            share * (share / f64::from(prior).max(1e-7)).ln()
        })
        .sum();
    f32::from_bits((divergence.max(0.0) as f32).to_bits() & 0xffff_0000)
}

/// How the evaluations that a game asked for were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// By the network.
    pub fresh: u64,
    /// By the cache.
    pub cache_hits: u64,
    /// Together with an equal question that was being asked already.
    pub duplicates: u64,
}
