//! Adds the selection of the legal actions' logits to a model, so that the device returns only these. A chess position has
//! 4672 logits and about 35 legal actions.
//!
//! | | name | type | shape |
//! |---|---|---|---|
//! | added input | `legal_actions` | int32 | `[batch, legal]`, padded with any action |
//! | added output | `legal_logits` | f32 | `[batch, legal]`, in the same order |

use prost::Message as _;

use crate::{
    graph::{Attribute, Side, node, value_info},
    proto::{ModelProto, tensor_proto::DataType},
};

/// Name of the added input.
pub const LEGAL: &str = "legal_actions";
/// Name of the added output.
pub const LEGAL_LOGITS: &str = "legal_logits";

/// Error: the selection cannot be added to a model.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum LegalError {
    /// The bytes are not an ONNX file.
    #[error("not an onnx file: {0}")]
    File(prost::DecodeError),
    /// The model has no output of this name.
    #[error("the model has no output `{0}`")]
    NoPolicy(String),
    /// The model already has an input or output of this name.
    #[error("the model already has an input or output `{0}`")]
    Taken(&'static str),
}

// The message holds the cause, so that `source` does not return it again.
impl From<prost::DecodeError> for LegalError {
    fn from(error: prost::DecodeError) -> Self {
        Self::File(error)
    }
}

/// Adds [`LEGAL`] and [`LEGAL_LOGITS`] to a model whose output `policy` holds the policy's logits.
///
/// # Errors
/// [`LegalError`] with the reason.
pub fn with_legal_logits(file: &[u8], policy: &str) -> Result<Vec<u8>, LegalError> {
    let mut model = ModelProto::decode(file)?;
    let missing = || LegalError::NoPolicy(policy.to_owned());
    let graph = model.graph.as_mut().ok_or_else(missing)?;
    if !graph.output.iter().any(|output| output.name() == policy) {
        return Err(missing());
    }
    for name in [LEGAL, LEGAL_LOGITS] {
        let mut names = graph.input.iter().chain(&graph.output).map(|info| info.name());
        if names.any(|there| there == name) {
            return Err(LegalError::Taken(name));
        }
    }
    let axis = [("axis", Attribute::Int(1))];
    // Logits may come as planes, `[batch, 73, 8, 8]`.
    let flat = format!("{LEGAL_LOGITS}/flat");
    graph.node.push(node("Flatten", &[policy], &flat, &axis));
    graph
        .node
        .push(node("GatherElements", &[&flat, LEGAL], LEGAL_LOGITS, &axis));
    let sides = [Side::Free("batch"), Side::Free("legal")];
    graph.input.push(value_info(LEGAL, DataType::Int32, &sides));
    graph
        .output
        .push(value_info(LEGAL_LOGITS, DataType::Float, &sides));
    Ok(model.encode_to_vec())
}
