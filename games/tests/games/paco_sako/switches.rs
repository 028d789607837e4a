//! The switches that the rules add to the original ones, compared with an independent search.

use std::collections::HashSet;

use games::{
    Game, Outcome, Player,
    paco_sako::{DeadEnd, PacoSako, Rules, TurnCycles, Victory},
};
use serde::Deserialize;

use super::{
    data::{legal, play, records, start},
    turns::key,
};
use crate::shared::drawer;

const LOSS: Rules = Rules {
    dead_end: DeadEnd::Loss,
    ..Rules::compatibility()
};

#[derive(Deserialize)]
struct RandomGame {
    start_fen: Option<String>,
    draw_after_n_repetitions: u8,
    actions: Vec<u32>,
    end: String,
}

#[derive(Deserialize)]
struct Start {
    fen: String,
}

#[test]
fn a_dead_end_loses_the_game_if_the_rules_say_so() {
    let games: Vec<RandomGame> = records("random_games.jsonl.gz");
    let mut dead_ends = 0;
    for game in games.iter().filter(|game| game.end == "dead_end") {
        let repetitions = game.draw_after_n_repetitions;
        let rules = Rules {
            draw_after_n_repetitions: repetitions,
            ..LOSS
        };
        let mut state = PacoSako::start(&rules, game.start_fen.as_deref()).unwrap();
        for &action in &game.actions {
            assert_eq!(state.outcome(), None);
            play(&mut state, action);
        }
        assert_eq!(state.outcome(), Some(Outcome::Won(state.to_move().other())));
        assert_eq!(state.victory_state(), Victory::Running);

        let rules = Rules {
            dead_end: DeadEnd::Forbid,
            ..rules
        };
        let mut state = PacoSako::start(&rules, game.start_fen.as_deref()).unwrap();
        let is_refused = game.actions.iter().any(|action| state.play(action - 1).is_err());
        assert!(is_refused, "all actions of a turn into a dead end were offered");
        dead_ends += 1;
    }
    assert_eq!(dead_ends, 18);
}

#[test]
fn a_player_who_can_lift_nothing_loses() {
    let stalemate = "7k/8/8/8/8/8/pp6/Kp6 w 0 - - -";
    assert_eq!(start(Some(stalemate), 3).outcome(), None);
    for rules in [
        LOSS,
        Rules::default(),
        Rules {
            dead_end: DeadEnd::Forbid,
            ..LOSS
        },
    ] {
        let state = PacoSako::start(&rules, Some(stalemate)).unwrap();
        assert_eq!(state.outcome(), Some(Outcome::Won(Player::Second)));
        assert_eq!(legal(&state), [0; 0]);
    }
}

/// A knight that goes back and forth between two unions repeats a state.
#[test]
fn a_turn_must_not_repeat_a_state() {
    let fen = "k7/8/8/7D/5D2/6n1/8/K7 b 0 - - -";
    let [h5, f4] = [65 + 39, 65 + 29];
    let mut free = start(Some(fen), 3);
    let mut bound = PacoSako::start(
        &Rules {
            turn_cycles: TurnCycles::Forbid,
            ..LOSS
        },
        Some(fen),
    )
    .unwrap();
    for code in [23, h5, f4] {
        play(&mut free, code);
        play(&mut bound, code);
    }
    assert!(legal(&free).contains(&h5));
    let without: Vec<u32> = legal(&free).into_iter().filter(|&code| code != h5).collect();
    assert_eq!(legal(&bound), without);
    assert!(bound.play(h5 - 1).is_err());
    for code in [h5, f4, h5, f4] {
        play(&mut free, code);
    }
}

/// Plays from positions with many unions, and compares the legal actions with the definition of the rules.
#[test]
fn legal_actions_agree_with_the_definition_of_the_rules() {
    let mut draw = drawer(7);
    let mut refused = [0; 4];
    let all = [
        (DeadEnd::Loss, TurnCycles::Forbid),
        (DeadEnd::Forbid, TurnCycles::Forbid),
    ]
    .into_iter()
    .chain([
        (DeadEnd::Forbid, TurnCycles::Allow),
        (DeadEnd::Loss, TurnCycles::Allow),
    ]);
    for (number, (dead_end, turn_cycles)) in all.enumerate() {
        let recorded = records::<Start>("perft.jsonl")
            .into_iter()
            .map(|Start { fen }| fen);
        let cyclic = CYCLIC_BOARDS.iter().map(|fen| (*fen).to_owned());
        for fen in recorded.chain(std::iter::repeat_n(cyclic, 25).flatten()) {
            // These rules refuse the one board on which a king is united.
            let rules = Rules {
                dead_end,
                turn_cycles,
                draw_after_n_repetitions: 3,
            };
            let Ok(mut state) = PacoSako::start(&rules, Some(&fen)) else {
                continue;
            };
            let mut twin = start(Some(&fen), 3);
            let mut turn = HashSet::from([key(&twin)]);
            for _ in 0..50 {
                let offered = legal(&state);
                let original = legal(&twin);
                let defined: Vec<u32> = original
                    .iter()
                    .copied()
                    .filter(|&code| is_offered(&twin, code, &rules, &turn))
                    .collect();
                assert_eq!(offered, defined, "{rules:?} {}", twin.position());
                assert_eq!(
                    state.outcome().is_some(),
                    offered.is_empty(),
                    "{rules:?} {}",
                    twin.position()
                );
                refused[number] += original.len() - offered.len();
                if offered.is_empty() {
                    break;
                }
                // Actions that continue the turn are preferred, because the switches concern chains.
                let goes_on = |&code: &u32| {
                    let mut next = twin.clone();
                    play(&mut next, code);
                    next.to_move() == twin.to_move() && next.victory_state() == Victory::Running
                };
                let chains: Vec<u32> = offered.iter().copied().filter(goes_on).collect();
                let from = if chains.is_empty() || draw(8) == 0 {
                    &offered
                } else {
                    &chains
                };
                let code = from[draw(from.len())];
                let mover = twin.to_move();
                play(&mut state, code);
                play(&mut twin, code);
                if twin.to_move() != mover {
                    turn.clear();
                }
                turn.insert(key(&twin));
            }
        }
    }
    let [cycles, both, dead_ends, none] = refused;
    assert!(cycles > 20 && both > cycles && dead_ends > 100, "{refused:?}");
    assert_eq!(none, 0);
}

fn is_offered(state: &PacoSako, code: u32, rules: &Rules, turn: &HashSet<String>) -> bool {
    let mut next = state.clone();
    play(&mut next, code);
    let barred = if rules.turn_cycles == TurnCycles::Forbid {
        turn.clone()
    } else {
        HashSet::new()
    };
    if is_within(&next, state.to_move()) && barred.contains(&key(&next)) {
        return false;
    }
    rules.dead_end != DeadEnd::Forbid || can_end(&next, state.to_move(), barred)
}

fn is_within(state: &PacoSako, mover: Player) -> bool {
    state.victory_state() == Victory::Running && state.to_move() == mover
}

/// True if the turn can be completed from this state without a state in `barred`.
fn can_end(state: &PacoSako, mover: Player, mut barred: HashSet<String>) -> bool {
    let mut open = vec![state.clone()];
    while let Some(state) = open.pop() {
        if !is_within(&state, mover) {
            return true;
        }
        if !barred.insert(key(&state)) {
            continue;
        }
        for code in legal(&state) {
            let mut next = state.clone();
            play(&mut next, code);
            open.push(next);
        }
    }
    false
}

/// Boards on which chains often repeat a state.
const CYCLIC_BOARDS: [&str; 3] = [
    "k7/8/3D4/7D/5D2/6n1/8/K7 b 0 - - -",
    "4N3/3N3k/3sw1Ta/3p1o1e/hW1J1by1/8/2L4d/h4K2 b 29 - - -",
    "k7/8/1c1c1c2/8/1c1c1c2/8/1R3R2/K7 w 0 - - -",
];

#[test]
fn boards_that_cannot_be_played_are_refused_except_by_compatibility_rules() {
    let boards = [
        ("4m3/8/8/8/8/8/8/4K3 w 0 - - -", "king"),
        ("4k3/8/8/8/8/8/8/3KK3 w 0 - - -", "king"),
        ("4k3/8/8/8/8/8/8/8^e1m w 0 - - -", "king"),
        ("8/8/8/8/8/8/8/8 w 0 - - -", "empty"),
        ("PPPPPPPP/PPPPPPPP/P7/8/8/8/8/8 w 0 - - -", "sixteen"),
    ];
    for (fen, word) in boards {
        assert!(
            PacoSako::start(&Rules::compatibility(), Some(fen)).is_ok(),
            "{fen}"
        );
        for rules in [
            Rules::default(),
            Rules {
                dead_end: DeadEnd::Forbid,
                ..Rules::default()
            },
        ] {
            let error = PacoSako::start(&rules, Some(fen)).unwrap_err();
            assert!(error.to_string().contains(word), "{fen}: {error}");
        }
    }
}

#[test]
fn invalid_fens_are_refused_with_a_reason() {
    let good = "4k3/8/8/8/8/8/8/4K3 w 0 - - -";
    let start = |fen: &str| PacoSako::start(&Rules::default(), Some(fen));
    assert!(start(good).is_ok() && start(&format!("\u{feff}{good}")).is_ok());
    let wrong = [
        ("4k3/8/8/8/8/8/8/4K3 w 0 - -", "six fields"),
        ("4k3/8/8/8/8/8/4K3 w 0 - - -", "rows"),
        ("4k3/8/8/8/8/8/8/4K4 w 0 - - -", "row 1"),
        ("4k3/8/8/8/8/8/8/4_3 w 0 - - -", "'_'"),
        ("4k3/8/8/8/8/8/8/4K3 x 0 - - -", "side"),
        ("4k3/8/8/8/8/8/8/4K3 w 101 - - -", "counter"),
        ("4k3/8/8/8/8/8/8/4K3 w -1 - - -", "counter"),
        ("4k3/8/8/8/8/8/8/4K3 w 0 KQkq - -", "castling"),
        ("4k3/8/8/8/8/8/8/4K3 w 0 AB - -", "castling"),
        ("4k3/8/8/8/8/8/8/4K3 w 0 - e4 -", "en-passant"),
        ("4k3/8/8/8/8/8/8/4K3 w 0 - - e2e4", "sixth"),
        (
            "4k3/8/8/8/8/8/8/4K3^e2p w 0 - - -",
            "does not hold a piece of the side to move",
        ),
        ("4k3/8/8/8/8/8/8/4K3^é w 0 - - -", "hand"),
        ("4k3/8/8/8/8/8/8/4K3^e2 w 0 - - -", "hand"),
    ];
    for (fen, word) in wrong {
        let error = PacoSako::start(&Rules::compatibility(), Some(fen))
            .unwrap_err()
            .to_string();
        assert!(error.contains(word), "{fen}: {error}");
    }
}

#[test]
fn a_rules_table_is_read_strictly() {
    let read = |text: &str| serde_json::from_str::<Rules>(text).map_err(|error| error.to_string());
    assert_eq!(read("{}"), Ok(Rules::default()));
    assert_eq!(
        read(r#"{"dead_end":"neutral","turn_cycles":"allow","draw_after_n_repetitions":3}"#),
        Ok(Rules::compatibility())
    );
    assert!(read(r#"{"dead_ends":"loss"}"#).unwrap_err().contains("dead_end"));
    assert!(read(r#"{"dead_end":"win"}"#).unwrap_err().contains("neutral"));
    assert!(read(r#"{"draw_after_n_repetitions":-1}"#).is_err());
}
