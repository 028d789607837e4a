//! Builds a game's record while it is played: everything needed to replay it, to check it and to train on it.

use std::time::{SystemTime, UNIX_EPOCH};

use games::{Action, Game, Outcome, Symmetry};
use proto::v1::{self, GameResult, VisitTotals};
use search::{Decision, Search};

use crate::{
    naming::GameId,
    setup::Setup,
    versions::{VersionId, Versions},
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
    row_lengths: Vec<u32>,
    /// In the order in which they answered first; the record's `model_versions`.
    versions: Vec<VersionId>,
    /// Which of them is the newest.
    newest: usize,
}

impl Record {
    /// The record of a game that begins now.
    pub fn new(id: GameId, number: u64) -> Self {
        let message = v1::Game {
            id: id.0.to_vec().into(),
            game_number: number,
            ..v1::Game::default()
        };
        Self {
            id,
            message,
            row_lengths: Vec::new(),
            versions: Vec::new(),
            newest: 0,
        }
    }

    /// The game's id.
    pub fn id(&self) -> GameId {
        self.id
    }

    /// Actions played so far.
    pub fn actions(&self) -> usize {
        self.message.actions.len()
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
        let mut movers = std::mem::take(&mut game.movers).to_vec();
        movers.push(decision.mover.index() as u8);
        game.movers = movers.into();
        let start = game.rows.len();
        state.write_row(encoding, Symmetry::IDENTITY, &mut game.rows);
        self.row_lengths.push((game.rows.len() - start) as u32);
        let before = game.visits.len();
        for (&legal, &visits) in decision.actions.iter().zip(&decision.visits) {
            if visits > 0 {
                let index = state.policy_index(encoding, Symmetry::IDENTITY, legal);
                game.visit_actions.push(index);
                game.visits.push(visits);
            }
        }
        game.visit_counts.push((game.visits.len() - before) as u32);
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
            End::NoAction | End::MaxActions => Outcome::Draw,
        };
        let result = match outcome {
            Outcome::Won(games::Player::First) => GameResult::FirstWon,
            Outcome::Won(games::Player::Second) => GameResult::SecondWon,
            Outcome::Draw => GameResult::Draw,
            Outcome::Scored(_) => GameResult::Scored,
        };
        let ending = match end {
            End::Rules(Outcome::Won(games::Player::First)) => "first-won",
            End::Rules(Outcome::Won(games::Player::Second)) => "second-won",
            End::Rules(Outcome::Draw) => "draw",
            End::Rules(Outcome::Scored(_)) => "scored",
            End::NoAction => "no-action",
            End::MaxActions => "max-actions",
        };
        let rows_vary = self
            .row_lengths
            .iter()
            .any(|&length| length as usize != setup.row_len);
        let counters = search.counters();
        v1::Game {
            game: G::NAME.into(),
            options: setup.options,
            rules_json: setup.rules_json.clone(),
            row_lengths: if rows_vary { self.row_lengths } else { Vec::new() },
            result: result.into(),
            score: outcome.value().get(),
            ending: ending.into(),
            model_versions: self
                .versions
                .iter()
                .map(|&version| versions.name(version).to_string())
                .collect(),
            run_seed: setup.run_seed,
            search_json: setup.search_json.clone(),
            actor: setup.actor.clone(),
            build: env!("CARGO_PKG_VERSION").into(),
            finished_at_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_millis() as u64),
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
