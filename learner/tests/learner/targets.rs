//! Policy and value targets that are computed from the results of searches.

use crate::common::{layout, packer, wire_batch};
use games::{Game as _, RowSymmetries, Symmetry, connect_four::ConnectFour};
use learner::data::{batches::BatchError, packer::Packer, policies};
use proto::{
    decisions::{DecisionColumns, DecisionEntry, Recorder},
    v1::{Batch, DecisionKind, Decisions},
};
use search::CompletedQ;

const EVEN: CompletedQ = CompletedQ {
    scale: 0.3,
    range: 2.0,
};

/// Priors and values of the visited actions, priors of the unvisited ones (with their indices), and the evaluation.
type Search<'a> = (&'a [(f32, f32)], &'a [(u32, f32)], f32);

fn columns(kind: DecisionKind, searches: &[Search<'_>]) -> Decisions {
    let mut recorder = Recorder::default();
    for &(visited, unvisited, evaluation) in searches {
        recorder.push(&DecisionEntry {
            kind,
            visited,
            unvisited,
            evaluation,
            played: 0,
        });
    }
    recorder.finish_batch()
}

/// Returns the target of one position.
fn target(rule: CompletedQ, visits: &[u32], search: Search<'_>) -> Vec<f64> {
    let columns = columns(DecisionKind::Searched, &[search]);
    let counts = [visits.len() as u32];
    let decision = DecisionColumns::new(&columns, &counts).unwrap().next().unwrap();
    policies::completed_q(rule, visits, &decision).unwrap()
}

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(
            (a - b).abs() < tolerance,
            "{at}: {found:?}, {expected:?} expected"
        );
    }
}

/// mctx is the implementation of the authors of the method. `vectors/completed_q.py` wrote the cases.
#[test]
fn targets_are_those_of_mctx() {
    #[derive(serde::Deserialize)]
    struct Case {
        priors: Vec<f32>,
        visits: Vec<u32>,
        values: Vec<f32>,
        evaluation: f32,
        scale: f64,
        rescale: bool,
        target: Vec<f64>,
    }
    let cases: Vec<Case> = serde_json::from_str(include_str!("vectors/completed_q.json")).unwrap();
    assert!(cases.len() >= 40);
    for case in cases {
        // Without rescaling, the range of all values is in the denominator.
        let rule = match case.rescale {
            true => CompletedQ {
                scale: case.scale,
                range: 1e-8,
            },
            false => CompletedQ {
                scale: 2.0 * case.scale,
                range: 2.0,
            },
        };
        let places = 0..case.visits.len();
        let (seen, others): (Vec<usize>, Vec<usize>) = places.partition(|&place| case.visits[place] > 0);
        let visits: Vec<u32> = seen.iter().map(|&place| case.visits[place]).collect();
        let visited: Vec<_> = seen
            .iter()
            .map(|&place| (case.priors[place], case.values[place]))
            .collect();
        let unvisited: Vec<_> = others
            .iter()
            .map(|&place| (place as u32, case.priors[place]))
            .collect();
        let found = target(rule, &visits, (&visited, &unvisited, case.evaluation));
        let expected: Vec<f64> = seen
            .iter()
            .chain(&others)
            .map(|&place| case.target[place])
            .collect();
        assert_near(&found, &expected, 1e-6);
    }
}

#[test]
fn equal_values_leave_the_priors_and_small_differences_hardly_change_them() {
    let priors = [0.5, 0.375, 0.125];
    let search = |values: [f32; 3]| {
        let visited: Vec<_> = priors.into_iter().zip(values).collect();
        let rule = CompletedQ {
            scale: 0.1,
            range: 0.25,
        };
        target(rule, &[40, 9, 1], (&visited, &[], 0.0))
    };
    assert_near(&search([0.75; 3]), &priors.map(f64::from), 1e-9);
    // Nine logits for a range of 0.25: a hundredth of it moves 0.09.
    let step = 1.25f32 / 512.0;
    let ratio = (90.0 * 0.1 * f64::from(step) / 0.25).exp();
    let moved = search([step, 0.0, 0.0]);
    assert!((moved[0] / moved[1] / (0.5 / 0.375) - ratio).abs() < 1e-6);
    // Beyond the range, only the order and the proportions of the values count.
    assert_near(&search([0.5, 0.0, -0.5]), &search([1.0, 0.0, -1.0]), 1e-9);
}

#[test]
fn a_prior_that_was_rounded_to_zero_and_a_proven_win_give_a_policy() {
    let found = target(EVEN, &[1, 30], (&[(0.0, 1.0), (1.0, -1.0)], &[(3, 0.0)], -1.0));
    assert!(found.iter().all(|share| share.is_finite()));
    assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(found[0] > 0.99, "{found:?}");
    let columns = columns(DecisionKind::Searched, &[(&[(1.0, f32::NAN)], &[], 0.0)]);
    let decision = DecisionColumns::new(&columns, &[1]).unwrap().next().unwrap();
    assert!(policies::completed_q(EVEN, &[1], &decision).is_err());
}

/// Returns two positions of Connect Four. The packer draws one of the two images of each. The first action of a position has its own
/// policy index, whatever its place in the columns.
fn wire(kind: DecisionKind) -> Batch {
    let mut batch = Batch {
        positions: 2,
        game: "connect-four".into(),
        options: ConnectFour::layout(Default::default()).options,
        visit_counts: vec![2, 1],
        visit_actions: vec![5, 1, 6],
        visits: vec![6, 2, 8],
        results: vec![1.0, -1.0],
        root_values: vec![0.5, -0.5],
        game_sequences: vec![3, 4],
        plies: vec![0, 0],
        ..Batch::default()
    };
    for _ in 0..2 {
        ConnectFour::EMPTY.write_row(Default::default(), Symmetry::IDENTITY, &mut batch.rows);
    }
    let searches: [Search<'_>; 2] = [
        (&[(0.5, 0.5), (0.25, -0.25)], &[(0, 0.125), (3, 0.125)], 0.25),
        (&[(0.75, -0.5)], &[(2, 0.25)], -0.25),
    ];
    batch.decisions = Some(columns(kind, &searches));
    batch
}

fn connect_four(symmetries: RowSymmetries) -> Packer {
    Packer::new(ConnectFour::layout(Default::default()), symmetries, 1)
}

/// Returns a packer that computes targets from the values of actions.
fn completed(symmetries: RowSymmetries) -> Packer {
    Packer {
        completed_q: Some(EVEN),
        ..connect_four(symmetries)
    }
}

#[test]
fn shares_stand_at_the_policy_indices_of_their_actions_in_each_symmetry() {
    let mirrored = ConnectFour::row_symmetries(Default::default());
    let mut images = std::collections::BTreeSet::new();
    for number in 0..8 {
        let batch = Batch {
            number,
            ..wire(DecisionKind::Searched)
        };
        let packed = completed(mirrored.clone()).pack(&batch).unwrap();
        assert_eq!(packed.policy.samples, 2);
        let first: Vec<i64> = packed.policy.at[..4].to_vec();
        assert!(first == [5, 1, 0, 3] || first == [1, 5, 6, 3], "{first:?}");
        let second: Vec<i64> = packed.policy.at[4..].iter().map(|at| at - 7).collect();
        assert!(second == [6, 2] || second == [0, 4], "{second:?}");
        images.insert(first);
        let of_first = target(
            EVEN,
            &[6, 2],
            (&[(0.5, 0.5), (0.25, -0.25)], &[(0, 0.125), (3, 0.125)], 0.25),
        );
        let shares: Vec<f64> = packed.policy.share.iter().map(|&share| share.into()).collect();
        assert_near(&shares[..4], &of_first, 1e-6);
        let entropy: f64 = shares.iter().map(|share| -share * share.ln()).sum();
        assert!((packed.policy.entropy - entropy / 2.0).abs() < 1e-5);
    }
    assert_eq!(images.len(), 2, "both images are drawn");
}

/// The cases are solutions, positions of earlier releases, and a learner that is trained towards visits.
#[test]
fn positions_without_values_of_a_search_keep_their_visits() {
    let visits = connect_four(RowSymmetries::none())
        .pack(&wire(DecisionKind::Searched))
        .unwrap()
        .policy;
    assert_eq!(
        (visits.at.as_slice(), visits.share.as_slice()),
        (&[5, 1, 13][..], &[0.75, 0.25, 1.0][..])
    );
    let completed = completed(RowSymmetries::none());
    for kind in [DecisionKind::Solved, DecisionKind::Unrecorded] {
        assert_eq!(completed.pack(&wire(kind)).unwrap().policy, visits);
    }
    assert_ne!(
        completed.pack(&wire(DecisionKind::Searched)).unwrap().policy,
        visits
    );
    // An earlier store sends no search results at all.
    let without = Batch {
        decisions: None,
        ..wire(DecisionKind::Searched)
    };
    let error = completed.pack(&without).unwrap_err();
    assert!(
        matches!(error, BatchError::Length(found) if found.column == "decisions.kinds"),
        "{error}"
    );
}

#[test]
fn a_sample_with_an_impossible_action_or_value_is_left_out() {
    let packer = completed(RowSymmetries::none());
    let mut batch = wire(DecisionKind::Searched);
    batch.decisions.as_mut().unwrap().unvisited_actions[0] = 7;
    let (packed, errors) = packer.pack_valid(&batch).unwrap();
    assert_eq!((packed.positions, errors.len()), (1, 1));
    assert!(errors[0].to_string().contains("action 7 of 7"), "{}", errors[0]);
    assert_eq!(packed.policy.at, [6, 2]);
}

#[test]
fn positions_of_games_without_a_result_take_their_root_value() {
    let layout = layout(9);
    let mut batch = wire_batch(&layout, 3, 5, 0);
    (batch.results, batch.root_values) = (vec![1.0, 0.25, -1.0], vec![0.5, 0.25, 0.5]);
    batch.undecided = vec![1];
    let wdl = Packer {
        has_outcomes: true,
        ..packer(&layout)
    };
    let mixing = Packer {
        root_value_share: 0.5,
        ..wdl.clone()
    };
    let packed = mixing.pack(&batch).unwrap();
    assert_eq!(packed.results, [0.75, 0.25, -0.25]);
    let outcomes = packed.outcomes.unwrap();
    assert_eq!(outcomes[3..6], [0.25, 0.75, 0.0]);
    // Without the mark it would be the result of a scored game.
    let unmarked = Batch {
        undecided: vec![],
        ..batch.clone()
    };
    assert!(wdl.pack(&unmarked).is_err());
    // The mark stays with its sample if others are left out.
    batch.rows[0] = 4_000_000_000;
    let (packed, errors) = wdl.pack_valid(&batch).unwrap();
    assert_eq!((packed.results.as_slice(), errors.len()), (&[0.25, -1.0][..], 1));
}
