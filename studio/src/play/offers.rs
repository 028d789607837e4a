//! Offers: ways in which a person plays on a page, by clicks or by name.

use games::{Action, Player, erased::AnyState, scene::Piece};
use serde::Serialize;

/// One way to continue: one action, or two that begin a turn together (lift and place).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offer {
    /// Actions as people write them.
    pub text: String,
    /// Actions to play, one after the other.
    pub actions: Vec<Action>,
    /// Cells to click, one list for each click; the first cell of each list is marked.
    pub cells: Vec<Vec<usize>>,
    /// Piece to pick after the clicks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub piece: Option<Pick>,
    /// Part of the tree that the action changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
}

/// A piece to pick.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pick {
    /// Kind of the piece, e.g. `queen`.
    pub kind: &'static str,
    /// Classes of its drawing.
    pub look: String,
}

/// All offers in a state, in the order of their actions. None once the game is over.
///
/// An action that leaves its turn incomplete, as lifting a piece does, is offered together with each action after it, so that
/// a piece can be dragged.
pub fn offers(state: &dyn AnyState) -> Vec<Offer> {
    let mut offers = Vec::new();
    let mut first = Vec::new();
    let mut second = Vec::new();
    if state.outcome().is_some() {
        return offers;
    }
    state.legal_actions(&mut first);
    let colors = state.scene(&[]).boards.first().map(|board| board.colors);
    let pick = |piece: Piece| Pick {
        kind: piece.kind,
        look: format!(
            "piece {} {}",
            if piece.player == Player::First {
                "first"
            } else {
                "second"
            },
            colors.map_or("", |colors| colors[piece.player.index()])
        ),
    };
    for action in first {
        let clicks = state.clicks(action);
        let mut after = state.copy();
        after.play_legal(action);
        let goes_on = !state.is_mid_turn()
            && after.is_mid_turn()
            && after.outcome().is_none()
            && after.to_move() == state.to_move();
        second.clear();
        if goes_on {
            after.legal_actions(&mut second);
        }
        if second.is_empty() {
            offers.push(Offer {
                text: state.write_turn(&[action]),
                actions: vec![action],
                cells: clicks.cells,
                piece: clicks.piece.map(pick),
                part: clicks.part,
            });
            continue;
        }
        for &next in &second {
            let then = after.clicks(next);
            offers.push(Offer {
                text: state.write_turn(&[action, next]),
                actions: vec![action, next],
                cells: clicks.cells.iter().cloned().chain(then.cells).collect(),
                piece: then.piece.or(clicks.piece).map(pick),
                part: clicks.part,
            });
        }
    }
    offers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::state;

    #[test]
    fn lifting_is_offered_with_each_place() {
        let offers = offers(&*state("paco-sako", None));
        assert_eq!(offers.len(), 20);
        let pawn = offers.iter().find(|offer| offer.text == "e2 e4").unwrap();
        assert_eq!(pawn.actions, [12, 64 + 28]);
        assert_eq!(pawn.cells, [[52], [36]]);
    }

    #[test]
    fn a_freed_piece_is_offered_with_one_click_and_a_promotion_with_a_piece() {
        let mut chain = state("paco-sako", Some("4k3/8/4p3/3a4/8/8/8/3RK3 w 0 - - -"));
        for action in chain.read_turn("d1 d5").unwrap() {
            chain.play(action).unwrap();
        }
        assert!(offers(&*chain).iter().all(|offer| offer.cells.len() == 1));
        let mut pawn = state("paco-sako", Some("4k3/1P6/8/8/8/8/8/4K3 w 0 - - -"));
        for action in pawn.read_turn("b7 b8").unwrap() {
            pawn.play(action).unwrap();
        }
        let kinds: Vec<&str> = offers(&*pawn)
            .iter()
            .filter_map(|offer| offer.piece.as_ref().map(|piece| piece.kind))
            .collect();
        assert_eq!(kinds.len(), 4);
        assert!(kinds.contains(&"queen"));
    }

    #[test]
    fn promotions_of_chess_share_their_clicks() {
        let offers = offers(&*state("chess", Some("7k/P7/8/8/8/8/8/K7 w - - 0 1")));
        let promotions: Vec<&Offer> = offers.iter().filter(|offer| offer.piece.is_some()).collect();
        assert_eq!(promotions.len(), 4);
        assert!(promotions.iter().all(|offer| offer.cells == [[8], [0]]));
        assert_eq!(promotions[0].piece.as_ref().unwrap().look, "piece first white");
    }
}
