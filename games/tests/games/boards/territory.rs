//! Owners of squares at the end of random games of every game.

use games::{
    Notation, Outcome, Player,
    registry::{self, Visitor},
};

use crate::shared::{drawer, legal};

struct RandomGame(u64);

impl Visitor for RandomGame {
    type Output = ();

    fn visit<G: Notation>(self) {
        let mut draw = drawer(self.0);
        let mut state = G::start(&G::Rules::default(), None).unwrap();
        for _ in 0..1_000 {
            let actions = legal(&state);
            if actions.is_empty() {
                break;
            }
            assert_eq!(state.territory(), None, "{}: the game runs", G::NAME);
            state.play(actions[draw(actions.len())]).unwrap();
        }
        let Some(outcome) = state.outcome() else {
            return;
        };
        let found = state.territory();
        assert_eq!(found.is_some(), G::HAS_TERRITORY, "{}", G::NAME);
        let Some(found) = found else { return };
        let layout = G::layout(G::encoding(&G::Rules::default(), 0).unwrap());
        assert_eq!(found.owners.len(), layout.stack().unwrap().squares());
        assert!(found.owners.iter().all(|owner| (-1..=1).contains(owner)));
        let winner = match found.score {
            0.0 => Outcome::Draw,
            score if score > 0.0 => Outcome::Won(Player::First),
            _ => Outcome::Won(Player::Second),
        };
        assert_eq!(outcome, winner, "{found:?}");
    }
}

#[test]
fn games_that_are_over_tell_owners_exactly_if_they_say_so() {
    for &name in registry::NAMES {
        for seed in 0..20 {
            registry::visit(name, RandomGame(seed)).unwrap();
        }
    }
}
