//! Repair of value targets where the result of a game says nothing about the position: an action that the search held for a mistake
//! was played after it (off-policy repair, as the rescorer of Leela Chess Zero does it).
//!
//! Self-play chooses actions at random, so it also plays actions that its own search refutes. The positions before such an action were
//! not worth what the game ended with. Where the value of the best action exceeds that of the played one by more than a threshold, that
//! position and all before it take the value of the best action, as if the game had ended there with this value. Of several such
//! positions the next one counts. In a game of two players a proven decision counts like a mistake: its value is exact, and what
//! followed cannot improve on it.
//!
//! Nothing is repaired in records without values of actions, and at actions that the search did not visit.

use proto::{decisions::Decision, v1::DecisionKind};

/// Judgement of a search about the action that was played at a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Judgement {
    /// Value of the best action, for the player to act.
    pub best: f32,
    /// Excess of this value over that of the played action: infinite where `best` is proven, and -infinite where nothing is known.
    pub loss: f32,
}

impl Judgement {
    /// Nothing is known.
    pub const NONE: Self = Self {
        best: 0.0,
        loss: f32::NEG_INFINITY,
    };

    /// Judges the played action of a decision with these visits. The best action is the most visited one, of several the one with the
    /// greatest value: the value of a single visit says little.
    pub fn of(decision: &Decision<'_>, visits: &[u32], is_for_two: bool) -> Self {
        let best = decision
            .values
            .iter()
            .zip(visits)
            .reduce(|best, next| {
                let is_better = next.1 > best.1 || (next.1 == best.1 && next.0 > best.0);
                if is_better { next } else { best }
            })
            .map(|(value, _)| value);
        let Some(best) = best else { return Self::NONE };
        if decision.kind == DecisionKind::Solved as u8 && is_for_two {
            return Self {
                best,
                loss: f32::INFINITY,
            };
        }
        let played = decision
            .played
            .and_then(|place| decision.values.iter().nth(place as usize));
        match played {
            Some(played) if decision.is_searched() => Self {
                best,
                loss: best - played,
            },
            _ => Self::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::{decisions::Entry, decisions::Recorder, v1::Game};

    use super::*;

    /// Judges the played action of a position with these values of visited actions, and one unvisited action.
    fn judged(
        kind: DecisionKind,
        values: &[f32],
        visits: &[u32],
        played: usize,
        is_for_two: bool,
    ) -> Judgement {
        let visited: Vec<_> = values.iter().map(|&value| (0.25, value)).collect();
        let mut recorder = Recorder::default();
        recorder.push(&Entry {
            kind,
            visited: &visited,
            unvisited: &[(9, 0.25)],
            evaluation: 0.5,
            played,
        });
        let game = Game {
            actions: vec![1],
            visit_counts: vec![visits.len() as u32],
            decisions: Some(recorder.finish()),
            ..Game::default()
        };
        let decision = game.decision_columns().unwrap().unwrap().next().unwrap();
        Judgement::of(&decision, visits, is_for_two)
    }

    #[test]
    fn the_most_visited_action_is_the_measure() {
        use DecisionKind::{Searched, Solved, Unrecorded};

        let values = [0.5, -0.25, 0.75, 0.625];
        let found = |visits, played| judged(Searched, &values, visits, played, true);
        let judgement = |best, loss| Judgement { best, loss };
        assert_eq!(found(&[9, 2, 1, 3], 1), judgement(0.5, 0.75));
        assert_eq!(found(&[9, 2, 1, 3], 0), judgement(0.5, 0.0));
        // An action with a greater value and few visits is no mistake, and not the best one.
        assert_eq!(found(&[9, 2, 1, 3], 2), judgement(0.5, -0.25));
        // Of equally many visits the greatest value counts.
        assert_eq!(found(&[4, 4, 1, 4], 1), judgement(0.625, 0.875));
        // The action at the end was not visited.
        assert_eq!(found(&[4, 4, 1, 4], 4), Judgement::NONE);
        assert_eq!(judged(Searched, &[], &[], 0, true), Judgement::NONE);
        assert_eq!(judged(Unrecorded, &[0.0; 2], &[1, 3], 0, true), Judgement::NONE);
        assert_eq!(
            judged(Solved, &[-1.0], &[7], 0, true),
            judgement(-1.0, f32::INFINITY)
        );
        // The solution of a problem may be longer than another one.
        assert_eq!(judged(Solved, &[0.5], &[7], 0, false), Judgement::NONE);
    }
}
