//! Tests of the whole search on random trees, against a second implementation of the specification.

mod batches;
mod budget;
mod canonical;
mod game;
mod gumbel;
mod invariants;
mod lines;
mod look;
mod mates;
mod memory;
mod proofs;
mod reference;
mod seeded;
mod solutions;
mod values;

use game::{Shape, TreeGame};
use proptest::prelude::*;

use crate::{FirstPlay, GameKey, Reuse, Root, Settings};

const KEY: GameKey = GameKey {
    run_seed: 11,
    game: 5,
};

fn any_first_play() -> impl Strategy<Value = (FirstPlay, f32)> {
    let first_play = prop_oneof![
        Just(FirstPlay::Parent),
        Just(FirstPlay::Zero),
        Just(FirstPlay::Reduction)
    ];
    (first_play, 0.0f32..0.8)
}

fn any_reuse() -> impl Strategy<Value = Reuse> {
    prop_oneof![Just(Reuse::Gray), Just(Reuse::Keep), Just(Reuse::Drop)]
}

/// Returns a share of noise and its total α.
fn any_noise() -> impl Strategy<Value = (f32, f32)> {
    (prop_oneof![Just(0.0), 0.0f32..=1.0], 0.05f32..12.0)
}

/// Returns three switches: the solver, exact leaves, and the end of solved decisions.
fn any_proofs() -> impl Strategy<Value = [bool; 3]> {
    prop_oneof![Just([false; 3]), any::<[bool; 3]>()]
}

/// Returns a choice at the decision node, and the weight of values there.
fn any_root() -> impl Strategy<Value = (Root, f64, f64)> {
    let root = prop_oneof![Just(Root::Puct), Just(Root::Gumbel)];
    (root, 0.0f64..2.0, 0.01f64..=2.0)
}

fn any_settings(leaves: impl Strategy<Value = u32>) -> impl Strategy<Value = Settings> {
    let numbers = (1u32..120, 0.0f32..3.0, leaves, 0.5f32..=1.0);
    let choices = (any_reuse(), any_proofs(), any_root());
    (numbers, any_first_play(), any_noise(), choices, any::<bool>()).prop_map(
        |(
            (visits, exploration, leaves, discount),
            first_play,
            noise,
            (reuse, [solver, exact_leaves, stop_when_solved], (root, q_scale, q_range)),
            random_symmetry,
        )| Settings {
            visits,
            root,
            q_scale,
            q_range,
            exploration,
            first_play: first_play.0,
            first_play_reduction: first_play.1,
            leaves,
            noise_fraction: noise.0,
            noise_total_alpha: noise.1,
            random_symmetry,
            reuse,
            discount,
            solver,
            exact_leaves,
            stop_when_solved,
            ..Settings::default()
        },
    )
}

fn any_key() -> impl Strategy<Value = GameKey> {
    (any::<u64>(), any::<u64>()).prop_map(|(run_seed, game)| GameKey { run_seed, game })
}
