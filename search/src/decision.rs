//! The result of a decision, and the choice of an action by temperature.

use games::{Action, Game, MoverValue, Player};

use crate::{
    draws::{Draws, GameKey, Purpose},
    search::Search,
    tree::TOTAL,
};

/// Result of a decision, as a game record keeps it. All lists have the order of `actions`.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Player to act.
    pub mover: Player,
    /// Legal actions, ascending; none where the game is over.
    pub actions: Vec<Action>,
    /// Visits of each action. Their sum is the number of the decision's visits, plus those kept from earlier decisions with
    /// [`Reuse::Keep`](crate::Reuse::Keep).
    pub visits: Vec<u32>,
    /// Priors from the evaluator. Empty, like `searched_priors`, until the decision node is evaluated.
    pub priors: Vec<f32>,
    /// Priors with noise, as the search used them.
    pub searched_priors: Vec<f32>,
    /// Mean value of the visits of each action; its first-play value if it has none.
    pub values: Vec<MoverValue>,
    /// Evaluation of the decision node: 0 until there is one, the result where the game is over.
    pub evaluation: MoverValue,
    /// Mean of the decision node's own evaluation and of the values of all its visits; the discounted solution where one is
    /// known.
    pub value: MoverValue,
    /// First action of the shortest solution known.
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
                evaluation: value,
                value,
                solution: None,
            };
        }
        let evaluation = self.tree.evaluation(root);
        let first = self.selector.first_value(evaluation.get());
        let visits = self.root_visits().to_vec();
        let totals: Vec<f32> = self.tree.floats(root, TOTAL).take(visits.len()).collect();
        let values = totals
            .iter()
            .zip(&visits)
            .map(|(&total, &visits)| MoverValue::new(if visits == 0 { first } else { total / visits as f32 }))
            .collect();
        let all: f64 = totals.iter().map(|&total| f64::from(total)).sum();
        let count: f64 = visits.iter().map(|&visits| f64::from(visits)).sum();
        let value = (f64::from(evaluation.get()) + all) / (1.0 + count);
        Decision {
            mover,
            actions: self.tree.actions(root).collect(),
            priors: self.tree.priors(root).take(visits.len()).collect(),
            searched_priors: self.root_priors.clone(),
            visits,
            values,
            evaluation,
            value: match self.solution() {
                Some(solution) => MoverValue::new(self.settings.discount.powi(solution.len() as i32)),
                None => MoverValue::new(value as f32),
            },
            solution: self.solution().and_then(|solution| solution.first().copied()),
        }
    }

    /// Draws an action with probability proportional to `visits^(1/temperature)`. A temperature of 0 or less takes the most
    /// visited action and draws among ties.
    ///
    /// The draw is keyed by the ply, so a second call returns the same action. Without visits the priors replace the visits.
    /// A known solution is followed. Returns `None` where the game is over or the decision node is not evaluated yet.
    pub fn choose(&self, temperature: f32) -> Option<Action> {
        if let Some(solution) = self.solution() {
            return solution.first().copied();
        }
        let mut weights: Vec<f64> = self
            .root_visits()
            .iter()
            .map(|&visits| f64::from(visits))
            .collect();
        if weights.iter().all(|&weight| weight == 0.0) {
            weights = self.root_priors.iter().map(|&prior| f64::from(prior)).collect();
        }
        let edge = drawn(&weights, temperature, self.key, self.ply)?;
        self.tree.actions(self.root).nth(edge)
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
