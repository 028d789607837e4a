//! The vectorised expansion equals the reference, and packing refuses invalid samples.

use crate::common::{Change, SIDES, assert_refused, layout, packer, row, sized, stack, wire_batch};
use config::GameConfig;
use games::{PlaneStack, RowForm, RowLayout};
use learner::{
    data::{batches::BatchError, game::TrainingGame, packer::Packer},
    network::inputs::Expansion,
    torch::{from_host, to_host},
};
use rand::SeedableRng as _;
use rand_chacha::ChaCha20Rng;
use tch::Device;

fn check(layout: &RowLayout, rows: &[u32]) {
    let stack = layout.stack().unwrap();
    let batch = rows.len() / stack.row_len();
    let numbers: Vec<i32> = rows.iter().map(|&value| value as i32).collect();
    let tensor = from_host(&numbers, &[batch as i64, -1], Device::Cpu).unwrap();
    let expanded = Expansion::new(layout, Device::Cpu)
        .unwrap()
        .expand(&tensor)
        .unwrap();
    let [planes, height, width] = stack.shape().map(|side| side as i64);
    assert_eq!(expanded.size(), [batch as i64, planes, height, width]);
    let expanded = to_host(&expanded).unwrap();
    let mut reference = vec![0.0; stack.tensor_len()];
    for (row, expanded) in rows
        .chunks(stack.row_len())
        .zip(expanded.chunks(stack.tensor_len()))
    {
        stack.expand(row, &mut reference).unwrap();
        assert!(expanded == reference, "{row:?}");
    }
}

#[test]
fn expansion_equals_the_reference_bit_for_bit() {
    let mut draw = ChaCha20Rng::seed_from_u64(7);
    let bare = RowLayout {
        form: RowForm::Planes(PlaneStack {
            planes: 1,
            sparse: vec![0],
            constants: vec![],
            ones: vec![],
            ..stack()
        }),
        ..layout(9)
    };
    let of_all_sides = SIDES.map(|sides| sized(sides, 0, 0));
    for layout in of_all_sides.into_iter().chain([layout(9), bare]) {
        let rows: Vec<u32> = (0..200).flat_map(|_| row(&layout, &mut draw)).collect();
        check(&layout, &rows);
    }
    for options in 0..8 {
        let config = GameConfig {
            options,
            ..GameConfig::default()
        };
        let game = TrainingGame::new(&config, 100, 1).unwrap();
        check(&game.layout, &game.rows);
    }
}

#[test]
fn packing_keeps_every_number() {
    let layout = layout(9);
    let wire = wire_batch(&layout, 16, 1, 4);
    let packed = packer(&layout).pack(&wire).unwrap();
    assert_eq!(
        (packed.number, packed.positions, packed.policy.samples),
        (4, 16, 16)
    );
    assert_eq!(packed.rows, wire.rows);
    assert_eq!(packed.row_ends.last(), Some(&wire.rows.len()));
    assert_eq!(packed.candidates, None);
    assert_eq!(packed.results, wire.results);
    for (entry, (&at, &share)) in packed.policy.at.iter().zip(&packed.policy.share).enumerate() {
        assert_eq!(at as usize, entry / 2 * 9 + wire.visit_actions[entry] as usize);
        assert_eq!(share, [0.9, 0.1][entry % 2]);
    }
    let entropy = -(0.9f64 * 0.9f64.ln() + 0.1 * 0.1f64.ln());
    assert!((packed.policy.entropy - entropy).abs() < 1e-12);
}

#[test]
fn invalid_batches_are_refused_with_the_reason() {
    let layout = layout(9);
    let fault = |change: &dyn Fn(&mut proto::v1::Batch)| {
        let mut wire = wire_batch(&layout, 4, 1, 0);
        change(&mut wire);
        packer(&layout).pack(&wire).unwrap_err()
    };
    assert!(matches!(
        fault(&|batch| batch.game = "chess".into()),
        BatchError::Game { .. }
    ));
    assert!(matches!(
        fault(&|batch| batch.options = 1),
        BatchError::Game { .. }
    ));
    let lengths: [(&str, Change<'_>); 5] = [
        ("rows", &|batch| batch.rows.truncate(5)),
        ("visit_counts", &|batch| batch.visit_counts.push(0)),
        ("visit_actions", &|batch| batch.visit_counts[0] = 3),
        ("visits", &|batch| batch.visits.truncate(3)),
        ("results", &|batch| batch.results.clear()),
    ];
    let samples: [(usize, Change<'_>); 5] = [
        (0, &|batch| batch.rows[0] = 64),
        (1, &|batch| batch.visit_actions[3] = 9),
        (2, &|batch| batch.results[2] = 1.5),
        (2, &|batch| batch.results[2] = f32::NAN),
        (3, &|batch| batch.visits[6..8].fill(0)),
    ];
    assert_refused(
        &packer(&layout),
        &wire_batch(&layout, 4, 1, 0),
        &lengths,
        &samples,
    );
}

/// The rows are those of Othello, and the first entry of each is the only action. Row and action must be transformed by the same
/// symmetry, each symmetry must be drawn about equally often, and packing the batch again must give the same result.
#[test]
fn every_sample_is_transformed_by_a_symmetry_of_its_own() {
    let config = GameConfig {
        name: "othello".into(),
        options: 0,
        ..GameConfig::default()
    };
    let game = TrainingGame::new(&config, 1, 1).unwrap();
    let (layout, positions) = (game.layout, 4000);
    let (square, row_len) = (11, layout.row_len().unwrap());
    let mut row = vec![square; row_len];
    row[row_len - 1] = 1;
    let batch = proto::v1::Batch {
        number: 6,
        positions: positions as u32,
        rows: row.repeat(positions),
        visit_counts: vec![1; positions],
        visit_actions: vec![square; positions],
        visits: vec![5; positions],
        results: vec![0.0; positions],
        root_values: vec![0.0; positions],
        game: layout.game.clone(),
        ..proto::v1::Batch::default()
    };
    let pack = |seed, number| {
        let batch = proto::v1::Batch {
            number,
            ..batch.clone()
        };
        Packer::new(layout.clone(), game.symmetries.clone(), seed)
            .pack(&batch)
            .unwrap()
    };
    let packed = pack(1, 6);
    assert_eq!(packed, pack(1, 6));
    assert_ne!(packed.rows, pack(2, 6).rows);
    assert_ne!(packed.rows, pack(1, 7).rows);
    let mut counts = std::collections::HashMap::new();
    for (sample, (row, &at)) in packed.rows.chunks(row_len).zip(&packed.policy.at).enumerate() {
        let turned = row[0];
        assert!(row[..row_len - 1].iter().all(|&entry| entry == turned));
        assert_eq!(at as usize, sample * layout.actions as usize + turned as usize);
        *counts.entry(turned).or_insert(0) += 1;
    }
    // Square 11 has eight images; 500 of each are expected, with a deviation of 21.
    assert_eq!(counts.len(), 8);
    assert!(
        counts.values().all(|&count| (380..620).contains(&count)),
        "{counts:?}"
    );
}
