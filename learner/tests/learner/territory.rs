//! The head for the territory: its targets in each symmetry, its training, and that files to play with do not have it.

use crate::common::{
    all_parts, assert_refused, layout, model, packer, repeat, settings, sized, trainer, wire_batch,
};
use config::ModelConfig;
use games::{PlaneStack, PolicyHead, RowForm, RowLayout, RowSymmetries, Symmetry, symmetries::RowMaps};
use learner::{
    data::{batches::HostBatch, packer::Packer},
    network::{Folded, Network, NetworkShape, declarations::declarations},
    publishing::{
        export::{Prover, export},
        snapshot::Snapshot,
    },
    training::{
        precision::Precision,
        train::{StepReport, Trainer},
    },
};
use proto::v1::Batch;
use tch::Device;

/// The symmetry that exchanges the two squares of a board.
#[derive(Debug)]
struct Exchange;

impl RowMaps for Exchange {
    fn count(&self, _row: &[u32]) -> u8 {
        2
    }

    fn turn_row(&self, _symmetry: Symmetry, row: &mut [u32]) {
        row.iter_mut().for_each(|index| *index ^= 1);
    }

    fn turn_action(&self, _symmetry: Symmetry, entry: u32) -> u32 {
        entry ^ 1
    }

    fn turn_square(&self, _symmetry: Symmetry, square: u32) -> u32 {
        square ^ 1
    }
}

/// Returns a layout of a board of 1×2.
fn two_squares() -> RowLayout {
    RowLayout {
        form: RowForm::Planes(PlaneStack {
            height: 1,
            width: 2,
            entries: 1,
            planes: 1,
            sparse: vec![0],
            constants: vec![],
            ones: vec![],
        }),
        policy_head: PolicyHead::Planes,
        ..layout(2)
    }
}

/// Returns three positions of a board of 1×2. The first square is marked in each, and its action is the best. The player to act owns that
/// square in the first position and the other one in the third; the second has no territory.
fn three_positions() -> Batch {
    Batch {
        territory_positions: vec![0, 2],
        territories: vec![1, 255, 0, 1].into(),
        territory_scores: vec![1.5, -7.0],
        rows: vec![0; 3],
        visit_counts: vec![1; 3],
        visit_actions: vec![0; 3],
        visits: vec![8; 3],
        ..wire_batch(&two_squares(), 3, 1, 0)
    }
}

fn of_two_squares(symmetries: RowSymmetries) -> Packer {
    Packer {
        has_territory: true,
        ..Packer::new(two_squares(), symmetries, 1)
    }
}

#[test]
fn owners_are_turned_with_the_row() {
    let mut images = std::collections::BTreeSet::new();
    for number in 0..12 {
        let batch = Batch {
            number,
            ..three_positions()
        };
        let packed = of_two_squares(RowSymmetries::new(Exchange)).pack(&batch).unwrap();
        let found = packed.territories.unwrap();
        assert_eq!(found.samples, [0, 2]);
        assert_eq!(found.scores, [0.75, -1.0], "cut off at the number of squares");
        for (at, own) in [(0, [1.0, 0.0]), (1, [0.5, 1.0])] {
            // The row has the number of the marked square.
            let marked = packed.rows[2 * at];
            let owners = &found.owners[2 * at..][..2];
            let expected = if marked == 0 { own } else { [own[1], own[0]] };
            assert_eq!(owners, expected, "batch {number}");
            images.insert((at, marked));
        }
    }
    assert_eq!(images.len(), 4, "both images are drawn");
}

#[test]
fn columns_of_another_length_and_unknown_owners_are_refused() {
    assert_refused(
        &of_two_squares(RowSymmetries::none()),
        &three_positions(),
        &[
            ("territories", &|batch| batch.territories = vec![0; 3].into()),
            ("territory_scores", &|batch| batch.territory_scores.truncate(1)),
        ],
        &[
            (0, &|batch| batch.territories = vec![2, 0, 0, 0].into()),
            (2, &|batch| batch.territory_scores[1] = f32::NAN),
        ],
    );
    // The territories stay with their samples if others are left out.
    let mut batch = three_positions();
    batch.rows[0] = 7;
    let (packed, errors) = of_two_squares(RowSymmetries::none()).pack_valid(&batch).unwrap();
    assert_eq!(errors.len(), 1);
    let found = packed.territories.unwrap();
    assert_eq!(
        (found.samples.as_slice(), found.owners.as_slice()),
        (&[1][..], &[0.5, 1.0][..])
    );
}

fn owned_trainer(layout: &RowLayout, model: &ModelConfig, seed: u64) -> Trainer {
    learner::torch::device::set_threads(1);
    let shape = NetworkShape::new(model, layout).unwrap().with_territory();
    Trainer::new(&shape, layout, &settings(), seed, Device::Cpu).unwrap()
}

/// Returns a batch in which the first entry of a row determines the owners and the score. Every fourth position has none.
fn owned_batch(trainer: &Trainer, layout: &RowLayout, number: u64) -> HostBatch {
    let mut wire = wire_batch(layout, 32, 5, number);
    let stack = layout.stack().unwrap();
    let squares = stack.squares() as u32;
    let mut owners = Vec::new();
    for (place, row) in (0..).zip(wire.rows.chunks(stack.row_len())) {
        if place % 4 == 3 {
            continue;
        }
        wire.territory_positions.push(place);
        owners.extend((0..squares).map(|square| match (square + row[0]) % 3 {
            0 => 0,
            1 => 1,
            _ => 255u8,
        }));
        wire.territory_scores
            .push((row[0] % squares) as f32 - squares as f32 / 2.0);
    }
    wire.territories = owners.into();
    let shape = &trainer.network.shape;
    let packer = Packer {
        has_outcomes: shape.has_outcomes(),
        has_territory: shape.has_territory(),
        ..packer(layout)
    };
    packer.pack(&wire).unwrap()
}

/// Trains `steps` steps on the same batch; returns the first and the last report.
fn train_on_one_batch(trainer: &mut Trainer, layout: &RowLayout, steps: usize) -> [StepReport; 2] {
    let batch = owned_batch(trainer, layout, 0);
    repeat(trainer, &batch, steps)
}

#[test]
fn the_head_memorises_owners_and_scores() {
    for layout in [layout(9), sized([5, 7], 1, 1)] {
        let mut trainer = owned_trainer(&layout, &model(), 1);
        let [first, last] = train_on_one_batch(&mut trainer, &layout, 300);
        let figures = format!("{first:?} {last:?}");
        // The head begins at 0: even chances for each square, and a score of 0.
        assert!((first.of("territory") - 2f64.ln()).abs() < 1e-5, "{figures}");
        let sum = |report: &StepReport| {
            report.of("policy") + report.of("value") + 1.5 * report.of("territory") + 0.5 * report.of("score")
        };
        for report in [&first, &last] {
            assert_eq!(report.losses.len(), 4, "{figures}");
            assert!((report.loss - sum(report)).abs() < 1e-4, "{figures}");
        }
        // A third of the squares belongs to nobody: no network gets below a third of the first loss.
        assert!(last.of("territory") < 0.8 * first.of("territory"), "{figures}");
        assert!(last.of("score") < 0.3 * first.of("score"), "{figures}");
    }
}

#[test]
fn the_owners_train_the_tower() {
    let layout = layout(9);
    let trunk = |change: fn(&mut HostBatch)| {
        let mut trainer = owned_trainer(&layout, &model(), 1);
        for number in 0..3 {
            let mut batch = owned_batch(&trainer, &layout, number);
            change(&mut batch);
            trainer.step(&batch).unwrap();
        }
        let Folded::Tower(weights) = trainer.network.fold().unwrap() else {
            panic!("a tower was trained");
        };
        weights.layer("input").weights.clone()
    };
    let usual = trunk(|_| ());
    let exchanged = trunk(|batch| {
        let found = batch.territories.as_mut().unwrap();
        found.owners.iter_mut().for_each(|share| *share = 1.0 - *share);
    });
    let without_scores = trunk(|batch| batch.territories.as_mut().unwrap().scores.fill(0.0));
    assert!(usual != exchanged && usual != without_scores);
    assert!(usual == trunk(|_| ()));
}

#[test]
fn a_batch_without_any_territory_trains_the_other_heads_only() {
    let layout = layout(9);
    let mut trainer = owned_trainer(&layout, &model(), 1);
    let packer = Packer {
        has_territory: true,
        ..packer(&layout)
    };
    let batch = packer.pack(&wire_batch(&layout, 32, 5, 0)).unwrap();
    let report = trainer.step(&batch).unwrap();
    assert_eq!((report.of("territory"), report.of("score")), (0.0, 0.0));
    assert!((report.loss - report.of("policy") - report.of("value")).abs() < 1e-5);
}

#[test]
fn training_in_bf16_is_near_that_in_f32() {
    let layout = layout(9);
    let model = all_parts(&model());
    let mut rounded = owned_trainer(&layout, &model, 1);
    rounded.set_precision(Precision::Bf16);
    let mut exact = owned_trainer(&layout, &model, 1);
    let [_, of_exact] = train_on_one_batch(&mut exact, &layout, 40);
    let [first, of_rounded] = train_on_one_batch(&mut rounded, &layout, 40);
    assert!(of_rounded.of("territory") < first.of("territory"));
    assert!(
        (of_exact.of("territory") - of_rounded.of("territory")).abs() < 0.05,
        "{of_exact:?} {of_rounded:?}"
    );
}

#[test]
fn training_resumes_bit_for_bit_with_the_head() {
    let layout = layout(9);
    let train = |trainer: &mut Trainer, numbers: std::ops::Range<u64>| {
        for number in numbers {
            let batch = owned_batch(trainer, &layout, number);
            trainer.step(&batch).unwrap();
        }
    };
    let mut through = owned_trainer(&layout, &model(), 1);
    train(&mut through, 0..6);
    let mut before = owned_trainer(&layout, &model(), 1);
    train(&mut before, 0..3);
    let half = Snapshot::take(&before, 1).unwrap();
    let mut after = owned_trainer(&layout, &model(), 2);
    half.restore(&mut after).unwrap();
    train(&mut after, 3..6);
    let [through, after] = [through, after].map(|trainer| Snapshot::take(&trainer, 1).unwrap());
    assert!(through == after, "the weights or the optimiser differ");
}

#[test]
fn files_to_play_with_have_no_head_and_begin_networks_that_have_one() {
    let layout = layout(9);
    let mut trained = owned_trainer(&layout, &all_parts(&model()), 1);
    for number in 0..4 {
        let batch = owned_batch(&trained, &layout, number);
        trained.step(&batch).unwrap();
    }
    let file = export(trained.published(), &layout, 4).unwrap();
    let rows = owned_batch(&trained, &layout, 9).rows;
    let prover = Prover::load().unwrap();
    prover.prove(&file, trained.published(), &layout, &rows).unwrap();
    assert!(!file.windows(9).any(|part| part == b"territory"));

    let Folded::Tower(weights) = trained.published().fold().unwrap() else {
        panic!("a tower was trained");
    };
    let mut plain = trainer(&layout, &all_parts(&model()), &settings(), 2);
    plain.begin_with(&weights).unwrap();
    let mut next = owned_trainer(&layout, &all_parts(&model()), 2);
    next.begin_with(&weights).unwrap();
    prover.prove(&file, next.published(), &layout, &rows).unwrap();
}

/// The head's variables come last, so that the others begin with the same values with and without it.
#[test]
fn networks_without_the_head_are_as_before() {
    let layout = layout(9);
    let without = NetworkShape::new(&all_parts(&model()), &layout).unwrap();
    let with = without.clone().with_territory();
    let (own, more) = (declarations(&without, 3), declarations(&with, 3));
    assert_eq!(more[..own.len()], own);
    let names: Vec<&str> = more[own.len()..]
        .iter()
        .map(|variable| variable.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "territory.owners.weight",
            "territory.owners.bias",
            "territory.score.weight",
            "territory.score.bias"
        ]
    );
    let json = serde_json::to_value(&without).unwrap();
    assert!(json.get("territory").is_none(), "{json}");
    assert_eq!(serde_json::to_value(&with).unwrap()["territory"], true);
    let network = Network::new(&without, 3, Device::Cpu).unwrap();
    let added = Network::new(&with, 3, Device::Cpu)
        .unwrap()
        .variables
        .parameters();
    let filters = model().filters as usize;
    assert_eq!(
        added - network.variables.parameters(),
        filters + 1 + 2 * filters + 1
    );
}
