//! Value targets: the mixture of a game's result with the root values of later positions.
//!
//! At a position of a turn with `k` actions, the target is
//!
//! ```text
//! G = (1 - m) · v + m · G',   m = (1 - 1/h)^(1/k)
//! ```
//!
//! where `v` is the root value, `G'` the target of the next position, and `h` the horizon in turns. All are seen by the player to act,
//! so the sign changes between players and not between the actions of one turn. After the last position `G'` is the result; in a game
//! without a result the last root value takes its place. Whatever its number of actions, a turn has 1 - 1/h times the weight of the turn
//! before it; with `h = 1` the target is the root value alone. Positions that were not searched have no root value and are passed over.
//! (This is TD(λ) with λ = 1 - 1/h for each turn; KataGo's short-term value targets are of this kind.)
//!
//! Values are mixed as probabilities of a win and of a loss, so that networks with such a head get the same mixture: a value of 0.3 is a
//! win in 3 of 10 cases and a draw in the others.

/// A position whose root value is mixed in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Number of the position in the game.
    pub ply: u32,
    /// Player to act: 0 or 1.
    pub mover: u8,
    /// Number of actions of the turn that the position belongs to, at least 1.
    pub turn: u32,
    /// Root value, for the player to act.
    pub value: f32,
}

/// End of a game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    /// Number of actions of the game.
    pub plies: u32,
    /// Result, for the first player; `None` if the game has none.
    pub score: Option<f32>,
    /// Discount for each action, above 0 and at most 1.
    pub discount: f32,
}

impl End {
    /// Returns the result, seen from an earlier position by the player to act there; `None` if the game has none.
    pub fn seen_from(&self, position: &Step) -> Option<f32> {
        let left = self.plies.saturating_sub(position.ply).cast_signed();
        let sign = if position.mover == 1 { -1.0 } else { 1.0 };
        self.score.map(|score| sign * score * self.discount.powi(left))
    }
}

/// Returns the probabilities of a win and of a loss at the first of `steps`, the searched positions from there to the end of the game.
/// `horizon` is at least 1. Returns zeros if there are no steps.
pub fn future(steps: impl Iterator<Item = Step>, end: End, horizon: f32) -> [f32; 2] {
    let mut steps = steps.peekable();
    let Some(&first) = steps.peek() else {
        return [0.0; 2];
    };
    let decay = 1.0 - 1.0 / f64::from(horizon.max(1.0));
    let discounted = |value: f32, ply: u32| {
        f64::from(value) * f64::from(end.discount).powi((ply - first.ply).cast_signed())
    };
    let (mut wins, mut losses, mut left) = (0.0, 0.0, 1.0);
    let mut add = |weight: f64, value: f64| {
        wins += weight * value.max(0.0);
        losses += weight * (-value).max(0.0);
    };
    while let Some(step) = steps.next() {
        let kept = match end.score {
            None if steps.peek().is_none() => 0.0,
            _ => decay.powf(1.0 / f64::from(step.turn.max(1))),
        };
        let value = if step.mover == first.mover {
            step.value
        } else {
            -step.value
        };
        add(left * (1.0 - kept), discounted(value, step.ply));
        left *= kept;
    }
    if let Some(score) = end.score {
        let value = if first.mover == 1 { -score } else { score };
        add(left, discounted(value, end.plies));
    }
    [wins, losses].map(|share| share.min(1.0) as f32)
}

/// Returns the number of actions of the turn that each position belongs to. A turn is the actions that one player takes in a row; with
/// one player each action is a turn.
pub fn turns(movers: &[u8], players: u8) -> Vec<u32> {
    if players == 1 {
        return vec![1; movers.len()];
    }
    let runs = movers.chunk_by(|before, after| before == after);
    runs.flat_map(|run| std::iter::repeat_n(run.len() as u32, run.len()))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn future(steps: &[Step], end: End, horizon: f32) -> [f32; 2] {
        super::future(steps.iter().copied(), end, horizon)
    }

    /// Computes the recursion of the module's documentation from the end to the beginning, in the first player's view.
    fn plain(steps: &[Step], end: End, horizon: f64) -> f64 {
        let sign = |mover: u8| if mover == 0 { 1.0 } else { -1.0 };
        let first = |step: &Step| sign(step.mover) * f64::from(step.value);
        let last = steps.last().unwrap();
        let mut target = end.score.map_or(first(last), f64::from);
        let mut ply = if end.score.is_some() { end.plies } else { last.ply };
        for step in steps.iter().rev() {
            target *= f64::from(end.discount).powi((ply - step.ply) as i32);
            ply = step.ply;
            let kept = (1.0 - 1.0 / horizon).powf(1.0 / f64::from(step.turn));
            target = (1.0 - kept) * first(step) + kept * target;
        }
        sign(steps[0].mover) * target
    }

    fn game() -> impl Strategy<Value = (Vec<Step>, End)> {
        let position = (any::<bool>(), 0u8..2, -1.0f32..=1.0);
        (
            prop::collection::vec(position, 1..40),
            prop::option::of(prop::sample::select(vec![1.0f32, 0.0, -1.0])),
        )
            .prop_map(|(positions, score)| {
                let movers: Vec<u8> = positions.iter().map(|&(_, mover, _)| mover).collect();
                let turns = turns(&movers, 2);
                let steps = positions.iter().zip(turns).enumerate();
                let mut steps: Vec<Step> = steps
                    .filter(|&(ply, ((searched, ..), _))| *searched || ply == 0)
                    .map(|(ply, (&(_, mover, value), turn))| Step {
                        ply: ply as u32,
                        mover,
                        turn,
                        value,
                    })
                    .collect();
                steps.truncate(positions.len());
                let end = End {
                    plies: positions.len() as u32,
                    score,
                    discount: 1.0,
                };
                (steps, end)
            })
    }

    proptest! {
        #[test]
        fn mixtures_equal_the_recursion((steps, end) in game(), horizon in 1.0f32..30.0) {
            let [wins, losses] = future(&steps, end, horizon);
            prop_assert!((0.0..=1.0).contains(&wins) && (0.0..=1.0).contains(&losses));
            prop_assert!(wins + losses <= 1.0 + 1e-6);
            let expected = plain(&steps, end, f64::from(horizon));
            prop_assert!((f64::from(wins - losses) - expected).abs() < 1e-5, "{} {}", wins - losses, expected);
        }

        /// With a long horizon the target is the result; with a horizon of one turn it is the root value.
        #[test]
        fn extreme_horizons_are_the_result_and_the_root_value((steps, end) in game()) {
            let step = steps[0];
            let [wins, losses] = future(&[Step { turn: 1, ..step }], end, 1.0);
            prop_assert!((wins - losses - step.value).abs() < 1e-6);
            if let Some(score) = end.score {
                let [wins, losses] = future(&steps, end, 1e9);
                let result = if step.mover == 1 { -score } else { score };
                prop_assert!((wins - losses - result).abs() < 1e-5);
            }
        }
    }

    /// The expected values are computed by hand. A horizon of two turns halves the weight with each turn. The first player acts twice,
    /// then the second player acts and wins.
    #[test]
    fn signs_follow_the_player_and_weights_the_turns() {
        let step = |ply, mover, turn, value| Step {
            ply,
            mover,
            turn,
            value,
        };
        let steps = [step(0, 0, 2, 0.2), step(1, 0, 2, 0.4), step(2, 1, 1, 0.5)];
        let end = End {
            plies: 3,
            score: Some(-1.0),
            discount: 1.0,
        };
        // The second player's target is half its own value and half its win.
        assert_eq!(future(&steps[2..], end, 2.0), [0.75, 0.0]);
        // The target at the first player's second action has a share 1 - √½ of its own value. The other share is the second player's
        // target, whose win is a loss here.
        let kept = 0.5f64.sqrt();
        let [wins, losses] = future(&steps[1..], end, 2.0);
        assert!((f64::from(wins) - (1.0 - kept) * 0.4).abs() < 1e-6);
        assert!((f64::from(losses) - kept * 0.75).abs() < 1e-6);
        // Both actions of the turn together halve the weight.
        let [wins, losses] = future(&steps, end, 2.0);
        assert!((f64::from(wins) - (1.0 - kept) * (0.2 + kept * 0.4)).abs() < 1e-6);
        assert!((f64::from(losses) - 0.5 * 0.75).abs() < 1e-6);
        // Without a result the last root value counts for the rest.
        let cut = End { score: None, ..end };
        assert_eq!(future(&steps[2..], cut, 2.0), [0.5, 0.0]);
        let [_, losses] = future(&steps[1..], cut, 2.0);
        assert!((f64::from(losses) - kept * 0.5).abs() < 1e-6);
    }

    #[test]
    fn values_of_one_player_are_discounted_and_keep_their_sign() {
        let step = |ply, value| Step {
            ply,
            mover: 0,
            turn: 1,
            value,
        };
        let end = End {
            plies: 4,
            score: Some(1.0),
            discount: 0.5,
        };
        let [wins, losses] = future(&[step(1, 0.25), step(3, 0.5)], end, 2.0);
        // 0.5 · 0.25 + 0.25 · 0.5 · 0.5² + 0.25 · 1 · 0.5³
        assert_eq!([wins, losses], [0.125 + 0.03125 + 0.03125, 0.0]);
    }

    #[test]
    fn turns_are_runs_of_one_player() {
        assert_eq!(turns(&[0, 0, 1, 0, 0, 0], 2), [2, 2, 1, 3, 3, 3]);
        assert_eq!(turns(&[0, 0, 0], 1), [1, 1, 1]);
        assert_eq!(turns(&[], 2), [0; 0]);
    }
}
