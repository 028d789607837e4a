//! Reads the data files, and gives helpers for states.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
};

use flate2::read::GzDecoder;
use games::{
    Game, Player,
    paco_sako::{PacoSako, Rules},
};
use serde::de::DeserializeOwned;

/// Records of a data file with one JSON object on each line. The file is compressed if its name ends with `.gz`.
pub fn records<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/paco-sako")
        .join(name);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader: Box<dyn Read> = if name.ends_with(".gz") {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let lines: Vec<String> = BufReader::new(reader).lines().map(Result::unwrap).collect();
    lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error}")))
        .collect()
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
