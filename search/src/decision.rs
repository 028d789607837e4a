//! The result of a decision, and the choice of an action by temperature.

use games::{Action, Game, MoverValue, Player};

use crate::{
    completed_q::{CompletedQ, Results},
    draws::{Draws, GameKey, Purpose},
    search::Search,
    tree::Step,
};

/// Result of a decision, as a game record keeps it. All lists have the order of `actions`.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Player to act.
    pub mover: Player,
    /// Legal actions, ascending; none where the game is over.
    pub actions: Vec<Action>,
    /// Visits of each action. Their sum is the number of the decision's visits, plus those kept from earlier decisions with
    /// [`Reuse::Keep`](crate::Reuse::Keep), less those of actions that a [proof](crate::Settings::solver) refutes, which count
    /// as 0 if others have any.
    pub visits: Vec<u32>,
    /// Priors from the evaluator. Empty, like `searched_priors`, until the decision node is evaluated.
    pub priors: Vec<f32>,
    /// Priors with noise, as the search used them.
    pub searched_priors: Vec<f32>,
    /// Mean value of the visits of each action; its first-play value if it has none, and the outcome if that is proven.
    pub values: Vec<MoverValue>,
    /// True for each action that a [proof](crate::Settings::solver) refutes: it loses, or gives away a proven draw or win.
    /// Empty where `visits` is.
    pub refuted: Vec<bool>,
    /// Evaluation of the decision node: 0 until there is one, the result where the game is over.
    pub evaluation: MoverValue,
    /// Mean of the decision node's own evaluation and of the values of all its visits; the outcome where it is proven, and
    /// the discounted solution of a one-player game where one is known. With a [`Root::Gumbel`](crate::Root::Gumbel), which visits bad
    /// actions as often as good ones for a while, the value under [`Decision::policy`] instead of the mean.
    pub value: MoverValue,
    /// First action of [`Search::solution`].
    pub solution: Option<Action>,
    /// Action that a [`Root::Gumbel`](crate::Root::Gumbel) plays if there is no solution; `None` with another root.
    pub best: Option<Action>,
}

impl Decision {
    /// Returns the result of a decision without a search, which has only a value.
    pub fn unsearched(mover: Player, value: MoverValue) -> Self {
        Self {
            mover,
            actions: Vec::new(),
            visits: Vec::new(),
            priors: Vec::new(),
            searched_priors: Vec::new(),
            values: Vec::new(),
            refuted: Vec::new(),
            evaluation: MoverValue::default(),
            value,
            solution: None,
            best: None,
        }
    }

    /// Returns the evaluator's policy, improved by the values of the actions, in the order of `actions`. `None` before the decision
    /// node is evaluated.
    pub fn policy(&self, rule: CompletedQ) -> Option<Vec<f64>> {
        self.with_results(|results| rule.policy(results))
    }

    fn with_results<T>(&self, compute: impl FnOnce(&Results<'_>) -> T) -> T {
        let priors: Vec<f64> = self.priors.iter().map(|&prior| prior.into()).collect();
        let values: Vec<f64> = self.values.iter().map(|value| value.get().into()).collect();
        compute(&Results {
            priors: &priors,
            visits: &self.visits,
            values: &values,
            evaluation: self.evaluation.get().into(),
        })
    }
}

impl<G: Game> Search<G> {
    /// Returns the result of the decision so far.
    pub fn decision(&self) -> Decision {
        let mover = self.state.to_move();
        let root = self.root;
        if self.is_over() {
            let value = self.tree.result(root).seen_by(mover);
            return Decision {
                evaluation: value,
                ..Decision::unsearched(mover, value)
            };
        }
        let evaluation = self.tree.evaluation(root);
        let visits = self.root_visits();
        let totals = self.tree.totals(root).take(visits.len());
        let all: f64 = totals.map(f64::from).sum();
        let count: f64 = visits.iter().map(|&visits| f64::from(visits)).sum();
        let value = (f64::from(evaluation.get()) + all) / (1.0 + count);
        let mut decision = Decision {
            mover,
            actions: self.tree.actions(root).collect(),
            priors: self.tree.priors(root).take(visits.len()).collect(),
            searched_priors: self.root_priors.clone(),
            visits: self.open_visits(),
            values: self.root_values(),
            refuted: (0..visits.len() as u32)
                .map(|edge| self.is_root_edge_refuted(edge))
                .collect(),
            evaluation,
            value: match (self.tree.proof(root), self.solution()) {
                (Some(outcome), _) => outcome.value().seen_by(mover),
                (None, Some(solution)) => MoverValue::new(self.settings.discount.powi(solution.len() as i32)),
                (None, None) => MoverValue::new(value as f32),
            },
            solution: self.solution().and_then(|solution| solution.first().copied()),
            best: self.best_candidate(),
        };
        if self.has_gumbel_root() && self.tree.proof(root).is_none() && decision.solution.is_none() {
            let rule = self.settings.completed_q();
            let value = decision.with_results(|results| rule.value(results));
            decision.value = value.map_or(evaluation, |value| MoverValue::new(value as f32));
        }
        decision
    }

    /// Returns the value of each action of the decision node, as in [`Decision::values`].
    pub(crate) fn root_values(&self) -> Vec<MoverValue> {
        let (node, mover) = (self.root, self.state.to_move());
        let first = self.selector.first_value(&self.tree, node);
        let statistics = self.root_visits().iter().zip(self.tree.totals(node));
        (0u32..)
            .zip(statistics)
            .map(
                |(edge, (&visits, total))| match (self.tree.proof_below(Step { node, edge }), visits) {
                    (Some(outcome), _) => outcome.value().seen_by(mover),
                    (None, 0) => MoverValue::new(first),
                    (None, _) => MoverValue::new(total / visits as f32),
                },
            )
            .collect()
    }

    /// Draws an action with probability proportional to `visits^(1/temperature)`. A temperature of 0 or less takes the most
    /// visited action and draws among ties. A [`Root::Gumbel`](crate::Root::Gumbel) has chosen by its own draws, at any temperature.
    ///
    /// The draw is keyed by the ply, so a second call returns the same action. A known solution is followed, and no action that a
    /// proof refutes is drawn. If no other action has visits, the priors replace the visits. Returns `None` where the game is over or the
    /// decision node is not evaluated yet.
    pub fn choose(&self, temperature: f32) -> Option<Action> {
        if let Some(solution) = self.solution() {
            return solution.first().copied();
        }
        if let Some(best) = self.best_candidate() {
            return Some(best);
        }
        let visits = self.root_visits().iter().map(|&visits| f64::from(visits));
        let priors = self.root_priors.iter().map(|&prior| f64::from(prior));
        let ones = vec![1.0; self.root_priors.len()];
        let candidates = [visits.collect(), priors.collect(), ones];
        let weights = candidates
            .into_iter()
            .map(|weights: Vec<f64>| self.without_refuted(weights))
            .find(|weights| weights.iter().any(|&weight| weight > 0.0))?;
        let edge = drawn(&weights, temperature, self.key, self.ply)?;
        self.tree.actions(self.root).nth(edge)
    }

    /// Sets the numbers of those actions of the decision node to 0 that a proof refutes.
    fn without_refuted<T: Default>(&self, mut numbers: Vec<T>) -> Vec<T> {
        for (edge, number) in (0u32..).zip(&mut numbers) {
            if self.is_root_edge_refuted(edge) {
                *number = T::default();
            }
        }
        numbers
    }

    /// Returns the visits of the decision node's actions without those that a proof refutes, if that leaves any.
    pub(crate) fn open_visits(&self) -> Vec<u32> {
        let visits = self.root_visits().to_vec();
        let open = self.without_refuted(visits.clone());
        if open.iter().all(|&visits| visits == 0) {
            return visits;
        }
        open
    }
}

/// Returns the index of the action that [`Search::choose`] draws after `ply` actions from these visits, in the order of the
/// legal actions; `None` if there are none. Checks the moves of a record without its network.
pub fn chosen(visits: &[u32], temperature: f32, key: GameKey, ply: u32) -> Option<usize> {
    let weights: Vec<f64> = visits.iter().map(|&visits| f64::from(visits)).collect();
    drawn(&weights, temperature, key, ply)
}

/// Draws an index with probability proportional to `weight^(1/temperature)`. Weights are not negative.
fn drawn(weights: &[f64], temperature: f32, key: GameKey, ply: u32) -> Option<usize> {
    let mut draws = Draws::new(key, ply, Purpose::Choice);
    let temperature = f64::from(temperature);
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let powers: Vec<f64> = weights
        .iter()
        .map(|&weight| match weight / largest {
            // Shares of the largest weight do not overflow at small temperatures.
            share if temperature > 0.0 => share.powf(1.0 / temperature),
            share => f64::from(u8::from(share >= 1.0)),
        })
        .collect();
    let mut rest = draws.unit() * powers.iter().sum::<f64>();
    let mut last = None;
    for (index, &power) in powers.iter().enumerate() {
        if power > 0.0 {
            last = Some(index);
            if rest < power {
                break;
            }
            rest -= power;
        }
    }
    last
}
