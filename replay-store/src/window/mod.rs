//! The window: the games that batches are drawn from, and the offsets of their trainable positions.
//!
//! The size of the window is a number of trainable positions. The oldest game is retired when the newer games alone hold that many,
//! so that a full window never holds fewer positions than its size and exceeds it by less than one game. A game without trainable
//! positions counts as one position; otherwise such games would accumulate without limit.
//!
//! Each game occupies a range of offsets, which begins where the range of the game before it ends. A uniform draw over positions is a
//! number below the window's span, which is looked up by binary search.

pub mod cache;
pub mod catalog;
pub mod held_out;
pub mod sampler;
pub mod uses_bound;

use std::collections::{HashSet, VecDeque};

use crate::window::held_out::PositionCounts;

/// A game in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowGame {
    /// Sequence number.
    pub sequence: u64,
    /// Number of trainable positions; 0 if the game cannot be read.
    pub trainable: u32,
    /// Number of validation positions; above 0 only for a held-out game.
    pub held_out: u32,
    /// Length of the record in bytes.
    pub bytes: u32,
    /// Offset after the last position.
    end: u64,
    span: u32,
}

/// The games that batches are drawn from, oldest first.
#[derive(Debug)]
pub struct Window {
    slots: VecDeque<WindowGame>,
    limit: u64,
    begin: u64,
    positions: u64,
    held_out: u64,
    bytes: u64,
}

impl Window {
    /// Returns an empty window for `limit` trainable positions.
    pub fn new(limit: u64) -> Self {
        Self {
            slots: VecDeque::new(),
            limit,
            begin: 0,
            positions: 0,
            held_out: 0,
            bytes: 0,
        }
    }

    /// Adds the newest game, removes the games that are now too old, and returns the removed games.
    pub fn push(&mut self, sequence: u64, uses: impl Into<PositionCounts>, bytes: u32) -> Vec<WindowGame> {
        let PositionCounts { trainable, held_out } = uses.into();
        let span = trainable.max(1);
        let end = self.end() + u64::from(span);
        self.append(WindowGame {
            sequence,
            trainable,
            held_out,
            bytes,
            end,
            span,
        });
        let mut retired = Vec::new();
        while let Some(oldest) = self.slots.front()
            && end - oldest.end >= self.limit
        {
            self.begin = oldest.end;
            self.positions -= u64::from(oldest.trainable);
            self.held_out -= u64::from(oldest.held_out);
            self.bytes -= u64::from(oldest.bytes);
            retired.extend(self.slots.pop_front());
        }
        retired
    }

    /// Excludes a game from all draws, because it cannot be read. Returns `false` if the game is not in
    /// the window or had no positions left.
    pub fn exclude(&mut self, sequence: u64) -> bool {
        let Ok(at) = self.slots.binary_search_by_key(&sequence, |slot| slot.sequence) else {
            return false;
        };
        match self.slots.get_mut(at) {
            Some(slot) if slot.trainable > 0 || slot.held_out > 0 => {
                self.positions -= u64::from(slot.trainable);
                self.held_out -= u64::from(slot.held_out);
                (slot.trainable, slot.held_out) = (0, 0);
                true
            }
            _ => false,
        }
    }

    /// Removes games and the offsets of their positions. Returns the games that were in the window.
    pub fn delete(&mut self, sequences: &HashSet<u64>) -> Vec<WindowGame> {
        let (gone, kept): (Vec<WindowGame>, Vec<WindowGame>) = std::mem::take(&mut self.slots)
            .into_iter()
            .partition(|slot| sequences.contains(&slot.sequence));
        *self = Self::new(self.limit);
        for mut slot in kept {
            slot.end = self.end() + u64::from(slot.span);
            self.append(slot);
        }
        gone
    }

    fn append(&mut self, slot: WindowGame) {
        self.positions += u64::from(slot.trainable);
        self.held_out += u64::from(slot.held_out);
        self.bytes += u64::from(slot.bytes);
        self.slots.push_back(slot);
    }

    /// Returns the number of trainable positions in the window.
    pub fn positions(&self) -> u64 {
        self.positions
    }

    /// Returns the number of validation positions in the window.
    pub fn held_out(&self) -> u64 {
        self.held_out
    }

    /// Returns the number of games in the window.
    pub fn games(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Returns the total length of the records in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of offsets in the window: [`Window::at`] takes draws below this number.
    pub fn span(&self) -> u64 {
        self.end() - self.begin
    }

    /// Returns the game and the number of its trainable position at a draw below [`Window::span`]. Returns `None` if the game there has no
    /// trainable positions; the caller then draws again.
    pub fn at(&self, draw: u64) -> Option<(WindowGame, u32)> {
        let offset = self.begin + draw;
        let slot = self
            .slots
            .get(self.slots.partition_point(|slot| slot.end <= offset))?;
        let position = offset - (slot.end - u64::from(slot.span));
        (position < u64::from(slot.trainable)).then_some((*slot, position as u32))
    }

    /// Returns the games with sequence numbers from `from` on, oldest first.
    pub fn from(&self, from: u64) -> impl DoubleEndedIterator<Item = &WindowGame> {
        let begin = self.slots.partition_point(|slot| slot.sequence < from);
        self.slots.range(begin..)
    }

    /// True if the game with this sequence number is in the window.
    pub fn holds(&self, sequence: u64) -> bool {
        self.slots
            .binary_search_by_key(&sequence, |slot| slot.sequence)
            .is_ok()
    }

    /// Returns the lowest and the highest sequence number; `None` if the window is empty.
    pub fn range(&self) -> Option<(u64, u64)> {
        Some((self.slots.front()?.sequence, self.slots.back()?.sequence))
    }

    fn end(&self) -> u64 {
        self.slots.back().map_or(self.begin, |slot| slot.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u32),
        PushHeldOut(u32),
        Lose(prop::sample::Index),
        Delete(prop::sample::Index),
    }

    proptest! {
        /// Compares the window with a list of games that is updated by the definition.
        #[test]
        fn window_agrees_with_a_list_of_games(
            limit in 1u64..60,
            steps in prop::collection::vec(
                prop_oneof![
                    8 => (0u32..12).prop_map(Step::Push),
                    2 => (0u32..12).prop_map(Step::PushHeldOut),
                    2 => any::<prop::sample::Index>().prop_map(Step::Lose),
                    1 => any::<prop::sample::Index>().prop_map(Step::Delete),
                ],
                1..80,
            ),
        ) {
            let mut window = Window::new(limit);
            let mut model: Vec<(u64, u32, u32, u32)> = Vec::new(); // sequence, weight, trainable, held out
            let mut next = 1;
            for step in steps {
                match step {
                    Step::Push(_) | Step::PushHeldOut(_) => {
                        let (trainable, held_out) = match step {
                            Step::Push(trainable) => (trainable, 0),
                            Step::PushHeldOut(held_out) => (0, held_out),
                            _ => unreachable!(),
                        };
                        let retired = window.push(next, PositionCounts { trainable, held_out }, 10);
                        model.push((next, trainable.max(1), trainable, held_out));
                        next += 3;
                        let mut gone = Vec::new();
                        while model[1..].iter().map(|game| u64::from(game.1)).sum::<u64>() >= limit {
                            gone.push(model.remove(0).0);
                        }
                        prop_assert_eq!(retired.iter().map(|slot| slot.sequence).collect::<Vec<_>>(), gone);
                    }
                    Step::Lose(which) if !model.is_empty() => {
                        let at = which.index(model.len());
                        let game = &mut model[at];
                        let had = std::mem::take(&mut game.2) + std::mem::take(&mut game.3) > 0;
                        prop_assert_eq!(window.exclude(game.0), had);
                    }
                    Step::Lose(_) => prop_assert!(!window.exclude(1)),
                    Step::Delete(which) if !model.is_empty() => {
                        let game = model.remove(which.index(model.len()));
                        let gone = window.delete(&HashSet::from([game.0, 0]));
                        prop_assert_eq!(gone.iter().map(|slot| slot.sequence).collect::<Vec<_>>(), [game.0]);
                    }
                    Step::Delete(_) => prop_assert!(window.delete(&HashSet::from([1])).is_empty()),
                }
                let mut expected: Vec<(u64, u32)> =
                    model.iter().flat_map(|game| (0..game.2).map(|position| (game.0, position))).collect();
                let mut drawn: Vec<(u64, u32)> =
                    (0..window.span()).filter_map(|draw| window.at(draw)).map(|(slot, position)| (slot.sequence, position)).collect();
                expected.sort_unstable();
                drawn.sort_unstable();
                prop_assert_eq!(&drawn, &expected);
                prop_assert_eq!(window.positions(), expected.len() as u64);
                let held_out: u64 = model.iter().map(|game| u64::from(game.3)).sum();
                prop_assert_eq!(window.held_out(), held_out);
                prop_assert_eq!(window.games(), model.len() as u64);
                prop_assert_eq!(window.bytes(), 10 * model.len() as u64);
                prop_assert_eq!(window.range(), model.first().map(|first| (first.0, model[model.len() - 1].0)));
                for (sequence, ..) in &model {
                    prop_assert!(window.holds(*sequence));
                }
            }
        }
    }

    #[test]
    fn a_full_window_holds_at_least_its_size_and_less_than_one_game_more() {
        let mut window = Window::new(100);
        for sequence in 0..1000 {
            window.push(sequence, 7 + (sequence % 5) as u32, 1);
            if sequence > 20 {
                assert!((100..111).contains(&window.positions()));
            }
        }
        assert_eq!(window.from(995).count(), 5);
        assert_eq!(window.from(0).next_back().unwrap().sequence, 999);
    }
}
