//! The Gumbel root: candidates, sequential halving, and the choice of the best (Danihelka et al., 2022, "Policy improvement by
//! planning with Gumbel"). [`Root::Gumbel`].
//!
//! # The method
//! Each action gets a draw `g` from the standard Gumbel distribution, once for each decision. The 16 actions with the largest
//! `g + ln P` are the candidates, where `P` is the prior without noise. That is a draw without replacement from the network's policy.
//! The visits are divided among them by sequential halving. With `n` visits and `m` candidates there are `log₂ m` phases, rounded up:
//! in each phase every candidate gets `n / (phases · candidates)` visits, at least one, and then the better half stays, at least
//! two of them. The last two candidates take the visits that are left. Candidates are compared by
//!
//! ```text
//! g + ln P + s(q)
//! ```
//!
//! with `s` and the values of unvisited actions as in [`completed_q`](crate::completed_q). The action that is played is the best by
//! this score among the most visited. With [`Settings::noise_fraction`] = 0, in matches, all `g` are 0. Below the decision node PUCT
//! chooses.
//!
//! # Sweeps
//! In a sweep each candidate is visited once. Candidates have no node in common, so the leaves of a whole sweep are requested at once
//! without virtual losses, and the tree is the one of a serial search. Candidates are compared between two sweeps only.
//!
//! # Further rules
//! A decision with one legal action takes no visits. Candidates that a proof refutes are visited no more; if all of them are,
//! halving begins anew with the other actions and the visits that are left. The visits and values of the decision node always begin
//! at zero: with [`Reuse::Keep`](crate::Reuse::Keep) only the nodes below it keep theirs.

use games::{Action, Game};

use crate::{
    completed_q::Results,
    draws::{Draws, GameKey, Purpose},
    gather::LeafRequest,
    search::Search,
    settings::{Root, Settings},
};

/// Maximum number of candidates.
const CANDIDATES: usize = 16;

/// The part of sequential halving that a decision has reached.
#[derive(Clone, Debug)]
pub(crate) struct Halving {
    /// Number of visits that the phases divide.
    visits: u32,
    /// Number of phases.
    phases: u32,
    /// Edges of the candidates, in the order in which a sweep visits them.
    candidates: Vec<u32>,
    /// Number of sweeps of this phase after the present one.
    sweeps: u32,
    /// The present sweep visits each candidate with fewer visits than this.
    goal: u32,
}

impl Halving {
    /// Divides `visits` among the first of the `ranked` edges. The least number of visits that one of them has is `least`.
    fn new(visits: u32, mut ranked: Vec<u32>, least: impl Fn(u32) -> u32) -> Self {
        ranked.truncate(CANDIDATES.min(visits.max(1) as usize));
        let mut halving = Self {
            visits,
            phases: ranked.len().next_power_of_two().ilog2().max(1),
            goal: 1 + ranked.iter().map(|&edge| least(edge)).min().unwrap_or_default(),
            candidates: ranked,
            sweeps: 0,
        };
        halving.sweeps = halving.sweeps_of_phase() - 1;
        halving
    }

    /// Returns the number of visits that each candidate gets in a phase, at least 1.
    fn sweeps_of_phase(&self) -> u32 {
        let candidates = self.candidates.len().max(1) as u32;
        (self.visits / (self.phases * candidates)).max(1)
    }

    /// Begins the sweep after a complete one. `rank` sorts candidates, the best first.
    fn next_sweep(&mut self, rank: impl FnOnce(&mut [u32])) {
        rank(&mut self.candidates);
        self.goal += 1;
        if self.sweeps > 0 {
            self.sweeps -= 1;
            return;
        }
        self.candidates.truncate((self.candidates.len() / 2).max(2));
        self.sweeps = self.sweeps_of_phase() - 1;
    }
}

impl<G: Game> Search<G> {
    pub(crate) fn has_gumbel_root(&self) -> bool {
        self.settings.root == Root::Gumbel
    }

    /// Returns true if there is nothing to decide: the decision node has one action and an evaluation, which suffices.
    pub(crate) fn is_forced(&self) -> bool {
        self.has_gumbel_root() && self.root_priors.len() == 1
    }

    /// Makes the visits of the present sweep, and of further sweeps as long as no leaf is pending.
    pub(crate) fn sweep(&mut self, request: &mut impl FnMut(LeafRequest<'_, G>)) {
        while self.unanswered == 0 && self.lacks_visits() {
            let Some(halving) = self.halving_with_work() else {
                return;
            };
            for &edge in &halving.candidates {
                let is_due = self.visits_of(edge) < halving.goal && !self.is_root_edge_refuted(edge);
                if is_due && self.lacks_visits() && !self.visit(Some(edge), request) {
                    self.counters.collisions += 1;
                    break;
                }
            }
            self.halving = Some(halving);
        }
    }

    /// Takes the halving, in a sweep that has a candidate to visit. `None` if no action can be visited. No leaf is pending.
    fn halving_with_work(&mut self) -> Option<Halving> {
        let mut halving = self.halving.take();
        if let Some(halving) = &mut halving {
            halving
                .candidates
                .retain(|&edge| !self.is_root_edge_refuted(edge));
        }
        let mut halving = match halving.filter(|halving| !halving.candidates.is_empty()) {
            Some(halving) => halving,
            None => {
                let mut edges: Vec<u32> = (0..self.root_priors.len() as u32)
                    .filter(|&edge| !self.is_root_edge_refuted(edge))
                    .collect();
                self.rank(&mut edges);
                let left = self.settings.visits.saturating_sub(self.visits_done);
                Halving::new(left, edges, |edge| self.visits_of(edge))
            }
        };
        if halving.candidates.is_empty() {
            return None;
        }
        while halving
            .candidates
            .iter()
            .all(|&edge| self.visits_of(edge) >= halving.goal)
        {
            halving.next_sweep(|edges| self.rank(edges));
        }
        Some(halving)
    }

    /// Sorts edges of the decision node by their score, the best first. Edges of equal score keep their order.
    fn rank(&self, edges: &mut [u32]) {
        let scores = self.root_scores();
        edges.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
    }

    fn visits_of(&self, edge: u32) -> u32 {
        self.root_visits()[edge as usize]
    }

    /// Returns `g + ln P + s(q)` of each action of the decision node.
    fn root_scores(&self) -> Vec<f64> {
        let priors: Vec<f64> = self.root_priors.iter().map(|&prior| prior.into()).collect();
        let values: Vec<f64> = self
            .root_values()
            .iter()
            .map(|value| value.get().into())
            .collect();
        scores(
            &Results {
                priors: &priors,
                visits: &self.open_visits(),
                values: &values,
                evaluation: self.tree.evaluation(self.root).get().into(),
            },
            &self.settings,
            (self.key, self.ply),
        )
    }

    /// Returns the action with the largest score among the most visited ones; `None` before the decision node is evaluated, and with
    /// another root.
    pub(crate) fn best_candidate(&self) -> Option<Action> {
        if !self.has_gumbel_root() || self.root_priors.is_empty() {
            return None;
        }
        let best = best(&self.root_scores(), &self.open_visits())?;
        self.tree.actions(self.root).nth(best)
    }
}

/// Returns true if a search with a [`Root::Gumbel`] can have chosen the action at the index `place` after `ply` actions. Each recorded
/// value may be wrong by at most `error`. Checks the moves of a record without its network.
pub fn can_choose(
    place: usize,
    results: &Results<'_>,
    settings: &Settings,
    (key, ply): (GameKey, u32),
    error: f64,
) -> bool {
    let scores = scores(results, settings, (key, ply));
    let Some(best) = best(&scores, results.visits) else {
        return false;
    };
    let least = scores[best] - settings.completed_q().uncertainty(results, error);
    results.visits.get(place) == results.visits.get(best)
        && scores.get(place).is_some_and(|&score| score >= least)
}

/// Returns the index of the largest score among the actions with the most visits; the first one of equals.
fn best(scores: &[f64], visits: &[u32]) -> Option<usize> {
    let most = visits.iter().copied().max()?;
    let candidates = (0..scores.len()).filter(|&place| visits.get(place) == Some(&most));
    candidates.reduce(|best, other| if scores[other] > scores[best] { other } else { best })
}

/// Returns `g + ln P + s(q)` of each action.
fn scores(results: &Results<'_>, settings: &Settings, (key, ply): (GameKey, u32)) -> Vec<f64> {
    let mut scores = settings.completed_q().logits(results);
    if settings.noise_fraction > 0.0 {
        let mut draws = Draws::new(key, ply, Purpose::Gumbel);
        scores.iter_mut().for_each(|score| *score += draws.gumbel());
    }
    scores
}
