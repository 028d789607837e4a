//! [`RowLayout`]: the meaning of a game's rows, as data. It travels in a model's metadata.
//!
//! A position travels as a short list of `u32`, its row. The layout's [`RowForm`] says which representation the row has: a
//! stack of planes ([`PlaneStack`]) for the board games, or another one.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::{
    codec::{Codec, PolicyHead, RowError},
    generator::ClanRows,
    planes::{ConstantPlane, PlaneStack},
    registry,
};

/// Representation of a game's rows: the list of all of them. A model's metadata says which one its rows have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowForm {
    /// Planes of squares, for board games.
    Planes(PlaneStack),
    /// A tree of imps with grids, for the generator game.
    Clan(ClanRows),
}

impl RowForm {
    /// Returns the methods of the representation.
    pub fn codec(&self) -> &dyn Codec {
        match self {
            Self::Planes(stack) => stack,
            Self::Clan(rows) => rows,
        }
    }
}

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

impl RowLayout {
    /// Returns what a person names the game by, with the size of the board if there are several (`gomoku:15`).
    pub fn title(&self) -> String {
        let sized = registry::find(&self.game)
            .ok()
            .filter(|game| game.sizes.is_some());
        match (sized, &self.form) {
            (Some(game), RowForm::Planes(stack)) => format!("{}:{}", game.name, stack.width),
            _ => self.game.clone(),
        }
    }

    /// Returns the planes that the rows expand to.
    ///
    /// # Errors
    /// [`RowError`] if rows are not planes.
    pub fn stack(&self) -> Result<&PlaneStack, RowError> {
        match &self.form {
            RowForm::Planes(stack) => Ok(stack),
            RowForm::Clan(_) => Err(RowError::new(format!("the rows of {} are not planes", self.game))),
        }
    }

    /// Returns the methods of the representation.
    pub fn codec(&self) -> &dyn Codec {
        self.form.codec()
    }

    /// Returns the number of values in every row; `None` if rows differ in length.
    pub fn row_len(&self) -> Option<usize> {
        let lengths = self.row_lengths();
        (lengths.start() == lengths.end()).then_some(*lengths.start())
    }

    /// Returns the numbers of values that a row can have.
    pub fn row_lengths(&self) -> RangeInclusive<usize> {
        self.codec().row_lengths()
    }

    /// Splits valid rows that follow each other without gaps. If the last row is incomplete, its part is returned as it is.
    pub fn split<'a>(&'a self, rows: &'a [u32]) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        let codec = self.codec();
        let mut rest = rows;
        std::iter::from_fn(move || {
            let (row, others) = rest.split_at(codec.first_row_len(rest).min(rest.len()));
            rest = others;
            (!row.is_empty()).then_some(row)
        })
    }

    /// Returns the number of actions that the position of a valid row can have at all.
    pub fn actions_in(&self, row: &[u32]) -> u32 {
        self.codec().actions_in(row, self.actions)
    }

    /// Checks that the layout does not contradict itself. To be called once for a layout that was read.
    ///
    /// # Errors
    /// [`RowError`] with the first contradiction.
    pub fn check(&self) -> Result<(), RowError> {
        if self.actions == 0 || self.actions > 1 << 20 {
            return Err(RowError::of_layout(format_args!("{} actions", self.actions)));
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

/// Serialised form of a layout. The fields of its representation, and only these, are next to the layout's own.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flat {
    game: String,
    options: u32,
    /// Number of ranks of a plane. Left out if it is 8, as in layouts of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    /// Number of files of a plane. Left out if it is 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    planes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sparse: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constants: Option<Vec<ConstantPlane>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ones: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clan: Option<ClanRows>,
    actions: u32,
    mirrored_actions: bool,
    /// Kind of policy head. Left out if it is the one that follows from the representation and the number of actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_head: Option<PolicyHead>,
}

/// Height and width of planes whose layout names none.
const USUAL_SIDE: u32 = 8;

/// Returns the kind of policy head of layouts that name none: convolutions if the actions are several whole planes, as in chess.
fn usual_head(form: &RowForm, actions: u32) -> PolicyHead {
    match form {
        RowForm::Planes(stack)
            if actions as usize > stack.squares() && (actions as usize).is_multiple_of(stack.squares()) =>
        {
            PolicyHead::Planes
        }
        RowForm::Planes(_) => PolicyHead::Dense,
        RowForm::Clan(_) => PolicyHead::PerPart,
    }
}

impl TryFrom<Flat> for RowLayout {
    type Error = &'static str;

    fn try_from(flat: Flat) -> Result<Self, Self::Error> {
        let stack = (flat.entries, flat.planes, flat.sparse, flat.constants, flat.ones);
        let sides = (flat.height, flat.width);
        let form = match (stack, flat.clan) {
            ((None, None, None, None, None), Some(clan)) if sides == (None, None) => RowForm::Clan(clan),
            ((Some(entries), Some(planes), Some(sparse), Some(constants), Some(ones)), None) => {
                RowForm::Planes(PlaneStack {
                    height: flat.height.unwrap_or(USUAL_SIDE),
                    width: flat.width.unwrap_or(USUAL_SIDE),
                    entries,
                    planes,
                    sparse,
                    constants,
                    ones,
                })
            }
            _ => {
                return Err(
                    "a row layout has either `clan`, or all of `entries`, `planes`, `sparse`, `constants`, `ones`",
                );
            }
        };
        let usual = usual_head(&form, flat.actions);
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
        let usual = usual_head(&layout.form, layout.actions);
        let side = |side| (side != USUAL_SIDE).then_some(side);
        let (stack, clan) = match layout.form {
            RowForm::Planes(stack) => (Some(stack), None),
            RowForm::Clan(clan) => (None, Some(clan)),
        };
        Self {
            game: layout.game,
            options: layout.options,
            height: stack.as_ref().and_then(|stack| side(stack.height)),
            width: stack.as_ref().and_then(|stack| side(stack.width)),
            entries: stack.as_ref().map(|stack| stack.entries),
            planes: stack.as_ref().map(|stack| stack.planes),
            sparse: stack.as_ref().map(|stack| stack.sparse.clone()),
            constants: stack.as_ref().map(|stack| stack.constants.clone()),
            ones: stack.map(|stack| stack.ones),
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

    fn layout_of(name: &str) -> RowLayout {
        let game = registry::find(name).unwrap();
        game.variant(&game.rules(), None).unwrap().layout()
    }

    #[test]
    fn layouts_of_all_games_are_consistent_and_read_as_written() {
        for &name in registry::NAMES {
            let layout = layout_of(name);
            assert_eq!(layout.check(), Ok(()), "{name}");
            let json = serde_json::to_string(&layout).unwrap();
            assert_eq!(serde_json::from_str::<RowLayout>(&json).unwrap(), layout);
            assert_eq!(layout.row_len().is_none(), name == "generator");
        }
    }

    #[test]
    fn unknown_fields_and_layouts_of_both_or_no_representations_are_refused() {
        let layout = layout_of("generator");
        let mut json = serde_json::to_value(&layout).unwrap();
        json["planes"] = 4.into();
        let error = serde_json::from_value::<RowLayout>(json.clone()).unwrap_err();
        assert!(error.to_string().contains("either `clan`"), "{error}");
        json.as_object_mut().unwrap().remove("planes");
        json["pieces"] = 4.into();
        let error = serde_json::from_value::<RowLayout>(json.clone()).unwrap_err();
        assert!(error.to_string().contains("unknown field `pieces`"), "{error}");
        json.as_object_mut().unwrap().remove("pieces");
        assert_eq!(serde_json::from_value::<RowLayout>(json.clone()).unwrap(), layout);
        json.as_object_mut().unwrap().remove("clan");
        assert!(serde_json::from_value::<RowLayout>(json).is_err());
        assert!(layout.stack().is_err());
        let other = RowLayout { actions: 7, ..layout };
        assert!(other.check().is_err());
    }
}
