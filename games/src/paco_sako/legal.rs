//! Legal actions of a position, under the switchable rules.

use cozy_chess::BitBoard;

use super::{
    action::Act,
    castling,
    completion::{can_end, ends_turn},
    digest::Digest,
    movement,
    piece::Kind,
    position::{Hand, Position, RequiredAction},
    rules::{DeadEnd, Rules, TurnCycles},
};

/// Set of legal actions. All actions of a state are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Legal {
    /// Squares that can be lifted from.
    Lift(BitBoard),
    /// Squares on which the hand can be placed.
    Place(BitBoard),
    /// Promotions: bit n stands for `Kind::PROMOTIONS[n]`.
    Promote(u8),
}

const ALL_PROMOTIONS: u8 = 0b1111;

impl Legal {
    const NONE: Self = Self::Lift(BitBoard::EMPTY);

    pub(super) fn has(self, act: Act) -> bool {
        match (self, act) {
            (Self::Lift(squares), Act::Lift(square)) | (Self::Place(squares), Act::Place(square)) => {
                squares.has(square)
            }
            (Self::Promote(choices), Act::Promote(kind)) => {
                promotions(choices).any(|(_, choice)| choice == kind)
            }
            _ => false,
        }
    }

    /// Calls `visit` for each action, in ascending order of their numbers.
    pub(super) fn for_each(self, mut visit: impl FnMut(Act)) {
        match self {
            Self::Lift(squares) => squares.iter().for_each(|square| visit(Act::Lift(square))),
            Self::Place(squares) => squares.iter().for_each(|square| visit(Act::Place(square))),
            Self::Promote(choices) => promotions(choices).for_each(|(_, kind)| visit(Act::Promote(kind))),
        }
    }

    pub(super) fn is_empty(self) -> bool {
        match self {
            Self::Lift(squares) | Self::Place(squares) => squares.is_empty(),
            Self::Promote(choices) => choices == 0,
        }
    }

    /// Actions for which `is_offered` is true.
    fn filter(self, is_offered: impl Fn(Act) -> bool) -> Self {
        match self {
            Self::Lift(squares) => Self::Lift(
                squares
                    .iter()
                    .filter(|&square| is_offered(Act::Lift(square)))
                    .collect(),
            ),
            Self::Place(squares) => Self::Place(
                squares
                    .iter()
                    .filter(|&square| is_offered(Act::Place(square)))
                    .collect(),
            ),
            Self::Promote(choices) => Self::Promote(
                promotions(choices)
                    .filter(|&(_, kind)| is_offered(Act::Promote(kind)))
                    .fold(0, |kept, (bit, _)| kept | 1 << bit),
            ),
        }
    }
}

/// Promotions in a set of bits, each with the number of its bit.
fn promotions(choices: u8) -> impl Iterator<Item = (usize, Kind)> {
    Kind::PROMOTIONS
        .into_iter()
        .enumerate()
        .filter(move |(bit, _)| choices >> bit & 1 == 1)
}

/// Legal actions of the original engine. Empty if the game is decided, and in a dead end.
pub(super) fn plain(position: &Position) -> Legal {
    if !position.is_running() {
        return Legal::NONE;
    }
    match (position.required, position.hand) {
        (RequiredAction::Lift, _) => Legal::Lift(movement::liftable(
            &position.board,
            position.to_move,
            position.en_passant,
        )),
        (RequiredAction::Place, Some(hand)) => Legal::Place(places(position, hand)),
        (RequiredAction::Place, None) => Legal::NONE,
        _ => Legal::Promote(ALL_PROMOTIONS),
    }
}

/// Squares on which a hand can be placed, castling included. As in the original engine, a king in a union can castle too;
/// only compatibility rules load such a king.
pub(super) fn places(position: &Position, hand: Hand) -> BitBoard {
    let steps = movement::targets(&position.board, position.to_move, hand, position.en_passant);
    if hand.own == Kind::King && position.castling.any() {
        steps | castling::targets(position)
    } else {
        steps
    }
}

/// Position and rules, which together determine the actions that a player is offered.
#[derive(Clone, Copy)]
pub(super) struct Offer<'a> {
    pub(super) position: &'a Position,
    pub(super) rules: &'a Rules,
    /// Chain states of this turn, the present one included.
    pub(super) chain_states: &'a [Digest],
}

impl Offer<'_> {
    /// Legal actions under the rules.
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
