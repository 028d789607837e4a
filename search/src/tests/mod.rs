//! Tests of the whole search on random trees, against the specification written a second time.

mod batches;
mod budget;
mod game;
mod invariants;
mod lines;
mod memory;
mod one_player;
mod reference;
mod reuse;
mod seeded;
mod signs;
mod solutions;

use game::{Shape, TreeGame};
use proptest::prelude::*;

use crate::{Alpha, FirstPlay, GameKey, Noise, Reuse, Settings};

const KEY: GameKey = GameKey {
    run_seed: 11,
    game: 5,
};

fn any_first_play() -> impl Strategy<Value = FirstPlay> {
    prop_oneof![
        Just(FirstPlay::Parent),
        Just(FirstPlay::Zero),
        (0.0f32..0.8).prop_map(FirstPlay::Reduction),
    ]
}

fn any_reuse() -> impl Strategy<Value = Reuse> {
    prop_oneof![Just(Reuse::Gray), Just(Reuse::Keep), Just(Reuse::Drop)]
}

fn any_noise() -> impl Strategy<Value = Option<Noise>> {
    let noise = |fraction, alpha| Some(Noise { fraction, alpha });
    prop_oneof![
        Just(None),
        (0.0f32..=1.0, 0.02f32..3.0).prop_map(move |(fraction, alpha)| noise(fraction, Alpha::Each(alpha))),
        (0.0f32..=1.0, 0.1f32..12.0).prop_map(move |(fraction, alpha)| noise(fraction, Alpha::Total(alpha))),
    ]
}

fn any_settings(leaves: impl Strategy<Value = u32>) -> impl Strategy<Value = Settings> {
    let numbers = (1u32..120, 0.0f32..3.0, leaves, 0.5f32..=1.0);
    (numbers, any_first_play(), any_noise(), any_reuse(), any::<bool>()).prop_map(
        |((traversals, exploration, leaves, discount), first_play, noise, reuse, random_symmetry)| Settings {
            traversals,
            exploration,
            first_play,
            leaves,
            noise,
            random_symmetry,
            reuse,
            discount,
            ..Settings::default()
        },
    )
}

fn any_key() -> impl Strategy<Value = GameKey> {
    (any::<u64>(), any::<u64>()).prop_map(|(run_seed, game)| GameKey { run_seed, game })
}
