//! [`RowForm`]: the list of all representations, and their serialised fields.

use serde::{Deserialize, Serialize};

use crate::{
    codec::Codec,
    generator::ClanRows,
    planes::{ConstantPlane, PlaneStack},
};

/// Representation of a game's rows. A model's metadata says which one its rows have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub enum RowForm {
    /// Planes of 8×8 squares, for board games.
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

/// Fields of all representations. Those of one representation are present; they are next to the layout's own fields.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Fields {
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
}

impl TryFrom<Fields> for RowForm {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let stack = (
            fields.entries,
            fields.planes,
            fields.sparse,
            fields.constants,
            fields.ones,
        );
        match (stack, fields.clan) {
            ((None, None, None, None, None), Some(clan)) => Ok(Self::Clan(clan)),
            ((Some(entries), Some(planes), Some(sparse), Some(constants), Some(ones)), None) => {
                Ok(Self::Planes(PlaneStack {
                    entries,
                    planes,
                    sparse,
                    constants,
                    ones,
                }))
            }
            _ => Err(
                "a row layout has either `clan`, or all of `entries`, `planes`, `sparse`, `constants`, `ones`",
            ),
        }
    }
}

impl From<RowForm> for Fields {
    fn from(form: RowForm) -> Self {
        match form {
            RowForm::Planes(stack) => Self {
                entries: Some(stack.entries),
                planes: Some(stack.planes),
                sparse: Some(stack.sparse),
                constants: Some(stack.constants),
                ones: Some(stack.ones),
                clan: None,
            },
            RowForm::Clan(clan) => Self {
                clan: Some(clan),
                ..Self::default()
            },
        }
    }
}
