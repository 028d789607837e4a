//! Wins within a turn that the game knows, compared with an exhaustive search of the turn.

use games::{
    Game, KnownOutcome, Outcome, Player,
    paco_sako::{DeadEnd, PacoSako, Rules},
};
use serde::Deserialize;

use super::{
    data::{legal, play, records},
    turns::Turn,
};
use crate::shared::drawer;

/// Most states of a turn that the exhaustive search visits.
const LIMIT: usize = 4_000;

#[derive(Deserialize)]
struct Record {
    fen: String,
}

/// Returns the win of the player to act with the fewest actions of this turn. `None` if the turn has too many states.
fn shortest(state: &PacoSako) -> Option<Option<KnownOutcome>> {
    let turn = Turn::explore(state, LIMIT)?;
    let wins = turn.ends.iter().filter(|end| end.is_paco);
    let actions = wins.map(|end| end.distance as u32).min();
    Some(actions.map(|actions| KnownOutcome {
        outcome: Outcome::Won(state.to_move()),
        actions,
    }))
}

/// Calls `look` with the positions of the data, for either player to act.
fn each_position(rules: &Rules, mut look: impl FnMut(PacoSako)) {
    for Record { fen } in records::<Record>("sako.jsonl") {
        for side in ["w", "b"] {
            let mut fields: Vec<&str> = fen.split(' ').collect();
            fields[1] = side;
            if let Ok(state) = PacoSako::start(rules, Some(&fields.join(" "))) {
                look(state);
            }
        }
    }
}

#[test]
fn wins_of_one_turn_are_the_shortest() {
    let (mut wins, mut others) = (0, 0);
    each_position(&Rules::compatibility(), |state| {
        let Some(expected) = shortest(&state) else { return };
        assert_eq!(state.known(), expected, "{}", state.position());
        wins += u32::from(expected.is_some());
        others += u32::from(expected.is_none());
    });
    assert!(wins > 60 && others > 100, "{wins} wins, {others} turns without");
}

/// Within a turn some ways are barred, because they would repeat a state.
#[test]
fn wins_from_states_within_a_turn_can_be_played() {
    for dead_end in [DeadEnd::Loss, DeadEnd::Forbid] {
        let rules = Rules {
            dead_end,
            ..Rules::default()
        };
        let (mut wins, mut others, mut draw) = (0, 0, drawer(1));
        each_position(&rules, |start| {
            let mover = start.to_move();
            for _ in 0..4 {
                let mut state = start.clone();
                while state.outcome().is_none() && state.to_move() == mover {
                    match (state.known(), shortest(&state)) {
                        (Some(known), _) => {
                            wins += 1;
                            assert_eq!(
                                won_by_known_actions(&state),
                                known.actions,
                                "{}",
                                state.position()
                            );
                        }
                        (None, expected) => {
                            assert_eq!(expected.flatten(), None, "{}", state.position());
                            others += 1;
                        }
                    }
                    let actions = legal(&state);
                    play(&mut state, actions[draw(actions.len())]);
                }
            }
        });
        assert!(wins > 200 && others > 500, "{wins} wins, {others} states without");
    }
}

/// Plays the actions that the game knows to win soonest. Returns their number.
fn won_by_known_actions(state: &PacoSako) -> u32 {
    let mover = state.to_move();
    let mut state = state.clone();
    let mut played = 0;
    while state.outcome().is_none() {
        let left = state.known().unwrap().actions;
        let next = legal(&state).into_iter().find_map(|action| {
            let mut next = state.clone();
            play(&mut next, action);
            let is_end = next.outcome() == Some(Outcome::Won(mover)) && left == 1;
            let is_nearer = next.known().is_some_and(|known| {
                known.outcome == Outcome::Won(mover) && known.actions + 1 == left && next.to_move() == mover
            });
            (is_end || is_nearer).then_some(next)
        });
        state = next.expect("an action leads to the known win");
        played += 1;
    }
    assert_eq!(state.outcome(), Some(Outcome::Won(mover)));
    played
}

/// The expected value tries all courses of the turn, and all courses of a turn of the opponent from the same position.
#[test]
fn threat_values_are_those_of_all_courses_of_a_turn() {
    let rules = Rules::compatibility();
    let mut found = [0; 3];
    each_position(&rules, |state| {
        let position = state.position();
        let mut fields: Vec<&str> = position.split(' ').collect();
        fields[1] = if fields[1] == "w" { "b" } else { "w" };
        let Ok(other) = PacoSako::start(&rules, Some(&fields.join(" "))) else {
            return;
        };
        let (Some(own), Some(threat)) = (shortest(&state), shortest(&other)) else {
            return;
        };
        let (kind, expected) = match (own, threat) {
            (Some(_), _) => (0, 1.0),
            (None, Some(_)) => (1, -0.5),
            (None, None) => (2, 0.0),
        };
        assert_eq!(state.threat_value().get(), expected, "{position}");
        found[kind] += 1;
    });
    assert!(found.iter().all(|&count| count > 30), "{found:?}");
}

#[test]
fn nothing_is_known_of_the_first_turn() {
    let start = PacoSako::start(&Rules::default(), None).unwrap();
    assert_eq!(start.to_move(), Player::First);
    assert_eq!(start.known(), None);
}
