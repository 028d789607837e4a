//! [`threat`]: the win that the opponent would have in its next turn.

use std::time::{Duration, Instant};

use games::{Outcome, Player, erased::AnyState};

use super::offers::Offer;

/// Longest time for a look. Rules from outside can be slow; nothing is shown then.
const LONGEST: Duration = Duration::from_millis(100);

/// A threat: after most of the moves of the player to act, the opponent wins in one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Threat {
    /// Player who threatens.
    pub by: Player,
    /// Moves after which the opponent does not win at once.
    pub prevented_by: usize,
    /// Moves of the player to act.
    pub moves: usize,
    /// Cell where the opponent would win, if one action does.
    pub cell: Option<usize>,
}

/// Looks for a threat against the player to act, with the rules alone ([`games::Game::known`]). A trap into which only some moves run is
/// none.
pub(super) fn threat(state: &dyn AnyState, offers: &[Offer]) -> Option<Threat> {
    if state.game().players != 2 {
        return None;
    }
    let begun = Instant::now();
    let by = state.to_move().other();
    let mut found = Threat {
        by,
        prevented_by: 0,
        moves: offers.len(),
        cell: None,
    };
    for offer in offers {
        let mut after = state.copy();
        offer.actions.iter().for_each(|&action| after.play_legal(action));
        let known = after
            .known()
            .filter(|_| after.outcome().is_none() && after.to_move() == by);
        match known.filter(|known| known.outcome == Outcome::Won(by)) {
            None => found.prevented_by += 1,
            Some(known) if known.actions == 1 && found.cell.is_none() => found.cell = winning_cell(&*after),
            Some(_) => {}
        }
        if begun.elapsed() > LONGEST {
            return None;
        }
    }
    (2 * found.prevented_by < found.moves).then_some(found)
}

/// Cell that is clicked for an action that wins.
fn winning_cell(state: &dyn AnyState) -> Option<usize> {
    let mut legal = Vec::new();
    state.legal_actions(&mut legal);
    let wins = |&&action: &&u32| {
        let mut next = state.copy();
        next.play_legal(action);
        next.outcome() == Some(Outcome::Won(state.to_move()))
    };
    let clicks = state.clicks(*legal.iter().find(wins)?);
    clicks.cells.last()?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::{offers::offers, state};

    fn after(game: &str, start: Option<&str>, turns: &[&str]) -> Option<Threat> {
        let mut state = state(game, start);
        for turn in turns {
            for action in state.read_turn(turn).unwrap() {
                state.play(action).unwrap();
            }
        }
        threat(&*state, &offers(&*state))
    }

    #[test]
    fn three_in_a_row_are_a_threat_that_one_move_prevents() {
        let found = after("connect-four", None, &["1", "7", "2", "7", "3"]).unwrap();
        assert_eq!((found.by, found.prevented_by, found.moves), (Player::First, 1, 7));
        // Column 4 of the lowest row.
        assert_eq!(found.cell, Some(38));
        assert_eq!(after("connect-four", None, &["1", "7", "2"]), None);
        // Both ends are open.
        let found = after("connect-four", None, &["3", "3", "4", "4", "5"]).unwrap();
        assert_eq!(found.prevented_by, 0);
    }

    #[test]
    fn a_mate_and_a_union_with_the_king_are_threats() {
        let mate = after("chess", None, &["e4", "e5", "Qh5", "Nc6", "Bc4"]).unwrap();
        assert_eq!(mate.by, Player::First);
        assert!(mate.prevented_by > 0 && mate.cell.is_some(), "{mate:?}");
        assert!(after("chess", None, &["e4", "e5"]).is_none());
        assert!(
            after(
                "paco-sako",
                Some("rnbqkbnr/pppp1ppp/8/8/8/8/4Q3/4K3 w 0 - - -"),
                &["e2 e3"]
            )
            .is_some()
        );
    }
}
