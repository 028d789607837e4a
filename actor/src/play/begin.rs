//! The beginning of a game: from its usual start, after random actions, from a position of an earlier game, from a problem, from the
//! problem of a stored game, or recorded at once from a known solution. [`Beginnings`], [`Begun`].

use games::Game;
use proto::v1;

use super::{
    curriculum::{Curriculum, Next},
    opening,
    reanalysis::Posed,
    record,
    restarts::Restarts,
    setup::Setup,
    slot::{GameSlot, SlotError},
};
use crate::{GameId, stored::StoredGames};

/// Sources of the beginnings of games.
pub(super) struct Beginnings<'a, G: Game> {
    /// Settings that all games have in common.
    pub setup: &'a Setup<G>,
    /// Level of the problems.
    pub curriculum: &'a Curriculum,
    /// Positions of earlier games.
    pub restarts: &'a Restarts,
    /// Games for re-analysis. `None`: it is off.
    pub stored: Option<&'a StoredGames>,
    /// Training step of the network that evaluates now. `None`: it is not known.
    pub step: Option<u64>,
}

/// A game that has begun.
pub(super) enum Begun<G: Game> {
    /// A game that is played.
    Game(Box<GameSlot<G>>),
    /// A problem with a known solution, recorded without being played.
    Recorded(GameId, Box<v1::Game>),
}

impl<G: Game> Beginnings<'_, G> {
    /// Begins the game of this number and id, as the curriculum says. If no game for re-analysis is at hand, the curriculum draws
    /// another game.
    ///
    /// # Errors
    /// [`SlotError::Solution`] if a known solution contains an illegal action.
    pub(super) fn begin(&self, (number, id): (u64, GameId)) -> Result<Begun<G>, SlotError> {
        let Self {
            setup, curriculum, ..
        } = *self;
        let key = id.key(setup.run_seed);
        if let Some(stored) = self.stored.filter(|_| curriculum.reanalyses(key)) {
            let posed = std::iter::from_fn(|| stored.take()).find_map(|game| Posed::of(&game, &setup.rules));
            if let Some(posed) = posed {
                return Ok(Begun::Game(Box::new(GameSlot::again(setup, (number, id), posed))));
            }
        }
        let game = |start, rung| {
            let settings = setup.settings_at(self.step);
            Begun::Game(Box::new(GameSlot::new(
                setup,
                settings,
                (number, id),
                start,
                rung,
            )))
        };
        Ok(match curriculum.next(&setup.rules, key) {
            Next::Usual => {
                let earlier = self.restarts.draw(setup, key);
                game(earlier.or_else(|| opening::draw(setup, key)), None)
            }
            Next::Problem(start, rung) => game(Some(start), Some(rung)),
            Next::Known(drawn) => {
                let recorded = record::of_solution(&drawn, "known-solution", (number, id), setup);
                Begun::Recorded(id, Box::new(recorded.map_err(SlotError::Solution)?))
            }
        })
    }
}
