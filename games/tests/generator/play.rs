//! Random clans and random play for the other tests.

use games::{
    Action, Game,
    generator::{Clan, GeneratorGame, Move},
};
use proptest::prelude::*;

/// Returns random numbers that choose moves (see [`grow`]).
pub fn choices(most: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 0..most)
}

/// Returns the moves of a clan that do not fail, found by trying all of them: imp, move, clan after it.
pub fn transformations(clan: &Clan) -> Vec<(usize, Move, Clan)> {
    let mut found = Vec::new();
    for imp in 0..clan.len() {
        for action in (2..38).map(Move) {
            if clan.mask(imp) >> action.0 & 1 == 1
                && let Some(after) = clan.after(imp, action)
            {
                found.push((imp, action, after));
            }
        }
    }
    found
}

/// Returns the clan that these choices lead to. Even numbers choose among the moves that change the tree, so that it
/// grows deep.
pub fn grow(choices: &[u32]) -> Clan {
    let mut clan = Clan::start();
    for &choice in choices {
        let mut moves = transformations(&clan);
        if choice & 1 == 0 {
            moves.retain(|(_, action, _)| action.0 < 21);
        }
        if !moves.is_empty() {
            clan = moves[choice as usize / 2 % moves.len()].2;
        }
    }
    clan
}

pub fn any_clan() -> impl Strategy<Value = Clan> {
    choices(40).prop_map(|choices| grow(&choices))
}

pub fn legal(state: &GeneratorGame) -> Vec<Action> {
    let mut legal = vec![99];
    state.legal_actions(&mut legal);
    legal
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
