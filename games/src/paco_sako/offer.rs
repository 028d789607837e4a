//! Legal actions of a position under the switchable rules.

use super::{
    action::Act,
    completion::{can_end, ends_turn},
    digest::Digest,
    legal::{Legal, plain},
    movement,
    position::{Position, RequiredAction},
    rules::{DeadEnd, Rules, TurnCycles},
};

/// Position and rules, which together determine the actions that a player is offered.
#[derive(Clone, Copy)]
pub(super) struct Offer<'a> {
    pub(super) position: &'a Position,
    pub(super) rules: &'a Rules,
    /// Chain states of this turn, the present one included.
    pub(super) chain_states: &'a [Digest],
}

impl Offer<'_> {
    /// Returns the legal actions under the rules.
    pub(super) fn legal(self) -> Legal {
        let plain = plain(self.position);
        if plain.is_empty() || !(self.forbids_dead_ends() || self.forbids_cycles()) {
            return plain;
        }
        let Legal::Place(squares) = plain else {
            return plain.filter(|act| self.includes(act));
        };
        let ending = ends_turn(self.position, squares);
        match Legal::Place(squares - ending).filter(|act| self.includes(act)) {
            Legal::Place(chains) => Legal::Place(ending | chains),
            other => other,
        }
    }

    /// True if there is a legal action. Faster than [`Offer::legal`] in most states.
    pub(super) fn is_possible(self) -> bool {
        let position = self.position;
        if !position.is_running() {
            return false;
        }
        match (position.required, position.hand) {
            (RequiredAction::Lift, _) if !self.forbids_dead_ends() => {
                movement::can_lift(&position.board, position.to_move, position.en_passant)
            }
            (RequiredAction::Lift, _) => {
                let lifts = movement::liftable(&position.board, position.to_move, position.en_passant);
                lifts.iter().any(|square| self.includes(Act::Lift(square)))
            }
            (RequiredAction::Place, Some(hand)) => {
                let steps = movement::targets(&position.board, position.to_move, hand, position.en_passant);
                !ends_turn(position, steps).is_empty() || !self.legal().is_empty()
            }
            _ => !self.legal().is_empty(),
        }
    }

    /// True if the rules offer an action that the original engine offers and that may leave the turn unfinished.
    fn includes(self, act: Act) -> bool {
        let mut next = *self.position;
        next.apply(act);
        let barred = if self.forbids_cycles() {
            self.chain_states
        } else {
            &[]
        };
        let is_old = !barred.is_empty() && next.hand.is_some() && barred.contains(&next.digest());
        !is_old && (!self.forbids_dead_ends() || can_end(&next, self.position.to_move, barred))
    }

    fn forbids_dead_ends(self) -> bool {
        self.rules.dead_end == DeadEnd::Forbid
    }

    fn forbids_cycles(self) -> bool {
        self.rules.turn_cycles == TurnCycles::Forbid && !self.chain_states.is_empty()
    }
}
