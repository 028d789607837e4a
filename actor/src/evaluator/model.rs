//! Is the server's model one for this game and representation?
//!
//! Rows of one game may well be valid rows of another model's layout; what such a model answers looks fine and
//! is noise. So the layouts are compared, whenever a stream is opened and whenever a new version has answered.

use std::time::Duration;

use games::{Game, RowLayout};
use proto::v1::{DescribeModelRequest, ModelDescription, evaluator_client::EvaluatorClient};
use service::connect::Link;
use tonic::Status;

/// What models must be like.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The label or version that is asked.
    pub model: String,
    /// What the rows mean.
    pub layout: RowLayout,
}

/// The server has another model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the inference server's model {version} is for {theirs}, this actor plays {ours}")]
pub struct WrongModel {
    /// The model's version.
    pub version: String,
    /// What it takes.
    pub theirs: String,
    /// What this actor sends.
    pub ours: String,
}

impl Expected {
    /// What models of a game must be like.
    pub fn of<G: Game>(encoding: G::Encoding, model: &str) -> Self {
        Self {
            model: model.into(),
            layout: G::layout(encoding),
        }
    }

    /// Asks the server for a model's description; the inner result is the verdict.
    pub(super) async fn check(
        &self,
        client: &mut EvaluatorClient<Link>,
        model: String,
        patience: Duration,
    ) -> Result<Result<ModelDescription, WrongModel>, Status> {
        let asked = client.describe_model(DescribeModelRequest { model });
        let description = tokio::time::timeout(patience, asked)
            .await
            .map_err(|_| Status::deadline_exceeded("the model was not described in time"))??
            .into_inner();
        Ok(self.compare(&description).map(|()| description))
    }

    fn compare(&self, model: &ModelDescription) -> Result<(), WrongModel> {
        let ours = &self.layout;
        let wrong = |theirs: String, ours: String| {
            Err(WrongModel {
                version: model.version.clone(),
                theirs,
                ours,
            })
        };
        if model.game != ours.game {
            return wrong(model.game.clone(), ours.game.clone());
        }
        let shape = |rows: usize, actions: u32| match rows {
            0 => format!("rows of many lengths and {actions} actions"),
            _ => format!("rows of {rows} values and {actions} actions"),
        };
        let row_length = ours.row_len().unwrap_or_default();
        if (model.row_length as usize, model.actions) != (row_length, ours.actions) {
            return wrong(
                shape(model.row_length as usize, model.actions),
                shape(row_length, ours.actions),
            );
        }
        // A dense model from elsewhere has no layout of its own; the server writes its tensors.
        if model.layout_json.is_empty() {
            return Ok(());
        }
        match serde_json::from_str::<RowLayout>(&model.layout_json) {
            Ok(theirs) if theirs == *ours => Ok(()),
            Ok(theirs) if theirs.options != ours.options => wrong(
                format!("{} with options {}", theirs.game, theirs.options),
                format!("options {}", ours.options),
            ),
            _ => wrong(
                format!("another row layout of {}: {}", model.game, model.layout_json),
                serde_json::to_string(ours).unwrap_or_default(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use games::{ConstantPlane, PlaneStack, RowForm};

    use super::*;

    fn layout() -> RowLayout {
        RowLayout {
            game: "small".into(),
            options: 1,
            form: RowForm::Planes(PlaneStack {
                entries: 2,
                planes: 2,
                sparse: vec![0],
                constants: vec![ConstantPlane {
                    name: "counter".into(),
                    plane: 1,
                    divisor: 100,
                    max: 100,
                }],
                ones: vec![],
            }),
            actions: 4,
            mirrored_actions: false,
            policy_head: games::PolicyHead::Dense,
        }
    }

    fn description(layout: &RowLayout) -> ModelDescription {
        ModelDescription {
            version: "7".into(),
            game: layout.game.clone(),
            layout_json: serde_json::to_string(layout).unwrap(),
            row_length: layout.row_len().unwrap_or_default() as u32,
            actions: layout.actions,
            ..Default::default()
        }
    }

    #[test]
    fn a_model_of_another_game_or_representation_is_refused_by_name() {
        let expected = Expected {
            model: "latest".into(),
            layout: layout(),
        };
        let verdict = |change: fn(&mut RowLayout)| {
            let mut theirs = layout();
            change(&mut theirs);
            expected
                .compare(&description(&theirs))
                .map_err(|error| error.to_string())
        };
        assert_eq!(verdict(|_| ()), Ok(()));
        let says = |verdict: Result<(), String>, words: &str| {
            let text = verdict.unwrap_err();
            assert!(text.contains(words), "{text}");
        };
        says(
            verdict(|theirs| theirs.game = "chess".into()),
            "7 is for chess, this actor plays small",
        );
        says(verdict(|theirs| theirs.actions = 5), "5 actions");
        says(
            verdict(|theirs| theirs.options = 3),
            "small with options 3, this actor plays options 1",
        );
        says(
            verdict(|theirs| theirs.mirrored_actions = true),
            "another row layout",
        );
        let dense = ModelDescription {
            layout_json: String::new(),
            ..description(&layout())
        };
        assert_eq!(expected.compare(&dense), Ok(()));
    }
}
