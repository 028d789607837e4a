//! Whole model files.
//!
//! **Contract between the programs that write models and those that run them**
//!
//! | | name | type | shape |
//! |---|---|---|---|
//! | input ([`Input::Rows`]) | `indices` | int32 | `[batch, row_len]` |
//! | input ([`Input::Planes`]) | `planes` | f32 | `[batch, planes, 8, 8]` |
//! | output | `policy_logits` | f32 | `[batch, actions]` |
//! | output | `value` | f32 | `[batch, 1]`, in [-1, 1], from the point of view of the player to act |
//! | output, of networks with three outcomes | `wdl` | f32 | `[batch, 3]`: probabilities of a win, a draw and a loss; `value` is win - loss |
//!
//! Metadata: `minuet.layout` (the [`RowLayout`] as JSON), `minuet.game`, `minuet.step`; for the generator game
//! `minuet.pairs_seen`. Opset 18, IR version 9.

use games::{PlaneStack, RowLayout};
use prost::Message as _;

use crate::{
    expansion,
    graph::{Graph, Side},
    network::TowerWeights,
    proto::{ModelProto, OperatorSetIdProto, StringStringEntryProto, tensor_proto::DataType},
    tower,
    weights::NetworkError,
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
const OPSET: i64 = 18;

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

/// Error: a model's metadata is missing or invalid.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The bytes are not an ONNX file.
    #[error("not an onnx file: {0}")]
    File(prost::DecodeError),
    /// A key is missing.
    #[error("the metadata has no `{0}`")]
    Missing(&'static str),
    /// A value cannot be parsed.
    #[error("the metadata's `{key}` cannot be read: {reason}")]
    Value {
        /// Key of the value.
        key: &'static str,
        /// Reason.
        reason: String,
    },
}

// The message holds the cause, so that `source` does not return it again.
impl From<prost::DecodeError> for MetadataError {
    fn from(error: prost::DecodeError) -> Self {
        Self::File(error)
    }
}

/// Writes the file of a tower.
///
/// # Errors
/// [`NetworkError`] if the weights do not fit each other or the layout.
pub fn build(weights: &TowerWeights, metadata: &Metadata, input: Input) -> Result<Vec<u8>, NetworkError> {
    let layout = &metadata.layout;
    weights.check(layout)?;
    let stack = stack_of(layout)?;
    let batch = Side::Free("batch");
    let mut graph = Graph::new("minuet");
    let planes = match input {
        Input::Rows => {
            let sides = [batch, Side::Fixed(stack.row_len())];
            let rows = graph.input(ROWS, DataType::Int32, &sides);
            expansion::expand(&mut graph, stack, &rows)
        }
        Input::Planes => {
            let planes = Side::Fixed(stack.planes as usize);
            let sides = [batch, planes, Side::Fixed(8), Side::Fixed(8)];
            graph.input(PLANES, DataType::Float, &sides)
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

/// Writes a file with the expansion only: input `indices`, output `planes`. For tests and measurements.
///
/// # Errors
/// [`NetworkError::Layout`] if the layout contradicts itself.
pub fn build_expansion(metadata: &Metadata) -> Result<Vec<u8>, NetworkError> {
    let layout = &metadata.layout;
    layout
        .check()
        .map_err(|error| NetworkError::Layout(error.to_string()))?;
    let stack = stack_of(layout)?;
    let batch = Side::Free("batch");
    let mut graph = Graph::new("minuet-expansion");
    let rows = graph.input(ROWS, DataType::Int32, &[batch, Side::Fixed(stack.row_len())]);
    let planes = expansion::expand(&mut graph, stack, &rows);
    let sides = [
        batch,
        Side::Fixed(stack.planes as usize),
        Side::Fixed(8),
        Side::Fixed(8),
    ];
    graph.output(PLANES, &planes, DataType::Float, &sides);
    file(graph, metadata)
}

/// Returns the layout's planes, which a tower needs.
fn stack_of(layout: &RowLayout) -> Result<&PlaneStack, NetworkError> {
    layout
        .stack()
        .map_err(|error| NetworkError::Layout(error.to_string()))
}

pub(crate) fn file(graph: Graph, metadata: &Metadata) -> Result<Vec<u8>, NetworkError> {
    let layout =
        serde_json::to_string(&metadata.layout).map_err(|error| NetworkError::Layout(error.to_string()))?;
    let entry = |key: &str, value: String| StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value),
    };
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

/// Adds an entry to the metadata of a file.
///
/// # Errors
/// [`MetadataError::File`] if the bytes are not an ONNX file.
pub fn with_entry(file: &[u8], key: &str, value: &str) -> Result<Vec<u8>, MetadataError> {
    let mut model = ModelProto::decode(file)?;
    model.metadata_props.push(StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value.to_owned()),
    });
    Ok(model.encode_to_vec())
}

/// Reads one entry of a file's metadata. `None` if there is none with this key.
///
/// # Errors
/// [`MetadataError::File`] if the bytes are not an ONNX file.
pub fn entry_of(file: &[u8], key: &str) -> Result<Option<String>, MetadataError> {
    let model = ModelProto::decode(file)?;
    let found = model.metadata_props.iter().find(|entry| entry.key() == key);
    Ok(found.map(|entry| entry.value().to_owned()))
}

/// Reads a file's metadata without a runtime.
///
/// # Errors
/// [`MetadataError`] if the file or its metadata cannot be read. The layout is checked.
pub fn metadata_of(file: &[u8]) -> Result<Metadata, MetadataError> {
    metadata_in(&ModelProto::decode(file)?)
}

/// Reads the metadata of a decoded file, as [`metadata_of`].
pub(crate) fn metadata_in(model: &ModelProto) -> Result<Metadata, MetadataError> {
    let find = |key: &'static str| {
        model
            .metadata_props
            .iter()
            .find(|entry| entry.key() == key)
            .map(StringStringEntryProto::value)
            .ok_or(MetadataError::Missing(key))
    };
    parse_metadata(find(LAYOUT_KEY)?, find(STEP_KEY).ok())
}

/// Parses metadata that a runtime has read from its file.
///
/// # Errors
/// [`MetadataError::Value`] if a value cannot be parsed. The layout is checked.
pub fn parse_metadata(layout: &str, step: Option<&str>) -> Result<Metadata, MetadataError> {
    let fault = |key: &'static str, reason: String| MetadataError::Value { key, reason };
    let layout: RowLayout =
        serde_json::from_str(layout).map_err(|error| fault(LAYOUT_KEY, error.to_string()))?;
    layout
        .check()
        .map_err(|error| fault(LAYOUT_KEY, error.to_string()))?;
    let step = match step {
        None => 0,
        Some(text) => text
            .parse()
            .map_err(|_| fault(STEP_KEY, format!("`{text}` is not a whole number")))?,
    };
    Ok(Metadata { layout, step })
}
