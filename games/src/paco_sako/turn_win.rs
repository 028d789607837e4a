//! Wins within the present turn: the shortest chain of the player to act that ends on the opponent's king.
//!
//! A breadth-first search follows placements that release another piece, over distinct states. [`super::reach`] bounds the
//! squares of each hand first, so that most states are refused at once. The search visits at most [`MAX_STATES`] states; a
//! win beyond them is not found.

use std::collections::VecDeque;

use super::{
    action::Act,
    completion::ends_turn,
    digest::{Digest, Seen},
    legal,
    piece::Kind,
    position::{Hand, Position, RequiredAction, Victory},
    reach,
};

/// Most distinct states of one turn that a search visits.
const MAX_STATES: usize = 512;

/// Returns the shortest actions by which the player to act unites with the opponent's king in this turn, without a state
/// whose digest is in `barred`. `None` if there are none, or if the search ends before it finds them.
pub(super) fn shortest(position: &Position, barred: &[Digest]) -> Option<Vec<Act>> {
    let is_hopeless = || match (position.required, position.hand) {
        (RequiredAction::Place, Some(hand)) => !can_reach(position, hand),
        (required, _) => required == RequiredAction::PromoteThenFinish,
    };
    if !position.is_running() || is_hopeless() {
        return None;
    }
    Search {
        states: vec![(*position, None)],
        open: VecDeque::from([0]),
        seen: Seen::new(),
        barred,
    }
    .run()
}

/// True if chains that begin with this hand might end on the opponent's king.
fn can_reach(position: &Position, hand: Hand) -> bool {
    let player = position.to_move;
    let king = position.board.of(player.other(), Kind::King);
    let is_chaining = hand.partner.is_none() && hand.own != Kind::King;
    is_chaining && !reach::bound(&position.board, player, hand, position.en_passant).is_disjoint(king)
}

struct Search<'a> {
    /// Visited states, each with the action that led to it and the number of the state before; none for the first.
    states: Vec<(Position, Option<(Act, usize)>)>,
    /// Numbers of the states that are not followed yet.
    open: VecDeque<usize>,
    seen: Seen,
    barred: &'a [Digest],
}

impl Search<'_> {
    fn run(mut self) -> Option<Vec<Act>> {
        while let Some(number) = self.open.pop_front() {
            let (state, _) = *self.states.get(number)?;
            for act in acts(&state) {
                let mut next = state;
                next.apply(act);
                if next.victory == Victory::of(state.to_move) {
                    return Some(self.line(number, act));
                }
                let digest = next.digest();
                if self.barred.contains(&digest) || !self.seen.insert(digest) {
                    continue;
                }
                if self.states.len() >= MAX_STATES {
                    return None;
                }
                self.open.push_back(self.states.len());
                self.states.push((next, Some((act, number))));
            }
        }
        None
    }

    /// Returns the actions from the first state to the one with this number, and `last` after them.
    fn line(&self, mut number: usize, last: Act) -> Vec<Act> {
        let mut acts = vec![last];
        while let Some(&(_, Some((act, before)))) = self.states.get(number) {
            acts.push(act);
            number = before;
        }
        acts.reverse();
        acts
    }
}

/// Returns the actions of a state that win, or after which the turn might still be won.
fn acts(state: &Position) -> Vec<Act> {
    let board = &state.board;
    let player = state.to_move;
    match (state.required, state.hand) {
        (RequiredAction::Place, Some(hand)) => {
            let places = legal::places(state, hand);
            let king = board.of(player.other(), Kind::King);
            let squares = (places - ends_turn(state, places)) | (places & king);
            squares.iter().map(Act::Place).collect()
        }
        (RequiredAction::Lift, _) => {
            let singles = board.occupied(player) - board.unions() - board.of(player, Kind::King);
            let might_win = |&act: &Act| {
                let mut lifted = *state;
                lifted.apply(act);
                lifted.hand.is_some_and(|hand| can_reach(&lifted, hand))
            };
            singles.iter().map(Act::Lift).filter(might_win).collect()
        }
        (RequiredAction::PromoteThenFinish, _) => Vec::new(),
        _ => Kind::PROMOTIONS.map(Act::Promote).to_vec(),
    }
}
