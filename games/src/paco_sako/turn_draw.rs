//! Draws within the present turn: a lift and a placement, or the placement alone, after which a position has occurred often enough.
//!
//! Chains and promotions are left out: nearly all repetitions move one piece, or one union, there and back.

use super::{
    action::Act,
    completion::ends_turn,
    digest::Digest,
    legal,
    position::{Position, RequiredAction},
};

/// True if the player to act can end the turn in a position that `draws`. `draws` is given the digest of a position after a
/// turn without progress.
pub(super) fn is_possible(position: &Position, draws: impl Fn(Digest) -> bool) -> bool {
    if !position.is_running() {
        return false;
    }
    match position.required {
        RequiredAction::Place => can_place(position, &draws),
        RequiredAction::Lift => {
            let mut found = false;
            legal::plain(position).for_each(|act| {
                if !found {
                    let mut lifted = *position;
                    lifted.apply(act);
                    found = can_place(&lifted, &draws);
                }
            });
            found
        }
        _ => false,
    }
}

fn can_place(position: &Position, draws: impl Fn(Digest) -> bool) -> bool {
    let Some(hand) = position.hand else { return false };
    let targets = ends_turn(position, legal::places(position, hand));
    targets.into_iter().any(|target| {
        let mut placed = *position;
        let effect = placed.apply(Act::Place(target));
        let is_repetition = effect.is_recorded && !effect.is_progress && placed.is_running();
        is_repetition && draws(placed.digest())
    })
}
