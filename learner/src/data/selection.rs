//! Selects samples of a batch as it came over the wire, for a batch with invalid samples.

use proto::{decisions::Recorder, v1::Batch};

/// Returns a batch of the given samples, in ascending order, of `batch`. The lengths of the columns must fit each other.
pub(crate) fn select(batch: &Batch, samples: &[usize]) -> Batch {
    let positions = batch.positions as usize;
    let width = batch.rows.len().checked_div(positions).unwrap_or(0) as u32;
    let fixed = vec![width; positions];
    let row_lengths = match batch.row_lengths.is_empty() {
        true => &fixed,
        false => &batch.row_lengths,
    };
    let column = |values: &[u32], counts: &[u32]| ragged(values, counts, samples);
    Batch {
        positions: samples.len() as u32,
        rows: column(&batch.rows, row_lengths),
        row_lengths: plain(&batch.row_lengths, samples),
        visit_counts: plain(&batch.visit_counts, samples),
        visit_actions: column(&batch.visit_actions, &batch.visit_counts),
        visits: column(&batch.visits, &batch.visit_counts),
        results: plain(&batch.results, samples),
        root_values: plain(&batch.root_values, samples),
        game_sequences: plain(&batch.game_sequences, samples),
        plies: plain(&batch.plies, samples),
        number: batch.number,
        positions_inserted: batch.positions_inserted,
        window_positions: batch.window_positions,
        game: batch.game.clone(),
        options: batch.options,
        redraw: batch.redraw,
        decisions: batch.decision_columns().ok().map(|decisions| {
            let mut recorder = Recorder::default();
            let found = decisions.enumerate();
            found
                .filter(|(sample, _)| samples.binary_search(sample).is_ok())
                .for_each(|(_, decision)| recorder.copy(&decision));
            recorder.finish_batch()
        }),
        undecided: (0..)
            .zip(samples)
            .filter(|&(_, &sample)| batch.undecided.binary_search(&(sample as u32)).is_ok())
            .map(|(place, _)| place)
            .collect(),
    }
}

/// Selects from a column with one entry for each sample, or none.
fn plain<T: Copy>(values: &[T], samples: &[usize]) -> Vec<T> {
    samples
        .iter()
        .filter_map(|&sample| values.get(sample).copied())
        .collect()
}

/// Selects from a column whose samples have `counts` entries each, back to back.
fn ragged(values: &[u32], counts: &[u32], samples: &[usize]) -> Vec<u32> {
    let mut selected = Vec::new();
    let mut samples = samples.iter().peekable();
    let mut rest = values;
    for (sample, &count) in counts.iter().enumerate() {
        let (entries, others) = rest.split_at((count as usize).min(rest.len()));
        rest = others;
        if samples.next_if_eq(&&sample).is_some() {
            selected.extend_from_slice(entries);
        }
    }
    selected
}

#[cfg(test)]
mod tests {
    use proto::{
        decisions::Entry,
        v1::{DecisionKind, Decisions},
    };

    use super::*;

    /// Decisions of positions with this many visited actions and one unvisited action.
    fn decisions(positions: &[(usize, u32)]) -> Decisions {
        let mut recorder = Recorder::default();
        for &(visited, unvisited) in positions {
            recorder.push(&Entry {
                kind: DecisionKind::Searched,
                visited: &vec![(0.25, visited as f32); visited],
                unvisited: &[(unvisited, 0.5)],
                evaluation: unvisited as f32,
                played: 0,
            });
        }
        recorder.finish_batch()
    }

    #[test]
    fn a_selection_has_the_columns_of_its_samples() {
        let batch = Batch {
            number: 5,
            positions: 3,
            rows: vec![1, 2, 3, 4, 5, 6],
            visit_counts: vec![2, 0, 1],
            visit_actions: vec![10, 11, 12],
            visits: vec![3, 4, 5],
            results: vec![1.0, 0.0, -1.0],
            root_values: vec![0.1, 0.2, 0.3],
            game_sequences: vec![7, 8, 9],
            plies: vec![0, 1, 2],
            undecided: vec![0, 2],
            decisions: Some(decisions(&[(2, 20), (0, 21), (1, 22)])),
            ..Batch::default()
        };
        assert_eq!(select(&batch, &[0, 1, 2]), batch);
        let expected = Batch {
            number: 5,
            positions: 2,
            rows: vec![1, 2, 5, 6],
            visit_counts: vec![2, 1],
            visit_actions: vec![10, 11, 12],
            visits: vec![3, 4, 5],
            results: vec![1.0, -1.0],
            root_values: vec![0.1, 0.3],
            game_sequences: vec![7, 9],
            plies: vec![0, 2],
            undecided: vec![0, 1],
            decisions: Some(decisions(&[(2, 20), (1, 22)])),
            ..Batch::default()
        };
        assert_eq!(select(&batch, &[0, 2]), expected);
        assert_eq!(select(&batch, &[1, 2]).undecided, [1]);
        let varying = Batch {
            row_lengths: vec![1, 3, 2],
            ..batch
        };
        let middle = select(&varying, &[1]);
        assert_eq!((middle.rows, middle.row_lengths), (vec![2, 3, 4], vec![3]));
    }
}
