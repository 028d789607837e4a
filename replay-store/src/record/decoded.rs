//! A game in the form that batches are made from: its trainable positions only, in flat arrays.

use proto::{
    columns::ColumnError,
    decisions::Recorder,
    targets::Target,
    v1::{Batch, Game, GameResult, TargetColumn},
};

use crate::record::{
    blunders::Judgement,
    decisions::Kept,
    values::{self, End, Step},
};

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
    /// Contribution of the position to a mixture of root values.
    step: Step,
    /// Judgement of the search about the action that was played.
    judgement: Judgement,
    /// Index of the trainable position in which the other player replied; 0 if there is none. The position with index 0 is never a reply.
    reply: u32,
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
    end: End,
    /// Search results, if they are recorded.
    decisions: Option<Kept>,
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
        let end = End {
            plies: game.actions.len() as u32,
            score: (!game.is_undecided()).then_some(game.score),
            discount: if game.discount > 0.0 { game.discount } else { 1.0 },
        };
        let players = if game.result() == GameResult::Scored { 1 } else { 2 };
        let turns = values::turns(&game.movers, players);
        let recorded = game.decision_columns()?;
        let mut judged = recorded.clone();
        for (ply, (row, (own_actions, own_visits))) in
            game.row_columns()?.zip(game.policy_columns()?).enumerate()
        {
            let decision = judged.as_mut().and_then(Iterator::next);
            if own_actions.is_empty() {
                continue;
            }
            rows.extend_from_slice(row);
            visit_actions.extend_from_slice(own_actions);
            visits.extend_from_slice(own_visits);
            let is_second = game.movers.get(ply) == Some(&1);
            let value = game.root_values.get(ply).copied().unwrap_or_default();
            let step = Step {
                ply: ply as u32,
                mover: u8::from(is_second),
                turn: turns.get(ply).copied().unwrap_or(1),
                value,
            };
            positions.push(Position {
                row_end: rows.len() as u32,
                visits_end: visits.len() as u32,
                result: end.seen_from(&step).unwrap_or(value),
                step,
                judgement: decision.map_or(Judgement::NONE, |decision| {
                    Judgement::of(&decision, own_visits, players == 2)
                }),
                reply: 0,
            });
        }
        let decisions = recorded.map(|found| {
            let is_trainable = |ply: usize| game.visit_counts.get(ply).is_some_and(|&count| count > 0);
            let found = found.enumerate().filter(|&(ply, _)| is_trainable(ply));
            Kept::new(found.map(|(_, decision)| decision))
        });
        find_replies(game, &mut positions);
        Ok(Self {
            positions: positions.into(),
            rows: Numbers::new(rows),
            visit_actions: Numbers::new(visit_actions),
            visits: Numbers::new(visits),
            varying_rows: !game.row_lengths.is_empty(),
            end,
            decisions,
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
            + self.decisions.as_ref().map_or(0, Kept::bytes)
    }

    /// Returns the numbers of row values and of visit entries of a position, so that space can be reserved.
    pub fn sizes(&self, position: u32) -> (usize, usize) {
        self.spans(position)
            .map_or((0, 0), |(_, row, visits)| (row.1 - row.0, visits.1 - visits.0))
    }

    /// Returns the first mistake or proof ([`super::blunders`]) from a position on, by this threshold: the index of its position, and the
    /// end of the game that it stands for.
    fn mistake_from(&self, position: u32, threshold: Option<f32>) -> Option<(usize, End)> {
        let threshold = threshold?;
        let later = self.positions.get(position as usize..)?;
        let after = later.iter().position(|found| found.judgement.loss > threshold)?;
        let Position { step, judgement, .. } = later.get(after)?;
        let sign = if step.mover == 1 { -1.0 } else { 1.0 };
        let end = End {
            plies: step.ply,
            score: Some(sign * judgement.best),
            ..self.end
        };
        Some((position as usize + after, end))
    }

    /// Appends a position to a batch, with a result that is repaired by the threshold, if there is one. Returns false if there is no such
    /// position.
    #[must_use]
    pub fn append(&self, position: u32, sequence: u64, threshold: Option<f32>, batch: &mut Batch) -> bool {
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
        let mistake = self.mistake_from(position, threshold);
        if self.end.score.is_none() || mistake.is_some() {
            batch.undecided.push(batch.results.len() as u32);
        }
        let repaired = mistake.and_then(|(_, end)| end.seen_from(&found.step));
        batch.results.push(repaired.unwrap_or(found.result));
        batch.root_values.push(found.step.value);
        batch.game_sequences.push(sequence);
        batch.plies.push(found.step.ply);
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

    /// Appends the mixture of a position's result with later root values ([`values`]) to a batch. The result is repaired by the threshold,
    /// if there is one. Returns false if there is no such position.
    #[must_use]
    pub fn append_future(
        &self,
        position: u32,
        horizon: f32,
        threshold: Option<f32>,
        batch: &mut Batch,
    ) -> bool {
        let Some(later) = self
            .positions
            .get(position as usize..)
            .filter(|later| !later.is_empty())
        else {
            return false;
        };
        let (later, end) = match self.mistake_from(position, threshold) {
            Some((last, end)) => (&later[..=last - position as usize], end),
            None => (later, self.end),
        };
        let [win, loss] = values::future(later.iter().map(|found| found.step), end, horizon);
        batch.future_wins.push(win);
        batch.future_losses.push(loss);
        true
    }

    /// Appends the targets of auxiliary heads in a position: the visits of the other player's reply, and the number of actions that are
    /// left. Returns false if there is no such position.
    #[must_use]
    pub fn append_auxiliary(&self, position: u32, batch: &mut Batch) -> bool {
        let Some(found) = self.positions.get(position as usize) else {
            return false;
        };
        let reply = match found.reply {
            0 => None,
            reply => self.spans(reply),
        };
        let (from, to) = reply.map_or((0, 0), |(_, _, visits)| visits);
        batch.reply_counts.push((to - from) as u32);
        self.visit_actions.append(from, to, &mut batch.reply_actions);
        self.visits.append(from, to, &mut batch.reply_visits);
        batch.moves_left.push(self.actions_left(found));
        true
    }

    /// Appends the targets of a position to their columns, which are parallel to `targets`. Returns false if there is no such position.
    #[must_use]
    pub fn append_targets(&self, position: u32, targets: &[Target], columns: &mut [TargetColumn]) -> bool {
        let Some(found) = self.positions.get(position as usize) else {
            return false;
        };
        for (target, column) in targets.iter().zip(columns) {
            match target {
                Target::OpponentPolicy => {
                    let reply = (found.reply > 0).then(|| self.spans(found.reply)).flatten();
                    let (from, to) = reply.map_or((0, 0), |(_, _, visits)| visits);
                    column.counts.push((to - from) as u32);
                    self.visit_actions.append(from, to, &mut column.actions);
                    self.visits.append(from, to, &mut column.visits);
                }
                Target::MovesLeft => column.numbers.push(self.actions_left(found) as f32),
                // No store sends it.
                Target::SoftPolicy => {}
            }
        }
        true
    }

    fn actions_left(&self, position: &Position) -> u32 {
        self.end.plies.saturating_sub(position.step.ply)
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

/// Finds the reply to each position: the first later position in which the other player acts. If that position is not trainable, there is
/// no reply, because later positions answer other actions.
fn find_replies(game: &Game, positions: &mut [Position]) {
    let mut left = positions.len();
    let mut reply = 0;
    // Properties of the ply after the present one: the player who acts, and the index of its trainable position (0: it is not trainable).
    // The position with index 0 has no trainable position before it, so it cannot be a reply.
    let mut after: Option<(u8, u32)> = None;
    for (ply, &mover) in game.movers.iter().enumerate().rev() {
        if let Some((other, number)) = after
            && other != mover
        {
            reply = number;
        }
        let target = left.checked_sub(1).and_then(|at| positions.get_mut(at));
        let mut number = 0;
        if let Some(position) = target.filter(|position| position.step.ply as usize == ply) {
            position.reply = reply;
            left -= 1;
            number = left as u32;
        }
        after = Some((mover, number));
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
        (game.result, game.score) = (1, 1.0);
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
            assert!(decoded.append(position, 77, None, &mut batch));
            assert_eq!(
                (batch.rows.len(), batch.visits.len()),
                (before.0 + rows, before.1 + visits)
            );
        }
        assert!(!decoded.append(29, 77, None, &mut batch));
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

    /// The expected replies are found by walking forward from every position, ply by ply.
    #[test]
    fn replies_are_the_other_players_next_position() {
        let (mut replied, mut alone) = (0, 0);
        for number in 0..200 {
            let plies = 1 + number as usize % 30;
            let game = scattered(number, plies);
            let ends: Vec<usize> = game
                .visit_counts
                .iter()
                .scan(0, |end, &count| {
                    *end += count as usize;
                    Some(*end)
                })
                .collect();
            let decoded = Decoded::new(&game).unwrap();
            let (mut batch, mut expected) = (Batch::default(), Batch::default());
            let targets = (0..plies).filter(|&ply| game.visit_counts[ply] > 0);
            for (position, ply) in targets.enumerate() {
                assert!(decoded.append_auxiliary(position as u32, &mut batch));
                let reply = (ply + 1..plies).find(|&later| game.movers[later] != game.movers[ply]);
                let count = reply.map_or(0, |reply| game.visit_counts[reply]);
                let end = reply.map_or(0, |reply| ends[reply]);
                let own = end - count as usize..end;
                expected.reply_counts.push(count);
                expected
                    .reply_actions
                    .extend_from_slice(&game.visit_actions[own.clone()]);
                expected.reply_visits.extend_from_slice(&game.visits[own]);
                expected.moves_left.push((plies - ply) as u32);
                *(if count > 0 { &mut replied } else { &mut alone }) += 1;
            }
            assert_eq!(batch, expected, "game {number}");
            let mut columns = vec![TargetColumn::default(); 2];
            for position in 0..decoded.positions() {
                assert!(decoded.append_targets(position, &Target::ALL, &mut columns));
            }
            let [replies, left] = &columns[..] else { panic!() };
            assert_eq!(
                (&replies.counts, &replies.actions, &replies.visits),
                (&batch.reply_counts, &batch.reply_actions, &batch.reply_visits)
            );
            let counted: Vec<f32> = batch.moves_left.iter().map(|&left| left as f32).collect();
            assert_eq!(left.numbers, counted);
            assert!(!decoded.append_auxiliary(decoded.positions(), &mut batch));
        }
        assert!(replied > 500 && alone > 500, "{replied}, {alone}");
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

    /// The games have runs of one player's actions, and positions that were not searched. The expected values follow the rule of
    /// [`values`].
    #[test]
    fn mixed_values_are_computed_over_the_searched_positions() {
        let mut game = scattered(9, 40);
        (game.result, game.score) = (2, -1.0);
        let turns = values::turns(&game.movers, 2);
        let step = |ply: usize| Step {
            ply: ply as u32,
            mover: game.movers[ply],
            turn: turns[ply],
            value: game.root_values[ply],
        };
        let searched: Vec<usize> = (0..40).filter(|&ply| game.visit_counts[ply] > 0).collect();
        let cut = Game {
            ending: "max-actions".into(),
            result: 3,
            score: 0.0,
            ..game.clone()
        };
        for (game, score) in [(&game, Some(-1.0)), (&cut, None)] {
            let decoded = Decoded::new(game).unwrap();
            let end = End {
                plies: 40,
                score,
                discount: 1.0,
            };
            let mut batch = Batch::default();
            for at in 0..searched.len() {
                assert!(decoded.append_future(at as u32, 6.0, None, &mut batch));
                let [win, loss] = values::future(searched[at..].iter().map(|&ply| step(ply)), end, 6.0);
                assert_eq!((batch.future_wins[at], batch.future_losses[at]), (win, loss));
            }
            assert!(!decoded.append_future(searched.len() as u32, 6.0, None, &mut batch));
        }
    }

    /// The expected targets are computed in one walk from the end of the game to its beginning, in the first player's view.
    #[test]
    fn a_mistake_gives_all_positions_before_it_the_value_of_the_best_action() {
        const THRESHOLD: f32 = 0.75;
        const HORIZON: f64 = 6.0;
        let (mut repaired, mut kept) = (0, 0);
        for number in 0..60 {
            let mut game = synthetic::with_decisions(scattered(number, 1 + number as usize % 40));
            let (result, score, ending) =
                [(1, 1.0, "paco"), (2, -1.0, "paco"), (3, 0.0, "max-actions")][number as usize % 3];
            (game.result, game.score, game.ending) = (result, score, ending.into());
            let turns = values::turns(&game.movers, 2);
            let decisions: Vec<_> = game.decision_columns().unwrap().unwrap().collect();
            let visits: Vec<_> = game.policy_columns().unwrap().map(|(_, visits)| visits).collect();
            // Result and mixture, in the first player's view; `None` while nothing is known.
            let mut ended = (!game.is_undecided()).then_some(score);
            let mut mixed = ended.map(f64::from);
            let (mut expected, mut is_repaired) = (Vec::new(), false);
            for ply in (0..game.actions.len())
                .rev()
                .filter(|&ply| game.visit_counts[ply] > 0)
            {
                let sign = if game.movers[ply] == 0 { 1.0 } else { -1.0 };
                let values: Vec<f32> = decisions[ply].values.iter().collect();
                let mut order: Vec<usize> = (0..values.len()).collect();
                order.sort_by(|&a, &b| {
                    (visits[ply][b], values[b])
                        .partial_cmp(&(visits[ply][a], values[a]))
                        .unwrap()
                });
                let best = values[order[0]];
                let is_mistake = decisions[ply].is_searched()
                    && best - values[decisions[ply].played.unwrap() as usize] > THRESHOLD;
                if is_mistake || decisions[ply].kind == 2 {
                    (ended, mixed) = (Some(sign * best), Some(f64::from(sign * best)));
                    is_repaired = true;
                }
                let own = sign * game.root_values[ply];
                let decay = (1.0 - 1.0 / HORIZON).powf(1.0 / f64::from(turns[ply]));
                let mixture = mixed.map_or(f64::from(own), |later| {
                    (1.0 - decay) * f64::from(own) + decay * later
                });
                mixed = Some(mixture);
                let is_marked = is_repaired || game.is_undecided();
                expected.push((sign * ended.unwrap_or(own), f64::from(sign) * mixture, is_marked));
                *(if is_repaired { &mut repaired } else { &mut kept }) += 1;
            }
            expected.reverse();
            let decoded = Decoded::new(&game).unwrap();
            for (position, &(result, mixture, is_marked)) in expected.iter().enumerate() {
                let mut batch = Batch::default();
                assert!(decoded.append(position as u32, 1, Some(THRESHOLD), &mut batch));
                assert_eq!(
                    (batch.results[0], batch.undecided == [0]),
                    (result, is_marked),
                    "game {number}"
                );
                assert!(decoded.append_future(position as u32, HORIZON as f32, Some(THRESHOLD), &mut batch));
                let found = f64::from(batch.future_wins[0]) - f64::from(batch.future_losses[0]);
                assert!(
                    (found - mixture).abs() < 1e-5,
                    "game {number}: {found}, {mixture} expected"
                );
            }
            assert_eq!(decoded.positions() as usize, expected.len());
        }
        assert!(repaired > 200 && kept > 40, "{repaired}, {kept}");
    }

    #[test]
    fn positions_of_a_game_that_was_cut_have_their_root_values() {
        let mut game = synthetic::game(3, 4);
        (game.result, game.score) = (3, 0.0);
        let batch = |game: &Game| {
            let decoded = Decoded::new(game).unwrap();
            let mut batch = Batch::default();
            (0..4).for_each(|position| assert!(decoded.append(position, 1, None, &mut batch)));
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
    fn wide_values_and_varying_rows_come_through() {
        let mut game = synthetic::game(3, 2);
        game.rows = vec![1_000_000, 2, 3];
        game.row_lengths = vec![1, 2];
        let decoded = Decoded::new(&game).unwrap();
        let mut batch = Batch::default();
        assert!(decoded.append(1, 5, None, &mut batch) && decoded.append(0, 5, None, &mut batch));
        assert_eq!(batch.rows, [2, 3, 1_000_000]);
        assert_eq!(batch.row_lengths, [2, 1]);
    }
}
