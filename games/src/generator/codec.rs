//! Representation of clans: rows of different lengths, which expand to the arrays of the fish-eye network.
//!
//! The network gives logits for each imp, `[imps, moves]`. The softmax of a position is taken over the moves that the kinds
//! and roles of its imps allow, which follow from the row. The legal actions of self-play are among them.

use std::{borrow::Cow, ops::RangeInclusive};

use serde::{Deserialize, Serialize};

use super::{
    clan::Clan,
    expansion::{Expander as ClanExpander, GRIDS},
    grammar::{MAX_DEPTH, MAX_IMPS, ROLES, VALUES},
    grid::{CELLS, SYMBOLS},
    moves::MOVES,
    problem::{Example, MAX_EXAMPLES},
    row::{self, ClanPosition},
};
use crate::{
    StartError,
    codec::{Candidates, Codec, Expander, Input, PolicyHead, RowError},
    generator::GeneratorGame,
};

/// Representation of the generator game, by its options in a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Options 0: positions without examples.
    #[default]
    Plain,
    /// Options 1: positions with or without examples.
    Examples,
}

impl Encoding {
    /// Returns the representation with these options.
    ///
    /// # Errors
    /// [`StartError`] for options above 1.
    pub fn new(options: u32) -> Result<Self, StartError> {
        match options {
            0 => Ok(Self::Plain),
            1 => Ok(Self::Examples),
            _ => Err(StartError::of::<GeneratorGame>(format!(
                "the representation options must be 0, or 1 for examples, not {options}"
            ))),
        }
    }

    /// Returns the options, 0 or 1.
    pub const fn options(self) -> u32 {
        self as u32
    }
}

/// Limits of rows that hold clans. A model's metadata has their numbers. [`Encoding`] lists the two representations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClanRows {
    /// Most imps of a clan.
    pub imps: u32,
    /// Most edges between the root and an imp.
    pub depth: u32,
    /// Number of one-hot values of an imp, "not present" included.
    pub values: u32,
    /// Number of rows of a role matrix.
    pub roles: u32,
    /// Number of moves of each imp.
    pub moves: u32,
    /// Number of symbols of a cell, "absent" included.
    pub symbols: u32,
    /// Most examples of a position. Written only if there can be some, because older programs refuse unknown fields.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub examples: u32,
}

const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl ClanRows {
    /// Returns the limits of a representation.
    pub(super) const fn of(encoding: Encoding) -> Self {
        Self {
            imps: MAX_IMPS as u32,
            depth: MAX_DEPTH as u32,
            values: VALUES as u32,
            roles: ROLES as u32,
            moves: MOVES as u32,
            symbols: SYMBOLS as u32,
            examples: match encoding {
                Encoding::Plain => 0,
                Encoding::Examples => MAX_EXAMPLES as u32,
            },
        }
    }

    /// Reads a row.
    fn read(&self, row: &[u32]) -> Result<ClanPosition, RowError> {
        let position = ClanPosition::read(row)?;
        if position.examples.len() > self.examples as usize {
            return Err(RowError::new(format!(
                "a row with {} examples, but this representation holds at most {}",
                position.examples.len(),
                self.examples
            )));
        }
        Ok(position)
    }
}

impl Codec for ClanRows {
    fn row_lengths(&self) -> RangeInclusive<usize> {
        row::LENGTHS.0..=row::LENGTHS.1 + self.examples as usize * Example::PACKED
    }

    fn first_row_len(&self, rows: &[u32]) -> usize {
        row::first_length(rows).unwrap_or_default()
    }

    /// Returns the number of moves of all imps of the clan.
    fn actions_in(&self, row: &[u32], actions: u32) -> u32 {
        let imps = row.first().copied().unwrap_or_default();
        self.moves.saturating_mul(imps).min(actions)
    }

    /// Returns the lowest value: 0, because the game has one player and no losses.
    fn lowest_value(&self) -> f32 {
        0.0
    }

    fn check(&self, actions: u32, head: PolicyHead) -> Result<(), RowError> {
        let fault = |text: String| Err(RowError::of_layout(text));
        let known = [Encoding::Plain, Encoding::Examples].map(Self::of);
        if !known.contains(self) {
            return fault(format!("{self:?}; this build supports {known:?}"));
        }
        if self.imps * self.moves != actions {
            return fault(format!(
                "{actions} actions, but {} moves of {} imps",
                self.moves, self.imps
            ));
        }
        if head != PolicyHead::PerPart {
            return fault("rows of clans need a policy head for each part".into());
        }
        Ok(())
    }

    fn validate(&self, row: &[u32]) -> Result<(), RowError> {
        self.read(row).map(|_| ())
    }

    fn is_pair(&self, row: &[u32]) -> bool {
        row::is_pair(row)
    }

    fn expander(&self) -> Box<dyn Expander> {
        Box::new(Expansion {
            rows: self.clone(),
            expander: ClanExpander::default(),
            roots: Vec::new(),
            last: None,
        })
    }
}

/// A batch of clans.
#[derive(Debug)]
struct Expansion {
    rows: ClanRows,
    expander: ClanExpander,
    /// First imp of each position.
    roots: Vec<usize>,
    /// Clan of the position added last.
    last: Option<Clan>,
}

impl Expander for Expansion {
    fn clear(&mut self) {
        self.expander.clear();
        self.roots.clear();
        self.last = None;
    }

    fn push(&mut self, row: &[u32]) -> Result<(), RowError> {
        let position = self.rows.read(row)?;
        self.roots.push(self.expander.imps());
        self.expander.push(&position);
        self.last = Some(position.clan);
        Ok(())
    }

    fn inputs(&mut self) -> Vec<Input<'_>> {
        let arrays = self.expander.finish();
        let input = |name, inner, numbers| Input { name, inner, numbers };
        let mut inputs = vec![
            input("roles", &[ROLES], arrays.roles.as_slice()),
            input("levels", &[], &arrays.levels),
            input("ancestors", &[MAX_DEPTH], &arrays.ancestors),
            input("sept", &[], &arrays.sept),
            input("parent", &[], &arrays.parent),
            input("path", &[MAX_DEPTH], &arrays.path),
            input("position", &[], &arrays.position),
            input("view", &[], &arrays.view),
            input("root", &[], &arrays.root),
            input("grids", &[GRIDS, CELLS], &arrays.grids),
            input("flags", &[1], &arrays.flags),
            input("views", &[CELLS], &arrays.views),
        ];
        if self.rows.examples > 0 {
            inputs.push(input("examples", &[2, CELLS], &arrays.examples));
            inputs.push(input("examples_of", &[MAX_EXAMPLES], &arrays.examples_of));
        }
        inputs
    }

    fn candidates(&self) -> Option<Candidates> {
        let clan = self.last.as_ref()?;
        let first = self.roots.last().copied().unwrap_or_default() * MOVES;
        let mut candidates = Candidates::default();
        for imp in 0..clan.len() {
            let mut moves = clan.mask(imp);
            while moves != 0 {
                let entry = imp * MOVES + moves.trailing_zeros() as usize;
                candidates.entries.push(entry as u32);
                candidates.logits.push(first + entry);
                moves &= moves - 1;
            }
        }
        Some(candidates)
    }

    fn logit_count(&self, _actions: usize) -> usize {
        self.expander.imps() * MOVES
    }

    fn dense_logits<'a>(&self, logits: &'a [f32], actions: usize) -> Cow<'a, [f32]> {
        let mut dense = vec![f32::MIN; self.roots.len() * actions];
        let ends = self.roots.iter().skip(1).map(|&root| root * MOVES);
        let positions = dense.chunks_mut(actions.max(1));
        for ((position, &root), end) in positions.zip(&self.roots).zip(ends.chain([logits.len()])) {
            let own = logits.get(root * MOVES..end).unwrap_or_default();
            let own = &own[..own.len().min(position.len())];
            position[..own.len()].copy_from_slice(own);
        }
        Cow::Owned(dense)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Game as _, Symmetry};

    #[test]
    fn logits_of_imps_become_logits_of_actions() {
        let mut state = GeneratorGame::start(&Default::default(), None).unwrap();
        let mut rows = [Vec::new(), Vec::new()];
        state.write_row(Encoding::Plain, Symmetry::IDENTITY, &mut rows[0]);
        state
            .play(GeneratorGame::action(0, crate::generator::Move(2)))
            .unwrap();
        state.write_row(Encoding::Plain, Symmetry::IDENTITY, &mut rows[1]);

        let mut expander = ClanRows::of(Encoding::Plain).expander();
        let mut candidates = Vec::new();
        for row in &rows {
            expander.push(row).unwrap();
            candidates.push(expander.candidates().unwrap());
        }
        let actions = state.actions() as usize;
        let logits: Vec<f32> = (0..expander.logit_count(actions))
            .map(|logit| logit as f32)
            .collect();
        let dense = expander.dense_logits(&logits, actions);
        assert_eq!(dense.len(), 2 * actions);
        for (position, candidates) in candidates.iter().enumerate() {
            assert!(!candidates.entries.is_empty() && candidates.entries.is_sorted());
            for (place, (&entry, &logit)) in candidates.entries.iter().zip(&candidates.logits).enumerate() {
                assert_eq!(dense[position * actions + entry as usize], logits[logit]);
                assert_eq!(candidates.place(entry), Some(place));
            }
        }
        assert_eq!(dense[actions - 1], f32::MIN);
    }
}
