//! Batches of the generator game that a network can learn: problems with their known solutions.

use games::{
    Game as _, RowSymmetries, Symmetry,
    generator::{Encoding, GeneratorGame, Rules},
};
use learner::data::{batches::HostBatch, packer::Packer};
use proto::v1;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;

const DISCOUNT: f32 = 0.97;
/// Level of the hardest problems.
const LEVEL: u32 = 8;

/// Returns batch `number` of the sequence of `seed`, as a replay store would send it. With examples, most problems are tasks.
pub fn wire_batch(encoding: Encoding, positions: usize, seed: u64, number: u64) -> v1::Batch {
    let mut draw = ChaCha20Rng::seed_from_u64(seed);
    draw.set_stream(number);
    let mut batch = v1::Batch {
        number,
        positions: positions as u32,
        game: GeneratorGame::NAME.into(),
        options: encoding.options(),
        ..v1::Batch::default()
    };
    // Some of the problems are pairs, so that every flag and grid occurs.
    let rules = Rules {
        pairs: 30,
        tasks: if encoding == Encoding::Examples { 40 } else { 0 },
        ..Rules::default()
    };
    while batch.visit_counts.len() < positions {
        let level = draw.random_range(1..=LEVEL);
        let drawn = GeneratorGame::draw_start(&rules, level, &mut |below| draw.random_range(0..below));
        let drawn = drawn.unwrap();
        let (mut state, length) = (drawn.start, drawn.solution.len());
        for (ply, action) in drawn.solution.into_iter().enumerate() {
            if batch.visit_counts.len() == positions {
                break;
            }
            let before = batch.rows.len();
            state.write_row(encoding, Symmetry::IDENTITY, &mut batch.rows);
            batch.row_lengths.push((batch.rows.len() - before) as u32);
            batch.visit_counts.push(1);
            batch.visit_actions.push(action);
            batch.visits.push(1);
            batch.results.push(DISCOUNT.powi((length - ply) as i32));
            batch.root_values.push(0.0);
            batch.game_sequences.push(number);
            batch.plies.push(ply as u32);
            state.play(action).unwrap();
        }
    }
    batch
}

/// Packs the batch without symmetries.
pub fn batch(encoding: Encoding, positions: usize, seed: u64, number: u64) -> HostBatch {
    packer(encoding)
        .pack(&wire_batch(encoding, positions, seed, number))
        .unwrap()
}

pub fn packer(encoding: Encoding) -> Packer {
    Packer::new(GeneratorGame::layout(encoding), RowSymmetries::none(), 1)
}
