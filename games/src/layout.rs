//! [`RowLayout`]: the meaning of a game's rows, as data. It travels in a model's metadata.
//!
//! A position travels as a short list of `u32`, its row. The layout's [`RowForm`] says which representation the row has: a
//! stack of planes ([`PlaneStack`]) for the board games, or a tree with grids for the generator game.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::codec::Codec;
pub use crate::{
    codec::RowForm,
    generator::{ClanRows, PositionError},
    planes::{ConstantPlane, PlaneStack, SQUARES},
};

/// Meaning of a game's rows. It is data, so that the inference server and the learner need no knowledge of games.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Flat", into = "Flat")]
pub struct RowLayout {
    /// Name of the game.
    pub game: String,
    /// Number of the game's representation.
    pub options: u32,
    /// Representation of positions.
    pub form: RowForm,
    /// Number of entries of the policy that belongs to these rows.
    pub actions: u32,
    /// True if actions are mirrored along with the board when the second player acts.
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
    /// One layer, applied to each part of a position that has actions of its own, e.g. to each imp of a clan.
    PerPart,
}

/// Error: a row or a layout is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The row has a wrong number of values.
    #[error("the row has {found} values instead of {expected}")]
    Length {
        /// Number of values that a row of this layout has.
        expected: usize,
        /// Number of values in the row.
        found: usize,
    },
    /// An index points outside the sparse planes.
    #[error("value {at}: index {index} points to none of the piece planes of the {planes}-plane tensor")]
    Index {
        /// Place in the row.
        at: usize,
        /// Value at that place.
        index: u32,
        /// Number of planes of the tensor.
        planes: u32,
    },
    /// A constant is above its largest value.
    #[error("value {at} ({name}): {value} is above {max}")]
    Constant {
        /// Place in the row.
        at: usize,
        /// The constant plane's name.
        name: String,
        /// Value at that place.
        value: u32,
        /// The largest value allowed.
        max: u32,
    },
    /// A row of the generator game is not valid.
    #[error(transparent)]
    Position(#[from] PositionError),
    /// The rows are not planes.
    #[error("the rows of {game} are not planes")]
    NotPlanes {
        /// Name of the game.
        game: String,
    },
    /// The layout contradicts itself.
    #[error("the row layout is not consistent: {0}")]
    Layout(String),
}

impl RowLayout {
    /// Planes that the rows stand for.
    ///
    /// # Errors
    /// [`RowError::NotPlanes`] if rows are not planes.
    pub fn stack(&self) -> Result<&PlaneStack, RowError> {
        match &self.form {
            RowForm::Planes(stack) => Ok(stack),
            RowForm::Clan(_) => Err(RowError::NotPlanes {
                game: self.game.clone(),
            }),
        }
    }

    /// Methods of the representation.
    pub fn codec(&self) -> &dyn Codec {
        self.form.codec()
    }

    /// Number of values in every row; `None` if rows differ in length.
    pub fn row_len(&self) -> Option<usize> {
        self.codec().row_len()
    }

    /// Numbers of values that a row can have.
    pub fn row_lengths(&self) -> RangeInclusive<usize> {
        self.codec().row_lengths()
    }

    /// Splits valid rows that stand back to back. If the last row is incomplete, its part is returned as it is.
    pub fn split<'a>(&'a self, rows: &'a [u32]) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        let codec = self.codec();
        let mut rest = rows;
        std::iter::from_fn(move || {
            let (row, others) = rest.split_at(codec.first_row_len(rest).min(rest.len()));
            rest = others;
            (!row.is_empty()).then_some(row)
        })
    }

    /// Number of actions that the position of a valid row can have at all.
    pub fn actions_in(&self, row: &[u32]) -> u32 {
        self.codec().actions_in(row, self.actions)
    }

    /// Checks that the layout does not contradict itself. To be called once for a layout that was read.
    ///
    /// # Errors
    /// [`RowError::Layout`] with the first contradiction.
    pub fn check(&self) -> Result<(), RowError> {
        if self.actions == 0 || self.actions > 1 << 20 {
            return Err(RowError::Layout(format!("{} actions", self.actions)));
        }
        self.codec().check(self.actions, self.policy_head)
    }

    /// Checks one row before it is expanded or batched.
    ///
    /// # Errors
    /// [`RowError`] that names the first wrong value.
    pub fn validate(&self, row: &[u32]) -> Result<(), RowError> {
        self.codec().validate(row)
    }
}

/// Serialised form of a layout: the fields of its representation stand beside its own.
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
    /// Kind of policy head. Written only if it is not the usual one, because older programs refuse unknown fields.
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
        let usual = form.codec().usual_head(flat.actions);
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
        let usual = layout.codec().usual_head(layout.actions);
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
    fn layouts_of_all_games_are_consistent_and_read_as_written() {
        for &name in registry::NAMES {
            let layout = registry::visit(name, Layout).unwrap();
            assert_eq!(layout.check(), Ok(()), "{name}");
            let json = serde_json::to_string(&layout).unwrap();
            assert_eq!(serde_json::from_str::<RowLayout>(&json).unwrap(), layout);
            assert_eq!(layout.row_len().is_none(), name == "generator");
        }
    }

    #[test]
    fn a_layout_of_both_or_no_representations_is_refused() {
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
