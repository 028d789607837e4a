//! Index rows in all eight forms, their expansion, and the two example rows of the representation's description.

use games::{Game, Symmetry, paco_sako::PacoSako};
use serde::Deserialize;

use super::data::{play, player_number, records, start};

#[derive(Deserialize)]
struct Record {
    id: u32,
    start_fen: Option<String>,
    actions: Vec<u32>,
    fen: String,
    required_action: String,
    controlling_player: u8,
    victory_state: String,
    repr: Rows,
    tensor_sum_opts1: f64,
    tensor_nonzero_opts1: usize,
}

/// Rows by option number.
type Rows = std::collections::BTreeMap<u32, Vec<u32>>;

fn row(state: &PacoSako, options: u32) -> Vec<u32> {
    let mut row = Vec::new();
    state.write_row(
        PacoSako::encoding(&Default::default(), options).unwrap(),
        Symmetry::IDENTITY,
        &mut row,
    );
    row
}

#[test]
fn recorded_rows_agree_in_all_eight_forms() {
    let records: Vec<Record> = records("ml_index_representation.jsonl");
    assert_eq!(records.len(), 155);
    for record in records {
        let mut state = start(record.start_fen.as_deref(), 3);
        for &action in &record.actions {
            play(&mut state, action);
        }
        assert_eq!(state.position(), record.fen, "record {}", record.id);
        assert_eq!(
            format!("{:?}", state.required_action()),
            record.required_action,
            "record {}",
            record.id
        );
        assert_eq!(
            player_number(state.to_move()),
            record.controlling_player,
            "record {}",
            record.id
        );
        assert_eq!(
            format!("{:?}", state.victory_state()),
            record.victory_state,
            "record {}",
            record.id
        );
        assert_eq!(record.repr.len(), 8);
        for (&options, expected) in &record.repr {
            assert_eq!(
                &row(&state, options),
                expected,
                "record {} options {options}",
                record.id
            );
        }

        let layout = PacoSako::layout(PacoSako::encoding(&Default::default(), 1).unwrap());
        let mut tensor = vec![0.0; layout.stack().unwrap().tensor_len()];
        layout
            .stack()
            .unwrap()
            .expand(&row(&state, 1), &mut tensor)
            .unwrap();
        let sum: f64 = tensor.iter().map(|&value| f64::from(value)).sum();
        assert!(
            (sum - record.tensor_sum_opts1).abs() < 1e-3,
            "record {}: {sum}",
            record.id
        );
        let nonzero = tensor.iter().filter(|&&value| value != 0.0).count();
        assert_eq!(nonzero, record.tensor_nonzero_opts1, "record {}", record.id);
    }
}

#[test]
fn layouts_are_consistent_and_have_the_described_sizes() {
    let planes = [31, 30, 32, 31, 32, 31, 33, 32];
    let lengths = [39, 38, 40, 39, 40, 39, 41, 40];
    for options in 0..8 {
        let layout = PacoSako::layout(PacoSako::encoding(&Default::default(), options).unwrap());
        layout.check().unwrap();
        assert_eq!(layout.stack().unwrap().planes, planes[options as usize]);
        assert_eq!(layout.row_len(), Some(lengths[options as usize]));
        assert_eq!(layout.mirrored_actions, options & 1 == 1);
    }
    assert!(PacoSako::encoding(&Default::default(), 8).is_err());
    assert!(PacoSako::encoding(&Default::default(), u32::MAX).is_err());
}

/// The numbers are from the description of the representation.
#[test]
fn the_described_example_rows_agree() {
    #[rustfmt::skip]
    let pieces = [
         64, 129, 194, 259, 324, 197, 134,  71,   8,   9,  10,
         11,  12,  13,  14,  15, 432, 433, 434, 435, 436, 437,
        438, 439, 504, 569, 634, 699, 764, 637, 574, 511,  64,
    ];
    let castling = [1, 1, 1, 1];
    let state = start(None, 3);
    let relative = [&pieces[..], &castling, &[0]].concat();
    assert_eq!(row(&state, 1), relative);
    let (player, must_lift, must_promote) = (0, 1, 0);
    let absolute = [&pieces[..], &castling, &[player, must_lift, must_promote, 0]].concat();
    assert_eq!(row(&state, 6), absolute);
}
