//! The beginning of a game: from its usual start, after random actions, from a problem, or recorded at once from a known solution.

use games::Game;
use proto::v1;

use super::{
    curriculum::{Curriculum, Next},
    opening, record,
    setup::Setup,
    slot::{GameSlot, SlotError},
};
use crate::GameId;

/// A game that has begun.
pub(super) enum Begun<G: Game> {
    /// A game that is played.
    Game(Box<GameSlot<G>>),
    /// A problem with a known solution, recorded without being played.
    Recorded(GameId, Box<v1::Game>),
}

/// Begins the game of this number and id, as the curriculum says.
///
/// # Errors
/// [`SlotError::Solution`] if a known solution contains an illegal action.
pub(super) fn begin<G: Game>(
    setup: &Setup<G>,
    curriculum: &Curriculum,
    (number, id): (u64, GameId),
) -> Result<Begun<G>, SlotError> {
    let key = id.key(setup.run_seed);
    let game = |start, rung| Begun::Game(Box::new(GameSlot::new(setup, (number, id), start, rung)));
    Ok(match curriculum.next(&setup.rules, key) {
        Next::Usual => game(opening::draw(setup, key), None),
        Next::Problem(start, rung) => game(Some(start), Some(rung)),
        Next::Known(drawn) => {
            let recorded = record::of_solution(&drawn, "known-solution", (number, id), setup);
            Begun::Recorded(id, Box::new(recorded.map_err(SlotError::Solution)?))
        }
    })
}
