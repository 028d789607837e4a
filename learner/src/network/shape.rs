//! The sizes of a network. They are stored with each checkpoint.

use games::{RowLayout, layout::SQUARES};
use serde::{Deserialize, Serialize};
use service::config::ModelConfig;

/// Channels between the tower and a dense policy's linear layer.
const POLICY_CHANNELS: u32 = 32;
/// Channels between the tower and the value head's linear layers. AlphaZero and dlchess have 1, which must carry the
/// whole position in 64 numbers; more cost next to nothing (Leela Chess Zero takes 32).
const VALUE_CHANNELS: u32 = 4;

/// Everything that determines which variables a network has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkShape {
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

impl NetworkShape {
    /// The network that `[model]` describes, for rows of this layout. The policy is convolutional where the actions
    /// are several whole planes (chess: 73·64).
    pub fn new(model: &ModelConfig, layout: &RowLayout) -> Self {
        let squares = SQUARES as u32;
        let is_planes = layout.actions.is_multiple_of(squares) && layout.actions > squares;
        Self {
            planes: layout.stack().map_or(0, |stack| stack.planes),
            actions: layout.actions,
            blocks: model.blocks,
            filters: model.filters,
            squeeze_excitation: model.squeeze_excitation,
            policy: if is_planes {
                PolicyShape::Planes {
                    planes: layout.actions / squares,
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

    /// What differs from another shape, as `filters is 64, was 128`. Empty where nothing does.
    pub fn differences(&self, was: &Self) -> Vec<String> {
        let (Ok(serde_json::Value::Object(now)), Ok(serde_json::Value::Object(was))) =
            (serde_json::to_value(self), serde_json::to_value(was))
        else {
            return Vec::new();
        };
        now.iter()
            .filter_map(|(key, now)| {
                let was = was.get(key)?;
                (now != was).then(|| format!("{key} is {now}, was {was}"))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use games::{PlaneStack, RowForm};

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
        let policy = |actions| NetworkShape::new(&ModelConfig::default(), &layout(actions)).policy;
        assert_eq!(policy(73 * 64), PolicyShape::Planes { planes: 73 });
        for actions in [7, 64, 65, 132] {
            assert_eq!(policy(actions), PolicyShape::Dense { channels: 32 });
        }
    }

    #[test]
    fn differences_are_named() {
        let small = NetworkShape::new(&ModelConfig::default(), &layout(7));
        let large = NetworkShape {
            filters: 128,
            ..small.clone()
        };
        assert!(small.differences(&small).is_empty());
        assert_eq!(large.differences(&small), ["filters is 128, was 64"]);
    }
}
