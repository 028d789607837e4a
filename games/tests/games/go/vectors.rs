//! Random games, move by move against OpenSpiel, Pgx and GNU Go: see `tests/data/go/README.md`.

use games::{
    Game,
    go::{Go, Rules},
};
use serde::Deserialize;

use super::area;
use crate::shared::{legal, records};

#[derive(Deserialize)]
struct Record {
    source: String,
    size: u32,
    suicide: bool,
    superko: String,
    actions: Vec<u32>,
    legal: Vec<String>,
    /// `None` where the program would count stones as dead.
    area: Option<i64>,
}

/// Returns the actions as a hexadecimal number, in which bit `a` is set for action `a`.
fn hexadecimal(actions: &[u32]) -> String {
    let mut digits = vec![0u32; *actions.last().unwrap() as usize / 4 + 1];
    for action in actions {
        digits[*action as usize / 4] |= 1 << (action % 4);
    }
    let digits = digits.iter().rev();
    digits
        .map(|&digit| char::from_digit(digit, 16).unwrap())
        .collect()
}

#[test]
fn legal_moves_and_scores_agree_with_other_programs() {
    let games: Vec<Record> = records("go/random_games.jsonl.gz");
    for source in ["openspiel", "pgx", "gnugo"] {
        assert!(
            games
                .iter()
                .any(|game| game.source == source && game.area.is_some())
        );
    }
    for game in games {
        let rules = serde_json::json!({
            "size": game.size, "komi": 0, "suicide": game.suicide, "superko": game.superko, "early_end": false,
        });
        let rules: Rules = serde_json::from_value(rules).unwrap();
        let mut state = Go::start(&rules, None).unwrap();
        for (action, expected) in game.actions.iter().zip(&game.legal) {
            let found = hexadecimal(&legal(&state));
            assert_eq!(&found, expected, "{}: {}", game.source, state.position());
            state.play(*action).unwrap();
        }
        assert_eq!(state.ending(), Some("two-passes"));
        let found = area(&state);
        if let Some(expected) = game.area {
            assert_eq!(found, expected, "{}: {}", game.source, state.position());
        }
        let territory = state.territory().unwrap();
        let points: i64 = territory.owners.iter().copied().map(i64::from).sum();
        assert_eq!((points, territory.score), (found, found as f32));
    }
}
