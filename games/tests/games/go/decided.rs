//! Games that end early, against playing on.

use games::{
    Game, Outcome, Player,
    go::{Go, Rules},
};

use super::{area, plain, play, set_up};
use crate::shared::{drawer, legal};

/// Black has two eyes, and 15 of 25 points are certain.
const ALIVE: [&str; 5] = ["X.X.X", "XXXXX", "XXXXX", ".....", "....."];

fn early(komi: f32, size: u32) -> Rules {
    Rules {
        komi,
        early_end: true,
        ..plain(size)
    }
}

#[test]
fn a_game_ends_at_the_turn_of_the_player_who_has_won_it() {
    let state = set_up(early(4.5, 5), &ALIVE, 'X').unwrap();
    assert_eq!(
        (state.outcome(), state.ending()),
        (Some(Outcome::Won(Player::First)), Some("decided"))
    );
    assert!(legal(&state).is_empty());
    for (komi, mover) in [(4.5, 'O'), (5.5, 'X')] {
        assert_eq!(set_up(early(komi, 5), &ALIVE, mover).unwrap().outcome(), None);
    }
    let mut state = set_up(early(4.5, 5), &ALIVE, 'O').unwrap();
    play(&mut state, "c2");
    assert_eq!(state.ending(), Some("decided"));
    // People play until two passes.
    assert_eq!(set_up(plain(5), &ALIVE, 'X').unwrap().outcome(), None);
}

#[test]
fn one_eye_and_points_with_stones_of_the_other_player_are_not_certain() {
    for (ranks, is_decided) in [
        (["X.X.X", "XXX.X", "XXXXX", "X....", "....."], true),
        (["X.XXX", "XXXXX", "XXXXX", "X....", "....."], false),
        (["X.X.X", "XXXOX", "XXXXX", "X....", "....."], false),
    ] {
        let state = set_up(early(4.5, 5), &ranks, 'X').unwrap();
        assert_eq!(state.outcome().is_some(), is_decided, "{ranks:?}");
    }
}

/// True if `winner` wins whatever the other player does. Captures are tried first, then passes. `None` if `budget` positions do not
/// suffice.
fn can_win(state: &Go, winner: Player, budget: &mut u32) -> Option<bool> {
    let mover = state.to_move();
    if let Some(outcome) = state.outcome().or(state.known().map(|known| known.outcome)) {
        return Some(outcome == Outcome::Won(winner));
    }
    *budget = budget.checked_sub(1)?;
    let mut children: Vec<(usize, Go)> = legal(state)
        .into_iter()
        .map(|action| {
            let mut next = state.clone();
            next.play_legal(action);
            (stones(&next, winner.other()), next)
        })
        .collect();
    // The pass is the last legal action.
    children.reverse();
    children.sort_by_key(|(left, _)| *left);
    for (_, next) in &children {
        let wins = can_win(next, winner, budget)?;
        if wins == (mover == winner) {
            return Some(wins);
        }
    }
    Some(mover != winner)
}

fn stones(state: &Go, player: Player) -> usize {
    let text = state.position();
    let letter = ['X', 'O'][player.index()];
    text.split(' ').next().unwrap().matches(letter).count()
}

/// Plays random games that end early. The winner must also win by playing on until two passes, against any play.
#[test]
fn the_winner_of_a_game_that_ends_early_also_wins_by_playing_on() {
    let mut proven = 0;
    for (size, games) in [(3, 300), (4, 300)] {
        for seed in 0..games {
            let mut random = drawer(seed);
            let komi = random(9) as f32 - 4.0;
            let rules = early(komi, size);
            let mut state = Go::start(&rules, None).unwrap();
            while state.outcome().is_none() {
                let actions = legal(&state);
                let stones = actions.len() - 1;
                let place = if stones == 0 || random(12) == 0 {
                    stones
                } else {
                    random(stones)
                };
                state.play(actions[place]).unwrap();
            }
            if state.ending() != Some("decided") {
                continue;
            }
            let Some(Outcome::Won(winner)) = state.outcome() else {
                panic!("{state:?}");
            };
            // The board as it is has the same winner.
            let score = area(&state) as f32 - komi;
            assert!(score * winner.sign() > 0.0, "{}", state.position());
            let later = Rules {
                early_end: false,
                ..rules
            };
            let later = Go::start(&later, Some(&state.position())).unwrap();
            let wins = can_win(&later, winner, &mut 20_000);
            assert_ne!(wins, Some(false), "{}", state.position());
            proven += u32::from(wins == Some(true));
        }
    }
    assert!(proven > 100, "{proven}");
}
