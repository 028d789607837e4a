//! The result of a decision, and the choice of an action by temperature.

use games::{Action, Game, MoverValue, Player};

use crate::{
    draws::{Draws, GameKey, Purpose},
    search::Search,
    tree::{Step, TOTAL},
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
    /// the discounted solution of a one-player game where one is known.
    pub value: MoverValue,
    /// First action of [`Search::solution`].
    pub solution: Option<Action>,
}

impl<G: Game> Search<G> {
    /// Returns the result of the decision so far.
    pub fn decision(&self) -> Decision {
        let mover = self.state.to_move();
        let root = self.root;
        if self.is_over() {
            let value = self.tree.result(root).seen_by(mover);
            return Decision {
                mover,
                actions: Vec::new(),
                visits: Vec::new(),
                priors: Vec::new(),
                searched_priors: Vec::new(),
                values: Vec::new(),
                refuted: Vec::new(),
                evaluation: value,
                value,
                solution: None,
            };
        }
        let evaluation = self.tree.evaluation(root);
        let first = self.selector.first_value(&self.tree, root);
        let visits = self.root_visits();
        let totals: Vec<f32> = self.tree.floats(root, TOTAL).take(visits.len()).collect();
        let proofs = || (0..visits.len() as u32).map(|edge| self.tree.proof_below(Step { node: root, edge }));
        let values = totals
            .iter()
            .zip(visits)
            .zip(proofs())
            .map(|((&total, &visits), proof)| match (proof, visits) {
                (Some(outcome), _) => outcome.value().seen_by(mover),
                (None, 0) => MoverValue::new(first),
                (None, _) => MoverValue::new(total / visits as f32),
            })
            .collect();
        let all: f64 = totals.iter().map(|&total| f64::from(total)).sum();
        let count: f64 = visits.iter().map(|&visits| f64::from(visits)).sum();
        let value = (f64::from(evaluation.get()) + all) / (1.0 + count);
        Decision {
            mover,
            actions: self.tree.actions(root).collect(),
            priors: self.tree.priors(root).take(visits.len()).collect(),
            searched_priors: self.root_priors.clone(),
            visits: self.open_visits(),
            values,
            refuted: (0..visits.len() as u32)
                .map(|edge| self.tree.is_refuted(Step { node: root, edge }))
                .collect(),
            evaluation,
            value: match (self.tree.proof(root), self.solution()) {
                (Some(outcome), _) => outcome.value().seen_by(mover),
                (None, Some(solution)) => MoverValue::new(self.settings.discount.powi(solution.len() as i32)),
                (None, None) => MoverValue::new(value as f32),
            },
            solution: self.solution().and_then(|solution| solution.first().copied()),
        }
    }

    /// Draws an action with probability proportional to `visits^(1/temperature)`. A temperature of 0 or less takes the most
    /// visited action and draws among ties.
    ///
    /// The draw is keyed by the ply, so a second call returns the same action. Without visits the priors replace the visits.
    /// A known solution is followed, and no action that a proof refutes is drawn. Returns `None` where the game is over or the
    /// decision node is not evaluated yet.
    pub fn choose(&self, temperature: f32) -> Option<Action> {
        if let Some(solution) = self.solution() {
            return solution.first().copied();
        }
        let mut weights: Vec<f64> = self
            .open_visits()
            .iter()
            .map(|&visits| f64::from(visits))
            .collect();
        if weights.iter().all(|&weight| weight == 0.0) {
            weights = self.root_priors.iter().map(|&prior| f64::from(prior)).collect();
        }
        let edge = drawn(&weights, temperature, self.key, self.ply)?;
        self.tree.actions(self.root).nth(edge)
    }

    /// Returns the visits of the decision node's actions without those that a proof refutes, if that leaves any.
    fn open_visits(&self) -> Vec<u32> {
        let visits = self.root_visits();
        if !self.tree.is_near_proof(self.root) {
            return visits.to_vec();
        }
        let open: Vec<u32> = (0u32..)
            .zip(visits)
            .map(|(edge, &visits)| {
                match self.tree.is_refuted(Step {
                    node: self.root,
                    edge,
                }) {
                    true => 0,
                    false => visits,
                }
            })
            .collect();
        if open.iter().all(|&visits| visits == 0) {
            return visits.to_vec();
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

fn drawn(weights: &[f64], temperature: f32, key: GameKey, ply: u32) -> Option<usize> {
    let mut draws = Draws::new(key, ply, Purpose::Choice);
    draw(weights, f64::from(temperature), &mut draws)
}

/// Draws an index with probability proportional to `weight^(1/temperature)`. Weights are not negative.
fn draw(weights: &[f64], temperature: f64, draws: &mut Draws) -> Option<usize> {
    let greatest = weights.iter().copied().fold(0.0, f64::max);
    let powers: Vec<f64> = weights
        .iter()
        .map(|&weight| match weight / greatest {
            // Shares of the greatest weight do not overflow at small temperatures.
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
