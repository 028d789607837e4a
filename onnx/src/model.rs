//! Whole model files.
//!
//! **Contract between the programs that write models and those that run them**
//!
//! | | name | type | shape |
//! |---|---|---|---|
//! | input ([`Input::Rows`]) | `indices` | int32 | `[batch, row_len]` |
//! | input ([`Input::Planes`]) | `planes` | f32 | `[batch, planes, height, width]` |
//! | output | `policy_logits` | f32 | `[batch, actions]` |
//! | output | `value` | f32 | `[batch, 1]`, in [-1, 1], from the point of view of the player to act |
//! | output, of networks with three outcomes | `wdl` | f32 | `[batch, 3]`: probabilities of a win, a draw and a loss; `value` is win - loss |
//!
//! Metadata: `minuet.layout` (the [`RowLayout`] as JSON), `minuet.game`, `minuet.step`; for the generator game
//! `minuet.pairs_seen`. Opset 18, IR version 9.

use games::RowLayout;
use prost::Message as _;

use crate::{
    expansion,
    file::{OnnxError, decode},
    graph::{Graph, Side},
    network::TowerWeights,
    proto::{ModelProto, OperatorSetIdProto, StringStringEntryProto, tensor_proto::DataType},
    tower,
};

/// Name of the input of a model that takes rows.
pub const ROWS: &str = "indices";
/// Name of the input of a model that takes planes.
pub const PLANES: &str = "planes";
/// Name of the policy output.
pub const POLICY: &str = "policy_logits";
/// Name of the value output.
pub const VALUE: &str = "value";
/// Name of the output with the probabilities of a win, a draw and a loss, of networks that have it.
pub const OUTCOMES: &str = "wdl";
/// Metadata key of the row layout.
pub const LAYOUT_KEY: &str = "minuet.layout";
/// Metadata key of the game's name.
pub const GAME_KEY: &str = "minuet.game";
/// Metadata key of the training step.
pub const STEP_KEY: &str = "minuet.step";

/// Metadata key of the number of samples with two goals, one after the other, that the network was trained on. Only games with
/// such problems have it.
pub const PAIRS_KEY: &str = "minuet.pairs_seen";

/// Opset version of the operators.
pub(crate) const OPSET: i64 = 18;

/// Input of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Index rows, which the graph expands. The form of the models that Minuet trains.
    Rows,
    /// Expanded planes, as in models made elsewhere.
    Planes,
}

/// Metadata of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Row layout of the input.
    pub layout: RowLayout,
    /// Training steps at the time of the export.
    pub step: u64,
}

/// Writes the file of a tower.
///
/// # Errors
/// [`OnnxError`] if the weights do not fit each other or the layout.
pub fn build(weights: &TowerWeights, metadata: &Metadata, input: Input) -> Result<Vec<u8>, OnnxError> {
    let layout = &metadata.layout;
    weights.check(layout)?;
    let stack = layout.stack().map_err(OnnxError::new)?;
    let batch = Side::Free("batch");
    let mut graph = Graph::new("minuet");
    let planes = match input {
        Input::Rows => {
            let sides = [batch, Side::Fixed(stack.row_len())];
            let rows = graph.input(ROWS, DataType::Int32, &sides);
            expansion::expand(&mut graph, stack, &rows)
        }
        Input::Planes => {
            let [planes, height, width] = stack.shape().map(Side::Fixed);
            graph.input(PLANES, DataType::Float, &[batch, planes, height, width])
        }
    };
    let heads = tower::tower(&mut graph, weights, &planes);
    let actions = [batch, Side::Fixed(layout.actions as usize)];
    graph.output(POLICY, &heads.policy_logits, DataType::Float, &actions);
    graph.output(VALUE, &heads.value, DataType::Float, &[batch, Side::Fixed(1)]);
    if let Some(outcomes) = &heads.outcomes {
        graph.output(OUTCOMES, outcomes, DataType::Float, &[batch, Side::Fixed(3)]);
    }
    file(graph, metadata)
}

pub(crate) fn file(graph: Graph, metadata: &Metadata) -> Result<Vec<u8>, OnnxError> {
    let layout = serde_json::to_string(&metadata.layout).map_err(OnnxError::new)?;
    let model = ModelProto {
        ir_version: Some(9),
        producer_name: Some("minuet".into()),
        producer_version: Some(env!("CARGO_PKG_VERSION").into()),
        opset_import: vec![OperatorSetIdProto {
            domain: Some(String::new()),
            version: Some(OPSET),
        }],
        metadata_props: vec![
            entry(LAYOUT_KEY, layout),
            entry(GAME_KEY, metadata.layout.game.clone()),
            entry(STEP_KEY, metadata.step.to_string()),
        ],
        graph: Some(graph.finish()),
        ..ModelProto::default()
    };
    Ok(model.encode_to_vec())
}

fn entry(key: &str, value: String) -> StringStringEntryProto {
    StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value),
    }
}

/// Adds an entry to the metadata of a file.
///
/// # Errors
/// [`OnnxError`] if the bytes are not an ONNX file.
pub fn with_entry(file: &[u8], key: &str, value: &str) -> Result<Vec<u8>, OnnxError> {
    let mut model = decode(file)?;
    model.metadata_props.push(entry(key, value.to_owned()));
    Ok(model.encode_to_vec())
}

/// Reads one entry of a file's metadata. `None` if there is none with this key.
///
/// # Errors
/// [`OnnxError`] if the bytes are not an ONNX file.
pub fn entry_of(file: &[u8], key: &str) -> Result<Option<String>, OnnxError> {
    let model = decode(file)?;
    Ok(entry_in(&model, key).map(str::to_owned))
}

/// Reads a file's metadata without a runtime.
///
/// # Errors
/// [`OnnxError`] if the file or its metadata cannot be read. The layout is checked.
pub fn metadata_of(file: &[u8]) -> Result<Metadata, OnnxError> {
    metadata_in(&decode(file)?)
}

/// Reads the metadata of a decoded file, as [`metadata_of`].
pub(crate) fn metadata_in(model: &ModelProto) -> Result<Metadata, OnnxError> {
    let layout = entry_in(model, LAYOUT_KEY)
        .ok_or_else(|| OnnxError::new(format!("the metadata has no `{LAYOUT_KEY}`")))?;
    parse_metadata(layout, entry_in(model, STEP_KEY))
}

fn entry_in<'a>(model: &'a ModelProto, key: &str) -> Option<&'a str> {
    let mut entries = model.metadata_props.iter();
    entries
        .find(|entry| entry.key() == key)
        .map(|entry| entry.value())
}

/// Parses metadata that a runtime has read from its file.
///
/// # Errors
/// [`OnnxError`] if a value cannot be parsed. The layout is checked.
pub fn parse_metadata(layout: &str, step: Option<&str>) -> Result<Metadata, OnnxError> {
    let fault = |key: &str, reason: String| {
        OnnxError::new(format!("the metadata's `{key}` cannot be read: {reason}"))
    };
    let layout: RowLayout =
        serde_json::from_str(layout).map_err(|error| fault(LAYOUT_KEY, error.to_string()))?;
    layout
        .check()
        .map_err(|error| fault(LAYOUT_KEY, error.to_string()))?;
    let not_a_number = |text: &str| fault(STEP_KEY, format!("`{text}` is not a whole number"));
    let step = step.map_or(Ok(0), |text| text.parse().map_err(|_| not_a_number(text)))?;
    Ok(Metadata { layout, step })
}
