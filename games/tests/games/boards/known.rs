//! Wins by one action, which every game of two players must know, compared with playing each action.

use games::{
    Notation, Outcome,
    registry::{self, Visitor},
};
use proptest::{prelude::*, test_runner::TestRunner};

use crate::shared::{choices, play, wins_at_once};

/// Plays random games. Returns the number of states with a win by one action.
struct RandomGames;

impl Visitor for RandomGames {
    type Output = usize;

    fn visit<G: Notation>(self) -> usize {
        let wins = std::cell::Cell::new(0);
        TestRunner::new(ProptestConfig::with_cases(60))
            .run(&choices(200), |choices| {
                let mut state = G::start(&G::Rules::default(), None).unwrap();
                play(&mut state, &choices, |state, _| {
                    let win = Outcome::Won(state.to_move());
                    let known = state.known();
                    let position = state.position();
                    if wins_at_once(state) {
                        assert_eq!(known.map(|known| known.outcome), Some(win), "{position}");
                        wins.set(wins.get() + 1);
                    } else {
                        let claims = known.is_some_and(|known| known.outcome == win && known.actions == 1);
                        assert!(!claims, "{position}");
                    }
                });
                Ok(())
            })
            .unwrap();
        wins.get()
    }
}

#[test]
fn every_game_knows_the_wins_by_one_action() {
    for &name in registry::NAMES {
        if registry::find(name).unwrap().players == 2 {
            let wins = registry::visit(name, RandomGames).unwrap();
            assert!(wins > 0, "{name}: no state with a win");
        }
    }
}
