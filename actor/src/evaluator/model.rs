//! Compares the server's model with the game and its representation.
//!
//! Rows of one game can be valid rows of another model's layout. The replies of such a model would look valid and be noise. So
//! the layouts are compared whenever a stream is opened and whenever a new version has answered.

use std::time::Duration;

use anyhow::bail;
use games::{Game, RowLayout};
use proto::v1::{DescribeModelRequest, ModelDescription, evaluator_client::EvaluatorClient};
use service::connect::Link;
use tonic::Status;

/// Properties that the server's model must have.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Label or version of the model.
    pub model: String,
    /// Meaning of the rows.
    pub layout: RowLayout,
}

impl Expected {
    /// Returns the properties that a model of game `G` with the name `model` must have.
    pub fn of<G: Game>(encoding: G::Encoding, model: &str) -> Self {
        Self {
            model: model.into(),
            layout: G::layout(encoding),
        }
    }

    /// Requests the description of a model from the server and compares it. The inner result is that of the comparison.
    pub(super) async fn check(
        &self,
        client: &mut EvaluatorClient<Link>,
        model: String,
        limit: Duration,
    ) -> Result<anyhow::Result<ModelDescription>, Status> {
        let described = client.describe_model(DescribeModelRequest { model });
        let description = tokio::time::timeout(limit, described)
            .await
            .map_err(|_| Status::deadline_exceeded("the model was not described in time"))??
            .into_inner();
        Ok(self.compare(&description).map(|()| description))
    }

    /// Fails if the model belongs to another game or another representation. The error names both inputs in words.
    fn compare(&self, model: &ModelDescription) -> anyhow::Result<()> {
        let ours = &self.layout;
        let wrong = |theirs: String, ours: String| {
            let version = &model.version;
            bail!("the inference server's model {version} is for {theirs}, this actor plays {ours}");
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
        // A dense model made by other software has no layout; the server expands the rows for it.
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
                height: 8,
                width: 8,
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
        expected.compare(&dense).unwrap();
    }
}
