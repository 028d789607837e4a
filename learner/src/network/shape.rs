//! The sizes of a network. They are stored with each checkpoint.

use std::fmt;

use games::{
    ClanRows, PlaneStack, RowForm, RowLayout, generator::expansion::EMBEDDING_ROWS, layout::SQUARES,
};
use onnx::FishEyeShape;
use serde::{Deserialize, Serialize};
use service::config::ModelConfig;

/// Channels between the tower and a dense policy's linear layer.
const POLICY_CHANNELS: u32 = 32;
/// Channels between the tower and the value head's linear layers. AlphaZero and dlchess have 1, which must carry the
/// whole position in 64 numbers; more cost next to nothing (Leela Chess Zero takes 32).
const VALUE_CHANNELS: u32 = 4;

/// Everything that determines which variables a network has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NetworkShape {
    /// A residual tower over planes.
    Tower(TowerShape),
    /// The fish-eye network over clans.
    FishEye(FishEyeShape),
}

/// A `[model]` that there is not for the game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` must be {wanted} for {game}: {reason}")]
pub struct ShapeError {
    /// The key of the configuration.
    pub key: &'static str,
    /// What it must be.
    pub wanted: &'static str,
    /// The game.
    pub game: String,
    /// Why.
    pub reason: &'static str,
}

/// A residual tower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TowerShape {
    /// Planes in.
    pub planes: u32,
    /// Logits out.
    pub actions: u32,
    /// Residual blocks.
    pub blocks: u32,
    /// Channels of the tower.
    pub filters: u32,
    /// Channels of the squeeze in each block; 0: no squeeze-excitation.
    pub squeeze_excitation: u32,
    /// The policy head.
    pub policy: PolicyShape,
    /// Channels of the value head.
    pub value_channels: u32,
    /// Width of the value head's hidden layer.
    pub value_hidden: u32,
}

/// The two forms of policy head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyShape {
    /// Any actions.
    Dense {
        /// Channels before the linear layer.
        channels: u32,
    },
    /// Actions that are planes of squares, `plane·64 + rank·8 + file`: convolutions all the way.
    Planes {
        /// Number of planes.
        planes: u32,
    },
}

impl TowerShape {
    /// The policy is convolutional where the actions are several whole planes (chess: 73·64).
    fn new(model: &ModelConfig, stack: &PlaneStack, actions: u32) -> Self {
        let squares = SQUARES as u32;
        let is_planes = actions.is_multiple_of(squares) && actions > squares;
        Self {
            planes: stack.planes,
            actions,
            blocks: model.blocks,
            filters: model.filters,
            squeeze_excitation: model.squeeze_excitation,
            policy: if is_planes {
                PolicyShape::Planes {
                    planes: actions / squares,
                }
            } else {
                PolicyShape::Dense {
                    channels: POLICY_CHANNELS,
                }
            },
            value_channels: VALUE_CHANNELS,
            value_hidden: model.value_hidden,
        }
    }
}

/// `[model]` as it is meant over clans: blocks are convolutions over the grids, all widths go with the filters.
fn fish_eye(model: &ModelConfig, rows: &ClanRows) -> FishEyeShape {
    let size = |number: u32| number as usize;
    let usual = FishEyeShape::new(
        EMBEDDING_ROWS,
        size(rows.roles),
        size(rows.depth),
        size(rows.moves),
    );
    FishEyeShape {
        value_hidden: size(model.value_hidden),
        ..usual.sized(size(model.blocks), size(model.filters))
    }
}

impl NetworkShape {
    /// The network that `[model]` describes, for rows of this layout.
    ///
    /// # Errors
    /// [`ShapeError`] where `[model]` asks for what the network over such rows does not have.
    pub fn new(model: &ModelConfig, layout: &RowLayout) -> Result<Self, ShapeError> {
        match &layout.form {
            RowForm::Planes(stack) => Ok(Self::Tower(TowerShape::new(model, stack, layout.actions))),
            RowForm::Clan(_) if model.squeeze_excitation > 0 => Err(ShapeError {
                key: "model.squeeze_excitation",
                wanted: "0",
                game: layout.game.clone(),
                reason: "the network over clans has no residual blocks",
            }),
            RowForm::Clan(rows) => Ok(Self::FishEye(fish_eye(model, rows))),
        }
    }

    /// What differs from another shape, as `filters is 64, was 128`. Empty where nothing does.
    pub fn differences(&self, was: &Self) -> Vec<String> {
        let (Ok(serde_json::Value::Object(now)), Ok(serde_json::Value::Object(was))) =
            (serde_json::to_value(self), serde_json::to_value(was))
        else {
            return Vec::new();
        };
        now.iter()
            .filter_map(|(key, now)| match was.get(key) {
                Some(was) => (now != was).then(|| format!("{key} is {now}, was {was}")),
                None => Some(format!("{key} is {now}, there was none")),
            })
            .collect()
    }
}

impl fmt::Display for NetworkShape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tower(tower) => write!(out, "tower of {} blocks, {} filters", tower.blocks, tower.filters),
            Self::FishEye(shape) => write!(
                out,
                "fish-eye, {} convolutions, {} filters, septs of {}",
                shape.convolutions, shape.filters, shape.width
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use games::{Game as _, generator::GeneratorGame};

    use super::*;

    fn layout(actions: u32) -> RowLayout {
        RowLayout {
            game: "small".into(),
            options: 0,
            form: RowForm::Planes(PlaneStack {
                entries: 1,
                planes: 2,
                sparse: vec![0, 1],
                constants: vec![],
                ones: vec![],
            }),
            actions,
            mirrored_actions: false,
        }
    }

    #[test]
    fn only_several_whole_planes_of_actions_are_planes() {
        let policy = |actions| match NetworkShape::new(&ModelConfig::default(), &layout(actions)) {
            Ok(NetworkShape::Tower(tower)) => tower.policy,
            other => panic!("{other:?}"),
        };
        assert_eq!(policy(73 * 64), PolicyShape::Planes { planes: 73 });
        for actions in [7, 64, 65, 132] {
            assert_eq!(policy(actions), PolicyShape::Dense { channels: 32 });
        }
    }

    #[test]
    fn differences_are_named() {
        let of = |filters, layout: &RowLayout| {
            let model = ModelConfig {
                filters,
                ..ModelConfig::default()
            };
            NetworkShape::new(&model, layout).unwrap()
        };
        let (small, large) = (of(64, &layout(7)), of(128, &layout(7)));
        assert!(small.differences(&small).is_empty());
        assert_eq!(large.differences(&small), ["filters is 128, was 64"]);
        assert!(!of(64, &GeneratorGame::layout(())).differences(&small).is_empty());
    }

    #[test]
    fn clans_have_a_network_of_their_own() {
        let clans = GeneratorGame::layout(());
        let model = ModelConfig {
            blocks: 3,
            value_hidden: 128,
            ..ModelConfig::default()
        };
        let shape = NetworkShape::new(&model, &clans).unwrap();
        let NetworkShape::FishEye(found) = &shape else {
            panic!("{shape:?}");
        };
        assert_eq!(*found, FishEyeShape::new(EMBEDDING_ROWS, 20, 6, 38));
        for shape in [shape.clone(), NetworkShape::new(&model, &layout(7)).unwrap()] {
            let json = serde_json::to_value(&shape).unwrap();
            assert_eq!(serde_json::from_value::<NetworkShape>(json).unwrap(), shape);
        }
        let gated = ModelConfig {
            squeeze_excitation: 4,
            ..model
        };
        let error = NetworkShape::new(&gated, &clans).unwrap_err().to_string();
        assert!(
            error.starts_with("`model.squeeze_excitation` must be 0"),
            "{error}"
        );
    }
}
