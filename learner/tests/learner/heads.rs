//! Optional heads and parts: each one learns, and its targets follow the rules of the game.

use std::path::Path;

use crate::common::{all_heads, batch, batch_for, layout, model, packer, settings, trainer, wire_batch};
use config::{LearnerConfig, ModelConfig, ValueHead};
use games::{
    Game, OtherSide, RowSymmetries, Symmetry, chess::Chess, connect_four::ConnectFour, othello::Othello,
    paco_sako::PacoSako,
};
use learner::{
    data::{
        batches::{BatchError, HostTarget},
        packer::Packer,
        policies::Policies,
    },
    network::{Folded, NetworkShape},
    publishing::{
        export::export,
        proof::{ProofError, Prover},
    },
    training::{
        precision::Precision,
        train::{StepReport, Trainer},
    },
};
use onnx::{Input, Metadata};
use proto::{targets::Target, v1};
use rand::{Rng as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha20Rng;

/// Trains `steps` steps on one batch; returns the first and the last report.
fn train_on_one_batch(trainer: &mut Trainer, actions: u32, steps: usize) -> [StepReport; 2] {
    let batch = batch_for(trainer, &layout(actions), 32, 5, 0);
    let first = trainer.step(&batch).unwrap();
    let mut last = first;
    for _ in 0..steps {
        last = trainer.step(&batch).unwrap();
    }
    [first, last]
}

#[test]
fn every_part_can_memorise_one_batch() {
    let quick = LearnerConfig {
        learning_rate: 1e-2,
        ..settings()
    };
    let (all_model, all_settings) = all_heads(&model(), &quick);
    let pooling = ModelConfig {
        global_pooling: 4,
        ..model()
    };
    let outcomes = ModelConfig {
        value_head: ValueHead::Wdl,
        ..model()
    };
    let replies = LearnerConfig {
        opponent_policy_weight: 0.15,
        ..quick.clone()
    };
    let moves_left = LearnerConfig {
        moves_left_weight: 0.1,
        ..quick.clone()
    };
    let soft_policy = LearnerConfig {
        soft_policy_weight: 8.0,
        ..quick.clone()
    };
    for (name, model, settings) in [
        ("soft policy", &model(), &soft_policy),
        ("pooling", &pooling, &quick),
        ("outcomes", &outcomes, &quick),
        ("replies", &model(), &replies),
        ("moves left", &model(), &moves_left),
        ("all", &all_model, &all_settings),
    ] {
        for actions in [9, 128] {
            let mut trainer = trainer(&layout(actions), model, settings, 1);
            let [first, last] = train_on_one_batch(&mut trainer, actions, 200);
            let figures = format!("{name}, {actions} actions: {first:?} {last:?}");
            // The policy is nearly uniform at first.
            assert!(
                (first.policy_loss - f64::from(actions).ln()).abs() < 0.3,
                "{figures}"
            );
            let above = |report: &StepReport| report.policy_loss - report.target_entropy;
            assert!(above(&last) < 0.3 * above(&first), "{figures}");
            assert!(last.value_loss < 0.1 * first.value_loss, "{figures}");
            let has = |part: Option<f64>, is_there: bool| assert_eq!(part.is_some(), is_there, "{figures}");
            let has_outcomes = model.value_head == ValueHead::Wdl;
            has(first.value_squared_error, has_outcomes);
            has(
                first.auxiliary.get(Target::OpponentPolicy),
                settings.opponent_policy_weight > 0.0,
            );
            has(
                first.auxiliary.get(Target::MovesLeft),
                settings.moves_left_weight > 0.0,
            );
            has(
                first.auxiliary.get(Target::SoftPolicy),
                settings.soft_policy_weight > 0.0,
            );
            if let (Some(begun), Some(ended)) = (
                first.auxiliary.get(Target::SoftPolicy),
                last.auxiliary.get(Target::SoftPolicy),
            ) {
                // It cannot fall below the entropy of its target, which is above that of the policy target.
                assert!((begun - f64::from(actions).ln()).abs() < 0.3, "{figures}");
                assert!(ended > last.target_entropy, "{figures}");
                assert!(ended < begun - 0.3 * (begun - last.target_entropy), "{figures}");
            }
            if has_outcomes {
                assert!((first.value_loss - 3f64.ln()).abs() < 0.2, "{figures}");
            }
            for (first, last) in [
                (first.value_squared_error, last.value_squared_error),
                (
                    first.auxiliary.get(Target::MovesLeft),
                    last.auxiliary.get(Target::MovesLeft),
                ),
                // One reply each: its entropy is 0.
                (
                    first.auxiliary.get(Target::OpponentPolicy),
                    last.auxiliary.get(Target::OpponentPolicy),
                ),
            ] {
                if let (Some(first), Some(last)) = (first, last) {
                    assert!(last < 0.2 * first, "{figures}");
                }
            }
            let weighted = settings.opponent_policy_weight
                * last.auxiliary.get(Target::OpponentPolicy).unwrap_or(0.0)
                + settings.moves_left_weight * last.auxiliary.get(Target::MovesLeft).unwrap_or(0.0)
                + settings.soft_policy_weight * last.auxiliary.get(Target::SoftPolicy).unwrap_or(0.0);
            let sum = last.policy_loss + last.value_loss + weighted;
            assert!((last.loss - sum).abs() < 1e-4, "{figures}");
        }
    }
}

/// All parts together in bf16: the losses are near those of f32, and they fall.
#[test]
fn every_part_is_trained_in_bf16_too() {
    let (model, settings) = all_heads(&model(), &settings());
    let mut exact = trainer(&layout(128), &model, &settings, 1);
    let mut rounded = trainer(&layout(128), &model, &settings, 1);
    rounded.set_precision(Precision::Bf16);
    let [first, _] = train_on_one_batch(&mut exact, 128, 0);
    let [first_rounded, last] = train_on_one_batch(&mut rounded, 128, 60);
    assert!(
        (first.loss - first_rounded.loss).abs() < 0.05,
        "{first:?} {first_rounded:?}"
    );
    assert!(last.loss < 0.8 * first_rounded.loss, "{first_rounded:?} {last:?}");
}

#[test]
fn probabilities_are_exported_and_proven() {
    let (model, settings) = all_heads(&model(), &settings());
    let layout = layout(9);
    let mut trainer = trainer(&layout, &model, &settings, 1);
    for number in 0..6 {
        let batch = batch_for(&trainer, &layout, 32, 5, number);
        trainer.step(&batch).unwrap();
    }
    let rows = batch(&layout, 30, 1, 0).rows;
    let prover = Prover::load(Path::new("")).unwrap();
    let file = export(trainer.network(), &layout, 6).unwrap();
    prover.prove(&file, trainer.network(), &layout, &rows).unwrap();
    let Folded::Tower(weights) = trainer.network().fold().unwrap() else {
        panic!("a tower was trained");
    };
    let metadata = Metadata {
        layout: layout.clone(),
        step: 6,
    };
    let tamper = |change: &dyn Fn(&mut onnx::TowerWeights)| {
        let mut weights = (*weights).clone();
        change(&mut weights);
        let file = onnx::build(&weights, &metadata, Input::Rows).unwrap();
        prover
            .prove(&file, trainer.network(), &layout, &rows)
            .unwrap_err()
    };
    // Win and loss both become likelier: the value hardly changes, the probabilities do.
    let error = tamper(&|weights| {
        weights.value.output.bias[0] += 0.01;
        weights.value.output.bias[2] += 0.01;
    });
    assert!(matches!(error, ProofError::Differs { .. }), "{error}");
    let error = tamper(&|weights| {
        let output = &mut weights.value.output;
        output.outputs = 1;
        output.weights.truncate(output.inputs);
        output.bias.truncate(1);
    });
    assert!(error.to_string().contains("`wdl`"), "{error}");
}

#[test]
fn targets_of_outcomes_are_mixed_and_scores_are_refused() {
    let layout = layout(9);
    let wdl = ModelConfig {
        value_head: ValueHead::Wdl,
        ..model()
    };
    let shape = NetworkShape::new(&wdl, &settings(), &layout).unwrap();
    let packer = packer(&layout)
        .with_root_values(0.25)
        .with_targets(shape.targets(), &OtherSide::default());
    assert!(!packer.wants_auxiliary());
    let mut wire = wire_batch(&layout, 3, 5, 0);
    wire.results = vec![1.0, -1.0, 0.0];
    wire.root_values = vec![0.5, 0.5, -1.0];
    let packed = packer.pack(&wire).unwrap();
    assert_eq!(
        packed.outcomes.unwrap(),
        [0.875, 0.125, 0.0, 0.125, 0.125, 0.75, 0.0, 0.75, 0.25]
    );
    assert_eq!(packed.results, [0.875, -0.625, -0.25]);
    wire.results[1] = 0.9;
    let error = packer.pack(&wire).unwrap_err();
    assert!(
        matches!(error, BatchError::Sample { sample: 1, .. })
            && error.to_string().contains("model.value_head"),
        "{error}"
    );
}

#[test]
fn a_batch_without_auxiliary_targets_is_refused() {
    let layout = layout(9);
    let (model, settings) = all_heads(&model(), &settings());
    let shape = NetworkShape::new(&model, &settings, &layout).unwrap();
    let packer = packer(&layout).with_targets(shape.targets(), &OtherSide::default());
    assert!(packer.wants_auxiliary());
    type Change<'a> = &'a dyn Fn(&mut v1::Batch);
    let changes: [(&str, Change<'_>); 4] = [
        ("reply_counts", &|batch| batch.reply_counts.clear()),
        ("reply_actions", &|batch| batch.reply_counts[0] += 1),
        ("reply_visits", &|batch| batch.reply_visits.push(1)),
        ("moves_left", &|batch| batch.moves_left.clear()),
    ];
    for (field, change) in changes {
        let mut wire = wire_batch(&layout, 6, 5, 0);
        change(&mut wire);
        let error = packer.pack(&wire).unwrap_err();
        assert!(
            matches!(error, BatchError::Length(found) if found.column == field),
            "{field}: {error}"
        );
    }
    let mut wire = wire_batch(&layout, 6, 5, 0);
    wire.reply_actions[0] = 9;
    let error = packer.pack(&wire).unwrap_err().to_string();
    assert!(error.contains("opponent_policy: action 9 of 9"), "{error}");
}

/// A game of random actions with all its states.
struct Played<G> {
    states: Vec<G>,
    /// Absolute actions and visits of each state.
    visited: Vec<Vec<(u32, u32)>>,
}

fn play<G: Game>(draw: &mut ChaCha20Rng, longest: usize) -> Played<G> {
    let mut state = G::start(&G::Rules::default(), None).unwrap();
    let (mut states, mut visited) = (Vec::new(), Vec::new());
    let mut legal = Vec::new();
    while state.outcome().is_none() && states.len() < longest {
        state.legal_actions(&mut legal);
        states.push(state.clone());
        visited.push(match draw.random_bool(0.2) {
            true => Vec::new(),
            false => {
                let some: Vec<u32> = legal.choose_multiple(draw, 5).copied().collect();
                some.into_iter()
                    .map(|action| (action, draw.random_range(1..50)))
                    .collect()
            }
        });
        state.play(*legal.choose(draw).unwrap()).unwrap();
    }
    Played { states, visited }
}

/// Appends one sample's sparse policy to a wire batch's columns. Actions are numbered as the player to act in `state` numbers them.
fn push<G: Game>(state: &G, encoding: G::Encoding, visited: &[(u32, u32)], columns: [&mut Vec<u32>; 3]) {
    let [counts, actions, visits] = columns;
    counts.push(visited.len() as u32);
    actions.extend(
        visited
            .iter()
            .map(|&(action, _)| state.policy_index(encoding, Symmetry::IDENTITY, action)),
    );
    visits.extend(visited.iter().map(|&(_, count)| count));
}

/// Makes a batch of every searched position of a game, with the reply found by following the game from it.
fn wire_of<G: Game>(played: &Played<G>, encoding: G::Encoding) -> (v1::Batch, Vec<usize>) {
    let layout = G::layout(encoding);
    let mut batch = v1::Batch {
        game: layout.game,
        options: layout.options,
        ..v1::Batch::default()
    };
    let searched: Vec<usize> = (0..played.states.len())
        .filter(|&ply| !played.visited[ply].is_empty())
        .collect();
    for &ply in &searched {
        let state = &played.states[ply];
        state.write_row(encoding, Symmetry::IDENTITY, &mut batch.rows);
        let columns = [
            &mut batch.visit_counts,
            &mut batch.visit_actions,
            &mut batch.visits,
        ];
        push(state, encoding, &played.visited[ply], columns);
        let columns = [
            &mut batch.reply_counts,
            &mut batch.reply_actions,
            &mut batch.reply_visits,
        ];
        match reply(played, ply) {
            Some(at) => push(&played.states[at], encoding, &played.visited[at], columns),
            None => batch.reply_counts.push(0),
        }
        batch.moves_left.push((played.states.len() - ply) as u32);
        batch.results.push(0.0);
        batch.root_values.push(0.0);
        batch.plies.push(ply as u32);
        batch.game_sequences.push(1);
    }
    batch.positions = searched.len() as u32;
    (batch, searched)
}

fn reply<G: Game>(played: &Played<G>, ply: usize) -> Option<usize> {
    let mover = played.states[ply].to_move();
    (ply + 1..played.states.len()).find(|&later| played.states[later].to_move() != mover)
}

/// Returns the targets of a sample as shares by policy index, ascending.
fn shares(policies: &Policies, sample: usize, actions: u32) -> Vec<(u32, f32)> {
    let own = sample as i64 * i64::from(actions)..(sample as i64 + 1) * i64::from(actions);
    let both = policies.at.iter().zip(&policies.share);
    let mut found: Vec<(u32, f32)> = both
        .filter(|(at, _)| own.contains(at))
        .map(|(&at, &share)| ((at - own.start) as u32, share))
        .collect();
    found.sort_by_key(|&(at, _)| at);
    found
}

fn check_replies<G: Game>(options: u32, seed: u64) -> usize {
    let encoding = G::encoding(options).unwrap();
    let layout = G::layout(encoding);
    let mut draw = ChaCha20Rng::seed_from_u64(seed);
    let played = play::<G>(&mut draw, 160);
    let (wire, searched) = wire_of(&played, encoding);
    let heads = LearnerConfig {
        opponent_policy_weight: 0.15,
        moves_left_weight: 0.1,
        ..settings()
    };
    let shape = NetworkShape::new(&model(), &heads, &layout).unwrap();
    let symmetries: RowSymmetries = G::row_symmetries(encoding);
    let packed = Packer::new(layout.clone(), symmetries, seed)
        .with_targets(shape.targets(), &G::other_side(encoding))
        .pack(&wire)
        .unwrap();
    let planes = |row: &[u32]| {
        let stack = layout.stack().unwrap();
        let mut planes = vec![0.0; stack.tensor_len()];
        stack.expand(row, &mut planes).unwrap();
        planes
    };
    // A policy of the player to act, or of the other player, both as the player to act in `state` numbers actions.
    let seen = |state: &G, symmetry, visited: &[(u32, u32)]| {
        let total: u32 = visited.iter().map(|&(_, count)| count).sum();
        let mut seen: Vec<(u32, f32)> = visited
            .iter()
            .map(|&(action, count)| {
                let share = f64::from(count) / f64::from(total);
                (state.policy_index(encoding, symmetry, action), share as f32)
            })
            .collect();
        seen.sort_by_key(|&(at, _)| at);
        seen
    };
    let Some(HostTarget::Policies(replies)) = packed.auxiliary(Target::OpponentPolicy) else {
        panic!("no replies")
    };
    let rows: Vec<&[u32]> = layout.split(&packed.rows).collect();
    let mut replied = 0;
    for (sample, &ply) in searched.iter().enumerate() {
        let state = &played.states[ply];
        let policy = shares(&packed.policy, sample, layout.actions);
        let found = shares(replies, sample, layout.actions);
        let answer = reply(&played, ply).filter(|&at| !played.visited[at].is_empty());
        replied += usize::from(answer.is_some());
        let fits = |symmetry: Symmetry| {
            let mut row = Vec::new();
            state.write_row(encoding, symmetry, &mut row);
            let expected = answer.map_or(Vec::new(), |at| seen(state, symmetry, &played.visited[at]));
            planes(&row) == planes(rows[sample])
                && seen(state, symmetry, &played.visited[ply]) == policy
                && expected == found
        };
        assert!(
            (0..G::SYMMETRIES)
                .map(Symmetry)
                .any(|symmetry| state.allows(symmetry) && fits(symmetry)),
            "{}, ply {ply}",
            G::NAME
        );
    }
    assert_eq!(replies.samples, replied);
    let left: Vec<f32> = searched
        .iter()
        .map(|&ply| (played.states.len() - ply) as f32)
        .collect();
    assert_eq!(
        packed.auxiliary(Target::MovesLeft),
        Some(&HostTarget::Numbers(left))
    );
    replied
}

/// The actions of a reply are numbered as the player who awaits the reply numbers them, by the games' own rules, in every symmetry and
/// both perspectives.
#[test]
fn replies_are_numbered_as_the_player_to_act_numbers_actions() {
    let mut replied = 0;
    for seed in 0..6 {
        replied += check_replies::<PacoSako>(1, seed);
        replied += check_replies::<PacoSako>(0, seed);
        replied += check_replies::<Chess>(0, seed);
        replied += check_replies::<Othello>(0, seed);
        replied += check_replies::<ConnectFour>(0, seed);
    }
    assert!(replied > 1000, "{replied}");
}
