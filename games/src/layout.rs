//! What a row means: [`RowLayout`], which travels in a model's metadata.
//!
//! A position travels as a short list of `u32`, its row. Which kind of thing a row is, is the layout's [`RowForm`]:
//! a stack of planes ([`PlaneStack`]) for the board games, all rows of one length; a packed clan with its grids for the
//! generator game ([`crate::generator::row`]), rows of many lengths.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::generator::{
    self,
    row::{Position, PositionError},
};
pub use crate::planes::{ConstantPlane, PlaneStack, SQUARES};

/// What the `u32`s of a game's rows mean. It is data, so that the inference server and the learner
/// need no knowledge of games.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Flat", into = "Flat")]
pub struct RowLayout {
    /// The game's name.
    pub game: String,
    /// The game's representation options.
    pub options: u32,
    /// What kind of thing a row is.
    pub form: RowForm,
    /// Size of the policy that belongs to these rows.
    pub actions: u32,
    /// Whether actions are mirrored along with the board when the second player acts.
    pub mirrored_actions: bool,
    /// Kind of policy head that suits the actions.
    pub policy_head: PolicyHead,
}

/// Kind of policy head that a network over a game's rows should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyHead {
    /// A linear layer with one output for each action. Suits any actions.
    Dense,
    /// Convolutions with one output plane for each 64 actions: action `64·plane + 8·rank + file` belongs to a square.
    Planes,
    /// The same layer for each part of a position that has actions of its own, e.g. for each imp of a clan.
    PerPart,
}

impl PolicyHead {
    /// Policy head of layouts that were written before they named one: convolutions where the actions are several whole
    /// planes, as in chess.
    pub fn usual(form: &RowForm, actions: u32) -> Self {
        match form {
            RowForm::Clan(_) => Self::PerPart,
            RowForm::Planes(_) if actions > SQUARES as u32 && actions.is_multiple_of(SQUARES as u32) => {
                Self::Planes
            }
            RowForm::Planes(_) => Self::Dense,
        }
    }
}

/// The kinds of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowForm {
    /// Planes of 8×8 squares.
    Planes(PlaneStack),
    /// A tree of imps with grids; the policy has [`ClanRows::moves`] entries for each of [`ClanRows::imps`].
    Clan(ClanRows),
}

/// What rows that hold a clan can hold at most. There is one such representation; the numbers say so to whoever
/// reads a model's metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClanRows {
    /// Most imps of a clan.
    pub imps: u32,
    /// Most edges between the root and an imp.
    pub depth: u32,
    /// One-hot values of an imp, "not present" included.
    pub values: u32,
    /// Rows of a role matrix.
    pub roles: u32,
    /// Moves of each imp.
    pub moves: u32,
    /// Symbols of a cell, "absent" included.
    pub symbols: u32,
}

/// A row (or a layout) that does not mean anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// Wrong number of values.
    #[error("a row of {found} values, {expected} expected")]
    Length {
        /// Values a row of this layout has.
        expected: usize,
        /// Values there were.
        found: usize,
    },
    /// An index outside the sparse planes.
    #[error("value {at}: index {index} points into no piece plane of the {planes}-plane tensor")]
    Index {
        /// Place in the row.
        at: usize,
        /// What stands there.
        index: u32,
        /// Planes of the tensor.
        planes: u32,
    },
    /// A constant above its largest value.
    #[error("value {at} ({name}): {value} is above {max}")]
    Constant {
        /// Place in the row.
        at: usize,
        /// The constant plane's name.
        name: String,
        /// What stands there.
        value: u32,
        /// The largest value allowed.
        max: u32,
    },
    /// A position of the generator game.
    #[error(transparent)]
    Position(#[from] PositionError),
    /// Something that only planes have was asked of rows that are none.
    #[error("rows of {game} are no planes")]
    NotPlanes {
        /// The game.
        game: String,
    },
    /// The layout itself contradicts itself.
    #[error("the row layout is not consistent: {0}")]
    Layout(String),
}

impl RowLayout {
    /// The planes, where rows are planes.
    ///
    /// # Errors
    /// [`RowError::NotPlanes`].
    pub fn stack(&self) -> Result<&PlaneStack, RowError> {
        match &self.form {
            RowForm::Planes(stack) => Ok(stack),
            RowForm::Clan(_) => Err(RowError::NotPlanes {
                game: self.game.clone(),
            }),
        }
    }

    /// Values in every row; `None` where rows differ in length.
    pub fn row_len(&self) -> Option<usize> {
        match &self.form {
            RowForm::Planes(stack) => Some(stack.row_len()),
            RowForm::Clan(_) => None,
        }
    }

    /// Values that a row may have.
    pub fn row_lengths(&self) -> RangeInclusive<usize> {
        match &self.form {
            RowForm::Planes(stack) => stack.row_len()..=stack.row_len(),
            RowForm::Clan(_) => generator::row::LENGTHS.0..=generator::row::LENGTHS.1,
        }
    }

    /// Valid rows that stand back to back, one by one.
    pub fn split<'a>(&self, rows: &'a [u32]) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        let fixed = self.row_len();
        let mut rest = rows;
        std::iter::from_fn(move || {
            let length = match fixed {
                Some(length) => length,
                None => generator::row::length(*rest.first()?),
            };
            let (row, others) = rest.split_at(length.min(rest.len()));
            rest = others;
            (!row.is_empty()).then_some(row)
        })
    }

    /// Actions that the position of a valid row can have at all: a clan has those of its own imps.
    pub fn actions_in(&self, row: &[u32]) -> u32 {
        match &self.form {
            RowForm::Planes(_) => self.actions,
            RowForm::Clan(rows) => {
                let imps = row.first().copied().unwrap_or_default();
                rows.moves.saturating_mul(imps).min(self.actions)
            }
        }
    }

    /// Checks that it does not contradict itself. To be called once on a layout that was read.
    ///
    /// # Errors
    /// [`RowError::Layout`] with the first contradiction.
    pub fn check(&self) -> Result<(), RowError> {
        let fault = |text: String| Err(RowError::Layout(text));
        if self.actions == 0 || self.actions > 1 << 20 {
            return fault(format!("{} actions", self.actions));
        }
        match &self.form {
            RowForm::Planes(stack) => {
                let is_whole = self.actions.is_multiple_of(SQUARES as u32);
                match self.policy_head {
                    PolicyHead::Planes if !is_whole => {
                        fault(format!("a policy head of planes for {} actions", self.actions))
                    }
                    PolicyHead::PerPart => {
                        fault("a policy head for each part, but planes have no parts".into())
                    }
                    PolicyHead::Planes | PolicyHead::Dense => stack.check(),
                }
            }
            RowForm::Clan(_) if self.policy_head != PolicyHead::PerPart => {
                fault("rows with parts need a policy head for each part".into())
            }
            RowForm::Clan(rows) if *rows != generator::row::form() => {
                fault(format!("{rows:?}; this build knows {:?}", generator::row::form()))
            }
            RowForm::Clan(rows) if rows.imps * rows.moves != self.actions => fault(format!(
                "{} actions, but {} moves of {} imps",
                self.actions, rows.moves, rows.imps
            )),
            RowForm::Clan(_) => Ok(()),
        }
    }

    /// Checks one row before it is expanded or batched.
    ///
    /// # Errors
    /// [`RowError`] naming the first offending value.
    pub fn validate(&self, row: &[u32]) -> Result<(), RowError> {
        match &self.form {
            RowForm::Planes(stack) => stack.validate(row),
            RowForm::Clan(_) => Position::read(row).map(|_| ()),
        }
    }
}

/// The layout as it is written: the fields of its form beside its own.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flat {
    game: String,
    options: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entries: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    planes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sparse: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    constants: Option<Vec<ConstantPlane>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ones: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clan: Option<ClanRows>,
    actions: u32,
    mirrored_actions: bool,
    /// Written only where it is not the usual one, as older programs refuse fields that they do not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy_head: Option<PolicyHead>,
}

impl TryFrom<Flat> for RowLayout {
    type Error = String;

    fn try_from(flat: Flat) -> Result<Self, String> {
        let stack = (flat.entries, flat.planes, flat.sparse, flat.constants, flat.ones);
        let form = match (stack, flat.clan) {
            ((None, None, None, None, None), Some(clan)) => RowForm::Clan(clan),
            ((Some(entries), Some(planes), Some(sparse), Some(constants), Some(ones)), None) => {
                RowForm::Planes(PlaneStack {
                    entries,
                    planes,
                    sparse,
                    constants,
                    ones,
                })
            }
            _ => {
                return Err(
                    "a row layout has either `clan`, or all of `entries`, `planes`, `sparse`, `constants`, `ones`"
                        .into(),
                );
            }
        };
        let usual = PolicyHead::usual(&form, flat.actions);
        Ok(Self {
            game: flat.game,
            options: flat.options,
            form,
            actions: flat.actions,
            mirrored_actions: flat.mirrored_actions,
            policy_head: flat.policy_head.unwrap_or(usual),
        })
    }
}

impl From<RowLayout> for Flat {
    fn from(layout: RowLayout) -> Self {
        let usual = PolicyHead::usual(&layout.form, layout.actions);
        let (stack, clan) = match layout.form {
            RowForm::Planes(stack) => (Some(stack), None),
            RowForm::Clan(clan) => (None, Some(clan)),
        };
        let (mut entries, mut planes, mut sparse, mut constants, mut ones) = (None, None, None, None, None);
        if let Some(stack) = stack {
            entries = Some(stack.entries);
            planes = Some(stack.planes);
            sparse = Some(stack.sparse);
            constants = Some(stack.constants);
            ones = Some(stack.ones);
        }
        Self {
            game: layout.game,
            options: layout.options,
            entries,
            planes,
            sparse,
            constants,
            ones,
            clan,
            actions: layout.actions,
            mirrored_actions: layout.mirrored_actions,
            policy_head: (layout.policy_head != usual).then_some(layout.policy_head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Game, registry};

    struct Layout;

    impl registry::Visitor for Layout {
        type Output = RowLayout;

        fn visit<G: Game>(self) -> RowLayout {
            let encoding = G::encoding(0).or_else(|_| G::encoding(1)).unwrap();
            G::layout(encoding)
        }
    }

    #[test]
    fn every_games_layout_is_consistent_and_comes_back_from_json() {
        for &name in registry::NAMES {
            let layout = registry::visit(name, Layout).unwrap();
            assert_eq!(layout.check(), Ok(()), "{name}");
            let json = serde_json::to_string(&layout).unwrap();
            assert_eq!(serde_json::from_str::<RowLayout>(&json).unwrap(), layout);
            assert_eq!(layout.row_len().is_none(), name == "generator");
        }
    }

    #[test]
    fn what_is_neither_planes_nor_a_clan_is_refused() {
        let layout = registry::visit("generator", Layout).unwrap();
        let mut json = serde_json::to_value(&layout).unwrap();
        json["planes"] = 4.into();
        let error = serde_json::from_value::<RowLayout>(json.clone()).unwrap_err();
        assert!(error.to_string().contains("either `clan`"), "{error}");
        json.as_object_mut().unwrap().remove("clan");
        assert!(serde_json::from_value::<RowLayout>(json).is_err());
        assert!(layout.stack().is_err());
        let other = RowLayout { actions: 7, ..layout };
        assert!(other.check().is_err());
    }
}
