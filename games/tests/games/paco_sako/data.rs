//! Recorded cases of the original engine, and states that are compared with them.

use games::{
    Game, Player,
    paco_sako::{PacoSako, Rules},
};

/// Returns the records of a data file of the original engine.
pub fn records<T: serde::de::DeserializeOwned>(name: &str) -> Vec<T> {
    crate::shared::records(&format!("paco-sako/{name}"))
}

/// Returns the game under the rules of the original engine.
pub fn start(fen: Option<&str>, draw_after_n_repetitions: u8) -> PacoSako {
    let rules = Rules {
        draw_after_n_repetitions,
        ..Rules::compatibility()
    };
    PacoSako::start(&rules, fen).unwrap_or_else(|error| panic!("{fen:?}: {error}"))
}

/// Returns the legal action codes, counted from 1 as in the data.
pub fn legal(state: &PacoSako) -> Vec<u32> {
    let mut actions = Vec::new();
    state.legal_actions(&mut actions);
    actions.iter().map(|action| action + 1).collect()
}

pub fn play(state: &mut PacoSako, code: u32) {
    state
        .play(code - 1)
        .unwrap_or_else(|error| panic!("{}: {error}", state.position()));
}

pub fn player_number(player: Player) -> u8 {
    player.index() as u8
}

pub fn square_name(square: u8) -> String {
    let file = char::from(b'a' + square % 8);
    format!("{file}{}", square / 8 + 1)
}
