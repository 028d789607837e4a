//! The beginning of a game: from its usual start, after random actions, from a problem, from the problem of a stored game, or
//! recorded at once from a known solution. [`Begun`].

use games::Game;
use proto::v1;

use super::{
    curriculum::{Curriculum, Next},
    opening,
    reanalysis::Posed,
    record,
    setup::Setup,
    slot::{GameSlot, SlotError},
};
use crate::{GameId, stored::StoredGames};

/// A game that has begun.
pub(super) enum Begun<G: Game> {
    /// A game that is played.
    Game(Box<GameSlot<G>>),
    /// A problem with a known solution, recorded without being played.
    Recorded(GameId, Box<v1::Game>),
}

impl<G: Game> Begun<G> {
    /// Begins the game of this number and id, as the curriculum says. `stored` are games for re-analysis; if none is at hand, the
    /// curriculum draws another game.
    ///
    /// # Errors
    /// [`SlotError::Solution`] if a known solution contains an illegal action.
    pub(super) fn new(
        (number, id): (u64, GameId),
        setup: &Setup<G>,
        curriculum: &Curriculum,
        stored: Option<&StoredGames>,
    ) -> Result<Self, SlotError> {
        let key = id.key(setup.run_seed);
        if let Some(stored) = stored.filter(|_| curriculum.reanalyses(key)) {
            let posed = std::iter::from_fn(|| stored.take()).find_map(|game| Posed::of(&game, &setup.rules));
            if let Some(posed) = posed {
                return Ok(Self::Game(Box::new(GameSlot::again(setup, (number, id), posed))));
            }
        }
        let game = |start, rung| Self::Game(Box::new(GameSlot::new(setup, (number, id), start, rung)));
        Ok(match curriculum.next(&setup.rules, key) {
            Next::Usual => game(opening::draw(setup, key), None),
            Next::Problem(start, rung) => game(Some(start), Some(rung)),
            Next::Known(drawn) => {
                let recorded = record::of_solution(&drawn, "known-solution", (number, id), setup);
                Self::Recorded(id, Box::new(recorded.map_err(SlotError::Solution)?))
            }
        })
    }
}
