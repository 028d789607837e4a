//! A game in the form that batches are made from: its trainable positions only, in flat arrays.

use bytes::Bytes;
use proto::{
    columns::ColumnError,
    decisions::Recorder,
    v1::{Batch, Game},
};

use crate::record::decisions::KeptDecisions;

/// A column of numbers, which take two bytes each if all of them fit, and otherwise four.
#[derive(Debug)]
pub(super) enum Numbers {
    Narrow(Box<[u16]>),
    Wide(Box<[u32]>),
}

impl Numbers {
    pub(super) fn new(values: Vec<u32>) -> Self {
        let narrow: Result<Box<[u16]>, _> = values.iter().map(|&value| u16::try_from(value)).collect();
        narrow.map_or_else(|_| Self::Wide(values.into()), Self::Narrow)
    }

    pub(super) fn append(&self, from: usize, to: usize, out: &mut Vec<u32>) {
        match self {
            Self::Narrow(values) => out.extend(
                values
                    .get(from..to)
                    .unwrap_or_default()
                    .iter()
                    .map(|&value| u32::from(value)),
            ),
            Self::Wide(values) => out.extend_from_slice(values.get(from..to).unwrap_or_default()),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Narrow(values) => 2 * values.len(),
            Self::Wide(values) => 4 * values.len(),
        }
    }
}

/// One trainable position.
#[derive(Clone, Copy, Debug)]
struct Position {
    row_end: u32,
    visits_end: u32,
    /// Result of the game; the root value if it has none.
    result: f32,
    /// Root value.
    value: f32,
    /// Number of the position in the game.
    ply: u32,
    /// True if the second player is to act.
    is_second: bool,
}

/// Begin and end of a position's entries in a column.
type Span = (usize, usize);

/// The trainable positions of a game, with values from the point of view of the player to act.
#[derive(Debug)]
pub struct Decoded {
    positions: Box<[Position]>,
    rows: Numbers,
    visit_actions: Numbers,
    visits: Numbers,
    varying_rows: bool,
    /// True if the game has no result.
    is_undecided: bool,
    /// Search results, if they are recorded.
    decisions: Option<KeptDecisions>,
    /// Owner of each square at the end, and the score, as the record has them. Empty if nobody owns squares.
    territory: (Bytes, f32),
}

impl Decoded {
    /// Extracts the trainable positions of a game.
    ///
    /// # Errors
    /// [`ColumnError`] if the lengths of the game's columns do not add up.
    pub fn new(game: &Game) -> Result<Self, ColumnError> {
        let mut positions = Vec::new();
        let mut rows = Vec::new();
        let mut visit_actions = Vec::new();
        let mut visits = Vec::new();
        let discount = if game.discount > 0.0 { game.discount } else { 1.0 };
        let is_undecided = game.is_undecided();
        for (ply, (row, (own_actions, own_visits))) in
            game.row_columns()?.zip(game.policy_columns()?).enumerate()
        {
            if own_actions.is_empty() {
                continue;
            }
            rows.extend_from_slice(row);
            visit_actions.extend_from_slice(own_actions);
            visits.extend_from_slice(own_visits);
            let value = game.root_values.get(ply).copied().unwrap_or_default();
            let is_second = game.movers.get(ply) == Some(&1);
            let sign = if is_second { -1.0 } else { 1.0 };
            let left = (game.actions.len() as u32)
                .saturating_sub(ply as u32)
                .cast_signed();
            positions.push(Position {
                row_end: rows.len() as u32,
                visits_end: visits.len() as u32,
                result: match is_undecided {
                    true => value,
                    false => sign * game.score * discount.powi(left),
                },
                value,
                ply: ply as u32,
                is_second,
            });
        }
        let decisions = game.decision_columns()?.map(|found| {
            let is_trainable = |ply: usize| game.visit_counts.get(ply).is_some_and(|&count| count > 0);
            let found = found.enumerate().filter(|&(ply, _)| is_trainable(ply));
            KeptDecisions::new(found.map(|(_, decision)| decision))
        });
        Ok(Self {
            positions: positions.into(),
            rows: Numbers::new(rows),
            visit_actions: Numbers::new(visit_actions),
            visits: Numbers::new(visits),
            varying_rows: !game.row_lengths.is_empty(),
            is_undecided,
            decisions,
            territory: (game.territory.clone(), game.territory_score),
        })
    }

    /// Returns the number of trainable positions.
    pub fn positions(&self) -> u32 {
        self.positions.len() as u32
    }

    /// Returns the memory that the game takes, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.positions)
            + self.rows.bytes()
            + self.visit_actions.bytes()
            + self.visits.bytes()
            + self.decisions.as_ref().map_or(0, KeptDecisions::bytes)
            + self.territory.0.len()
    }

    /// Returns the numbers of row values and of visit entries of a position, so that space can be reserved.
    pub fn sizes(&self, position: u32) -> (usize, usize) {
        self.spans(position)
            .map_or((0, 0), |(_, row, visits)| (row.1 - row.0, visits.1 - visits.0))
    }

    /// Appends a position to a batch. Returns false if there is no such position.
    #[must_use]
    pub fn append(&self, position: u32, sequence: u64, batch: &mut Batch) -> bool {
        let Some((found, row, visits)) = self.spans(position) else {
            return false;
        };
        self.rows.append(row.0, row.1, &mut batch.rows);
        if self.varying_rows {
            batch.row_lengths.push((row.1 - row.0) as u32);
        }
        batch.visit_counts.push((visits.1 - visits.0) as u32);
        self.visit_actions
            .append(visits.0, visits.1, &mut batch.visit_actions);
        self.visits.append(visits.0, visits.1, &mut batch.visits);
        if self.is_undecided {
            batch.undecided.push(batch.results.len() as u32);
        }
        batch.results.push(found.result);
        batch.root_values.push(found.value);
        batch.game_sequences.push(sequence);
        batch.plies.push(found.ply);
        true
    }

    /// Appends the search results of a position to those of a batch. Returns false if there is no such position.
    #[must_use]
    pub fn append_decision(&self, position: u32, recorder: &mut Recorder) -> bool {
        let Some((_, _, visits)) = self.spans(position) else {
            return false;
        };
        match &self.decisions {
            Some(kept) => kept.append(position as usize, visits, recorder),
            None => {
                recorder.push_unrecorded(visits.1 - visits.0);
                true
            }
        }
    }

    /// Appends the game's territory, if there is one, to those of a batch to which the position was appended last. `owners` becomes
    /// [`Batch::territories`].
    pub fn append_territory(&self, position: u32, batch: &mut Batch, owners: &mut Vec<u8>) {
        let (own, score) = &self.territory;
        let (false, Some(found)) = (own.is_empty(), self.positions.get(position as usize)) else {
            return;
        };
        let place = batch.results.len().saturating_sub(1);
        batch.territory_positions.push(place as u32);
        match found.is_second {
            false => owners.extend_from_slice(own),
            true => owners.extend(own.iter().map(|owner| owner.wrapping_neg())),
        }
        batch
            .territory_scores
            .push(if found.is_second { -score } else { *score });
    }

    fn spans(&self, position: u32) -> Option<(&Position, Span, Span)> {
        let at = position as usize;
        let found = self.positions.get(at)?;
        let (row, visits) = match at.checked_sub(1).and_then(|before| self.positions.get(before)) {
            Some(before) => (before.row_end, before.visits_end),
            None => (0, 0),
        };
        Some((
            found,
            (row as usize, found.row_end as usize),
            (visits as usize, found.visits_end as usize),
        ))
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::synthetic;

    #[test]
    fn positions_are_the_games_own_and_values_the_movers() {
        let mut game = synthetic::game(3, 30);
        (game.result, game.score, game.ending) = (1, 1.0, "paco".into());
        // The third position was not searched fully.
        let before: u32 = game.visit_counts[..2].iter().sum();
        let dropped = before as usize..(before + game.visit_counts[2]) as usize;
        game.visit_actions.drain(dropped.clone());
        game.visits.drain(dropped);
        game.visit_counts[2] = 0;

        let decoded = Decoded::new(&game).unwrap();
        assert_eq!(decoded.positions(), 29);
        let mut batch = Batch::default();
        for position in 0..29 {
            let (rows, visits) = decoded.sizes(position);
            let before = (batch.rows.len(), batch.visits.len());
            assert!(decoded.append(position, 77, &mut batch));
            assert_eq!(
                (batch.rows.len(), batch.visits.len()),
                (before.0 + rows, before.1 + visits)
            );
        }
        assert!(!decoded.append(29, 77, &mut batch));
        let plies: Vec<u32> = (0..30).filter(|&ply| ply != 2).collect();
        assert_eq!(batch.plies, plies);
        assert_eq!(batch.game_sequences, vec![77; 29]);
        let rows: Vec<u32> = plies
            .iter()
            .flat_map(|&ply| game.rows[ply as usize * 38..][..38].to_vec())
            .collect();
        assert_eq!(batch.rows, rows);
        assert_eq!(batch.visit_actions, game.visit_actions);
        assert_eq!(batch.visits, game.visits);
        for (at, &ply) in plies.iter().enumerate() {
            let sign = if game.movers[ply as usize] == 0 { 1.0 } else { -1.0 };
            assert_eq!(batch.results[at], sign);
            assert_eq!(batch.root_values[at], game.root_values[ply as usize]);
        }
    }

    /// Returns random columns for some plies of a game: the player who acts, and visits at the trainable positions.
    fn scattered(number: u64, plies: usize) -> Game {
        let mut random = ChaCha8Rng::seed_from_u64(number);
        let mut game = synthetic::game(number, plies);
        game.movers = (0..plies).map(|_| u8::from(random.random_bool(0.4))).collect();
        let (mut actions, mut visits) = (Vec::new(), Vec::new());
        let mut at = 0;
        for count in &mut game.visit_counts {
            let own = at..at + *count as usize;
            at = own.end;
            if random.random_bool(0.3) {
                *count = 0;
            } else {
                actions.extend_from_slice(&game.visit_actions[own.clone()]);
                visits.extend_from_slice(&game.visits[own]);
            }
        }
        (game.visit_actions, game.visits) = (actions, visits);
        game
    }

    #[test]
    fn search_results_are_those_of_the_trainable_positions() {
        let mut game = scattered(5, 40);
        game = synthetic::with_decisions(game);
        let kept: Vec<usize> = (0..40).filter(|&ply| game.visit_counts[ply] > 0).collect();
        assert!(kept.len() < 40);
        let all: Vec<_> = game.decision_columns().unwrap().unwrap().collect();
        let mut expected = Recorder::default();
        kept.iter().for_each(|&ply| expected.copy(&all[ply]));
        let found = |game: &Game| {
            let decoded = Decoded::new(game).unwrap();
            let mut recorder = Recorder::default();
            for position in 0..decoded.positions() {
                assert!(decoded.append_decision(position, &mut recorder));
            }
            assert!(!decoded.append_decision(decoded.positions(), &mut recorder));
            recorder.finish_batch()
        };
        assert_eq!(found(&game), expected.finish_batch());
        // A record of an earlier release has no search results at any position.
        game.decisions = None;
        let nothing = found(&game);
        assert!(nothing.kinds.iter().all(|&kind| kind == 0) && nothing.unvisited_actions.is_empty());
        assert_eq!(nothing.values.len(), 2 * game.visits.len());
    }

    #[test]
    fn positions_of_a_game_that_was_cut_have_their_root_values() {
        let mut game = synthetic::game(3, 4);
        (game.result, game.score, game.ending) = (3, 0.0, "repetition".into());
        let batch = |game: &Game| {
            let decoded = Decoded::new(game).unwrap();
            let mut batch = Batch::default();
            (0..4).for_each(|position| assert!(decoded.append(position, 1, &mut batch)));
            batch
        };
        let drawn = batch(&game);
        assert_eq!((drawn.results, drawn.undecided), (vec![0.0; 4], vec![]));
        game.ending = "max-actions".into();
        let cut = batch(&game);
        assert_eq!(
            (cut.results, cut.undecided),
            (game.root_values.clone(), vec![0, 1, 2, 3])
        );
        // A problem that is not solved within the limit has a result.
        game.result = 4;
        assert!(batch(&game).undecided.is_empty());
    }

    #[test]
    fn territories_are_those_of_the_player_to_act() {
        let mut game = synthetic::game(3, 4);
        game.movers = vec![0, 0, 1, 0].into();
        let batch = |game: &Game| {
            let decoded = Decoded::new(game).unwrap();
            let (mut batch, mut owners) = (Batch::default(), Vec::new());
            for position in [0, 2] {
                assert!(decoded.append(position, 1, &mut batch));
                decoded.append_territory(position, &mut batch, &mut owners);
            }
            (batch, owners)
        };
        let (nobody_owns, owners) = batch(&game);
        assert!(nobody_owns.territory_positions.is_empty() && owners.is_empty());
        (game.territory, game.territory_score) = (vec![1, 255, 0].into(), -7.5);
        let (owned, owners) = batch(&game);
        assert_eq!(owned.territory_positions, [0, 1]);
        assert_eq!(owned.territory_scores, [-7.5, 7.5]);
        assert_eq!(owners, [1, 255, 0, 255, 1, 0]);
    }

    #[test]
    fn wide_values_and_varying_rows_come_through() {
        let mut game = synthetic::game(3, 2);
        game.rows = vec![1_000_000, 2, 3];
        game.row_lengths = vec![1, 2];
        let decoded = Decoded::new(&game).unwrap();
        let mut batch = Batch::default();
        assert!(decoded.append(1, 5, &mut batch) && decoded.append(0, 5, &mut batch));
        assert_eq!(batch.rows, [2, 3, 1_000_000]);
        assert_eq!(batch.row_lengths, [2, 1]);
    }
}
