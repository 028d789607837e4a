//! Tests of Go against other programs' games, known numbers, a simple second implementation, and positions set by hand.

mod counts;
mod decided;
mod hand;
mod random;
mod sgf;
mod vectors;

use games::{
    Game, Notation, StartError,
    go::{Go, Rules},
};

/// Rules of games until two passes, without compensation.
fn plain(size: u32) -> Rules {
    Rules {
        size,
        komi: 0.0,
        early_end: false,
        ..Rules::default()
    }
}

/// Returns the text of a position that is drawn with the highest rank on top.
fn text(ranks: &[&str], mover: char) -> String {
    let board: String = ranks.iter().rev().copied().collect();
    format!("{board} {mover} 0 -")
}

/// Returns a position that is drawn with the highest rank on top.
fn set_up(rules: Rules, ranks: &[&str], mover: char) -> Result<Go, StartError> {
    Go::start(&rules, Some(&text(ranks, mover)))
}

/// Plays moves as people write them. A move with `!` in front must be illegal, and is not played.
fn play(state: &mut Go, moves: &str) {
    for name in moves.split_whitespace() {
        match name.strip_prefix('!') {
            Some(name) => {
                let error = state.read_turn(name).unwrap_err();
                assert!(error.contains("not legal"), "{name}: {error}");
            }
            None => {
                let turn = state.read_turn(name).unwrap();
                state.play(turn[0]).unwrap();
            }
        }
    }
}

/// Returns Black's points less White's.
fn area(state: &Go) -> i64 {
    let fields = state.json_fields(Default::default());
    fields[0].1.as_i64().unwrap()
}
