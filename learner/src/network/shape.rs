//! The sizes of a network, which are stored with each checkpoint.

use std::fmt;

use anyhow::{bail, ensure};
use config::{ModelConfig, ValueHead};
use games::RowLayout;
use onnx::{FishEyeShape, TowerShape};
use serde::{Deserialize, Serialize};

/// Everything that determines which variables a network has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NetworkShape {
    /// A residual tower over planes.
    Tower(TowerShape),
    /// The fish-eye network, for rows that are not planes.
    FishEye(FishEyeShape),
}

impl NetworkShape {
    /// Returns the network that `[model]` describes, for rows of this layout.
    ///
    /// # Errors
    /// `[model]` has a part that the network over such rows does not have. The error names the key.
    pub fn new(model: &ModelConfig, layout: &RowLayout) -> anyhow::Result<Self> {
        let game = &layout.game;
        if layout.stack().is_ok() {
            ensure!(
                model.shared,
                "`model.shared` must be true for {game}: its policy and its value are heads of one tower"
            );
            return Ok(Self::Tower(tower(model, layout)));
        }
        let Some(shape) = FishEyeShape::of(layout) else {
            bail!("`game.name` must be another game for {game}: no network takes its rows");
        };
        ensure!(
            model.global_pooling == 0,
            "`model.global_pooling` must be 0 for {game}: the fish-eye network has no residual blocks"
        );
        ensure!(
            model.value_head == ValueHead::Scalar,
            "`model.value_head` must be \"scalar\" for {game}: it has one player, whose results are scores"
        );
        let size = |number: u32| number as usize;
        Ok(Self::FishEye(FishEyeShape {
            value_hidden: size(model.value_hidden),
            shared: model.shared,
            ..shape.sized(size(model.blocks), size(model.filters))
        }))
    }

    /// True if the value head predicts the probabilities of a win, a draw and a loss.
    pub fn has_outcomes(&self) -> bool {
        matches!(self, Self::Tower(tower) if tower.outcomes)
    }

    /// Returns the network with a head for the territory. The fish-eye network has none and stays as it is.
    #[must_use]
    pub fn with_territory(self) -> Self {
        match self {
            Self::Tower(tower) => Self::Tower(TowerShape {
                territory: true,
                ..tower
            }),
            Self::FishEye(_) => self,
        }
    }

    /// True if the network predicts the owners of the squares and the score.
    pub fn has_territory(&self) -> bool {
        matches!(self, Self::Tower(tower) if tower.territory)
    }

    /// Returns the differences from another shape, as `filters is 64, was 128`.
    pub fn differences(&self, was: &Self) -> Vec<String> {
        let (Ok(serde_json::Value::Object(now)), Ok(serde_json::Value::Object(was))) =
            (serde_json::to_value(self), serde_json::to_value(was))
        else {
            return Vec::new();
        };
        let present = now.iter().filter_map(|(key, now)| match was.get(key) {
            Some(was) => (now != was).then(|| format!("{key} is {now}, was {was}")),
            None => Some(format!("{key} is {now}, there was none")),
        });
        let gone = was.iter().filter(|(key, _)| !now.contains_key(*key));
        let gone = gone.map(|(key, was)| format!("there is no {key}, was {was}"));
        present.chain(gone).collect()
    }
}

/// Returns the tower of `[model]`, with the layout's kind of policy head.
fn tower(model: &ModelConfig, layout: &RowLayout) -> TowerShape {
    let shape = TowerShape::new(layout, model.blocks as usize, model.filters as usize);
    TowerShape {
        pooling: model.global_pooling as usize,
        value_channels: model.value_channels as usize,
        value_hidden: model.value_hidden as usize,
        outcomes: model.value_head == ValueHead::Wdl,
        ..shape
    }
}

impl fmt::Display for NetworkShape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tower(tower) => write!(out, "tower of {} blocks, {} filters", tower.blocks, tower.filters),
            Self::FishEye(shape) => write!(
                out,
                "fish-eye, {}, {} convolutions, {} filters, septs of {}{}",
                if shape.shared {
                    "one network"
                } else {
                    "two networks"
                },
                shape.convolutions,
                shape.filters,
                shape.width,
                if shape.examples > 0 { ", examples" } else { "" }
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use games::{
        Game as _, PlaneStack, PolicyHead, RowForm,
        generator::{Encoding, GeneratorGame},
    };

    use onnx::PolicyShape;

    use super::*;

    fn layout(actions: u32) -> RowLayout {
        let form = RowForm::Planes(PlaneStack {
            height: 5,
            width: 7,
            entries: 1,
            planes: 2,
            sparse: vec![0, 1],
            constants: vec![],
            ones: vec![],
        });
        RowLayout {
            game: "small".into(),
            options: 0,
            policy_head: PolicyHead::Dense,
            form,
            actions,
            mirrored_actions: false,
        }
    }

    #[test]
    fn the_layout_names_the_policy_head() {
        let policy = |layout: &RowLayout| match NetworkShape::new(&ModelConfig::default(), layout) {
            Ok(NetworkShape::Tower(tower)) => tower.policy,
            other => panic!("{other:?}"),
        };
        for actions in [7, 35, 64, 132] {
            assert_eq!(policy(&layout(actions)), PolicyShape::Dense { channels: 32 });
        }
        for (planes, globals) in [(1, 0), (1, 1), (73, 5)] {
            let squares = RowLayout {
                policy_head: PolicyHead::Planes,
                ..layout(35 * planes as u32 + globals as u32)
            };
            assert_eq!(policy(&squares), PolicyShape::Planes { planes, globals });
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
        let more = ModelConfig {
            value_head: ValueHead::Wdl,
            ..ModelConfig::default()
        };
        let more = NetworkShape::new(&more, &layout(7)).unwrap();
        assert_eq!(
            more.differences(&small),
            ["value_head is \"wdl\", was \"scalar\""]
        );
        assert!(
            !of(64, &GeneratorGame::layout(Encoding::Plain))
                .differences(&small)
                .is_empty()
        );
    }

    #[test]
    fn rows_of_the_generator_game_have_the_fish_eye_network() {
        let trees = GeneratorGame::layout(Encoding::Plain);
        let model = ModelConfig {
            blocks: 3,
            value_hidden: 128,
            ..ModelConfig::default()
        };
        let shape = NetworkShape::new(&model, &trees).unwrap();
        let NetworkShape::FishEye(found) = &shape else {
            panic!("{shape:?}");
        };
        assert_eq!(*found, FishEyeShape::new(64, 20, 6, 38));
        let two = ModelConfig {
            shared: false,
            ..model.clone()
        };
        let separate = NetworkShape::new(&two, &trees).unwrap();
        assert_eq!(separate.differences(&shape), ["shared is false, there was none"]);
        let tasks = GeneratorGame::layout(Encoding::Examples);
        let with_examples = NetworkShape::new(&model, &tasks).unwrap();
        assert_eq!(
            with_examples.differences(&shape),
            ["examples is 128, there was none"]
        );
        assert!(with_examples.to_string().ends_with(", examples"));
        let error = NetworkShape::new(&two, &layout(7)).unwrap_err();
        assert!(
            error.to_string().starts_with("`model.shared` must be true"),
            "{error}"
        );
        let tower = NetworkShape::new(&model, &layout(7)).unwrap();
        for shape in [shape.clone(), separate, tower] {
            let json = serde_json::to_value(&shape).unwrap();
            assert_eq!(serde_json::from_value::<NetworkShape>(json).unwrap(), shape);
        }
        type Change = fn(&mut ModelConfig);
        let changes: [(&str, Change); 2] = [
            ("`model.global_pooling` must be 0", |model| {
                model.global_pooling = 4
            }),
            ("`model.value_head` must be \"scalar\"", |model| {
                model.value_head = ValueHead::Wdl;
            }),
        ];
        for (beginning, change) in changes {
            let mut model = model.clone();
            change(&mut model);
            let error = NetworkShape::new(&model, &trees).unwrap_err().to_string();
            assert!(error.starts_with(beginning), "{error}");
        }
    }
}
