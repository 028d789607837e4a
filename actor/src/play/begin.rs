//! The beginning of a game: from its usual start, after random actions, from a problem, or recorded at once from a known solution.

use games::Game;
use proto::v1;
use search::{Draws, GameKey, Purpose};

use super::{
    curriculum::{Curriculum, NextGame},
    record,
    setup::Setup,
    slot::GameSlot,
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
/// A known solution contains an illegal action.
pub(super) fn begin<G: Game>(
    setup: &Setup<G>,
    curriculum: &Curriculum,
    (number, id): (u64, GameId),
) -> anyhow::Result<Begun<G>> {
    let key = id.key(setup.run_seed);
    let game = |start, rung| Begun::Game(Box::new(GameSlot::new(setup, (number, id), start, rung)));
    Ok(match curriculum.next(&setup.rules, key) {
        NextGame::Usual => game(opening(setup, key), None),
        NextGame::Problem(start, rung) => game(Some(start), Some(rung)),
        NextGame::Known(drawn) => {
            let recorded = record::of_solution(&drawn, "known-solution", (number, id), setup);
            Begun::Recorded(id, Box::new(recorded?))
        }
    })
}

/// Number of openings drawn for one game before the game begins at its usual start.
const TRIES: usize = 8;

/// Plays up to `actor.random_plies` random actions, and on to the end of the turn. Returns the position after them as a start
/// without a past, as [`Game::start`] reads it from its text. `None` for a game from the usual start: one that drew no action, a
/// game of one player, and a game that was over after each of several draws, or whose outcome the rules told ([`Game::known`]): such
/// a game would be recorded without a search. All draws depend only on `key`.
fn opening<G: Game>(setup: &Setup<G>, key: GameKey) -> Option<G> {
    if G::players() != 2 || setup.random_plies == 0 {
        return None;
    }
    let mut draws = Draws::new(key, 0, Purpose::Opening);
    let plies = draws.below(setup.random_plies as usize + 1);
    if plies == 0 {
        return None;
    }
    (0..TRIES).find_map(|_| {
        let state = after(setup.start.clone(), plies, &mut draws)?;
        let start = G::start(&setup.rules, Some(&state.position())).ok();
        start.filter(|start| start.known().is_none())
    })
}

/// Returns the state after `plies` random actions and those that end the turn. `None` if the game is over by then.
fn after<G: Game>(mut state: G, plies: usize, draws: &mut Draws) -> Option<G> {
    let mut legal = Vec::new();
    let mut played = 0;
    let mut mover = state.to_move();
    while played < plies || state.to_move() == mover {
        mover = state.to_move();
        state.legal_actions(&mut legal);
        state.play_legal(*legal.get(draws.below(legal.len()))?);
        played += 1;
    }
    state.legal_actions(&mut legal);
    (state.outcome().is_none() && !legal.is_empty()).then_some(state)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use config::RunConfig;
    use games::{chess::Chess, connect_four::ConnectFour, generator::GeneratorGame, paco_sako::PacoSako};

    use super::*;

    fn setup<G: Game>(random_plies: u32) -> Setup<G> {
        let mut config = RunConfig::default();
        config.game.name = G::name().into();
        config.game.options = 0;
        config.actor.random_plies = random_plies;
        Setup::new(&config, "tester", 1).unwrap()
    }

    /// Returns the positions of the openings of 200 games.
    fn openings<G: Game>(random_plies: u32) -> Vec<Option<String>> {
        let setup = setup::<G>(random_plies);
        let draw = |game| opening(&setup, GameKey { run_seed: 4, game });
        (0..200)
            .map(|game| draw(game).map(|start| start.position()))
            .collect()
    }

    #[test]
    fn a_game_draws_its_opening_by_its_key_alone() {
        let first = openings::<ConnectFour>(12);
        assert_eq!(first, openings::<ConnectFour>(12));
        let distinct: BTreeSet<_> = first.iter().flatten().collect();
        assert!(distinct.len() > 150, "{}", distinct.len());
        // One number of thirteen is 0.
        let usual = first.iter().filter(|start| start.is_none()).count();
        assert!((4..35).contains(&usual), "{usual}");
        assert!(openings::<ConnectFour>(0).iter().all(Option::is_none));
    }

    #[test]
    fn openings_have_at_most_the_number_of_actions_and_run() {
        let setup = setup::<Chess>(9);
        let mut lengths = BTreeSet::new();
        for game in 0..200 {
            let Some(start) = opening(&setup, GameKey { run_seed: 4, game }) else {
                continue;
            };
            assert!(start.outcome().is_none());
            let text = start.position();
            let fields: Vec<&str> = text.split(' ').collect();
            let full: usize = fields[5].parse().unwrap();
            lengths.insert(2 * (full - 1) + usize::from(fields[1] == "b"));
        }
        assert_eq!(lengths, (1..=9).collect());
    }

    #[test]
    fn a_game_begins_where_the_search_has_something_to_decide() {
        let setup = setup::<ConnectFour>(36);
        let draw = |game| opening(&setup, GameKey { run_seed: 4, game });
        let openings: Vec<ConnectFour> = (0..400).filter_map(draw).collect();
        assert!(openings.len() > 200, "{}", openings.len());
        assert!(openings.iter().all(|start| start.known().is_none()));
    }

    #[test]
    fn a_turn_of_several_actions_is_played_to_its_end() {
        let setup = setup::<PacoSako>(15);
        for game in 0..100 {
            let Some(start) = opening(&setup, GameKey { run_seed: 4, game }) else {
                continue;
            };
            // A turn begins by lifting a piece: the actions 0 to 63.
            let mut legal = Vec::new();
            start.legal_actions(&mut legal);
            assert!(legal.iter().all(|&action| action < 64), "{legal:?}");
        }
    }

    #[test]
    fn problems_have_no_random_openings() {
        assert!(openings::<GeneratorGame>(12).iter().all(Option::is_none));
    }
}
