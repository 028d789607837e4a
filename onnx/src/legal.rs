//! Adds the selection of the legal actions' logits to a model, so that the device returns only these. A chess position has
//! 4672 logits and about 35 legal actions.
//!
//! | | name | type | shape |
//! |---|---|---|---|
//! | added input | `legal_actions` | int32 | `[batch, legal]`, padded with any action |
//! | added output | `legal_logits` | f32 | `[batch, legal]`, in the same order |

use prost::Message as _;

use crate::{
    file::{OnnxError, decode},
    graph::{Attribute, Side, node, value_info},
    proto::tensor_proto::DataType,
};

/// Name of the added input.
pub const LEGAL: &str = "legal_actions";
/// Name of the added output.
pub const LEGAL_LOGITS: &str = "legal_logits";

/// Adds [`LEGAL`] and [`LEGAL_LOGITS`] to a model whose output `policy` holds the policy's logits.
///
/// # Errors
/// [`OnnxError`] with the reason.
pub fn with_legal_logits(file: &[u8], policy: &str) -> Result<Vec<u8>, OnnxError> {
    let mut model = decode(file)?;
    let missing = || OnnxError::new(format!("the model has no output `{policy}`"));
    let graph = model.graph.as_mut().ok_or_else(missing)?;
    if !graph.output.iter().any(|output| output.name() == policy) {
        return Err(missing());
    }
    for name in [LEGAL, LEGAL_LOGITS] {
        let mut names = graph.input.iter().chain(&graph.output).map(|info| info.name());
        if names.any(|there| there == name) {
            return Err(OnnxError::new(format!(
                "the model already has an input or output `{name}`"
            )));
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
