//! Random games, random numbers and recorded cases, for the tests of several games.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
};

use flate2::read::GzDecoder;
use games::{Action, Game, Outcome};
use proptest::{collection::vec, prelude::*};
use serde::de::DeserializeOwned;

/// Returns numbers that choose the actions of a game of at most `length` actions.
pub fn choices(length: usize) -> impl Strategy<Value = Vec<u16>> {
    vec(any::<u16>(), 0..length)
}

/// Returns the legal actions of a state.
pub fn legal<G: Game>(state: &G) -> Vec<Action> {
    let mut actions = vec![u32::MAX];
    state.legal_actions(&mut actions);
    actions
}

/// Plays the chosen actions. `look` is called with every state and the action about to be played in it.
pub fn play<G: Game>(state: &mut G, choices: &[u16], mut look: impl FnMut(&G, Action)) {
    for &choice in choices {
        let actions = legal(state);
        let Some(&action) = actions.get(usize::from(choice) % actions.len().max(1)) else {
            return;
        };
        look(state, action);
        state.play(action).unwrap();
    }
}

/// True if an action of the player to act wins the game, found by trying all of them.
pub fn wins_at_once<G: Game>(state: &G) -> bool {
    legal(state).into_iter().any(|action| {
        let mut next = state.clone();
        next.play(action).unwrap();
        next.outcome() == Some(Outcome::Won(state.to_move()))
    })
}

/// Returns a generator of random numbers below a bound.
pub fn drawer(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) as usize) % below.max(1)
    }
}

/// Returns the FNV-1a hash of these bytes.
pub fn fnv1a64(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the records of a file in `tests/data` with one JSON object on each line. It is compressed if its name ends with `.gz`.
pub fn records<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader: Box<dyn Read> = if name.ends_with(".gz") {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let lines = BufReader::new(reader).lines().map(Result::unwrap);
    let parse = |line: String| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{name}: {error}"));
    lines.map(parse).collect()
}
