//! Parses a request's tensors, and writes its answer as tensors.
//!
//! | input | type | shape | |
//! |---|---|---|---|
//! | `indices` | UINT32 or INT32 | `[n, row]` | index rows; rows of different lengths are padded with -1 |
//! | `planes` | FP32 | `[n, planes, height, width]` | in place of `indices` |
//! | `legal_actions` | INT32 or UINT32 | `[n, k]` | optional; padded with negative numbers |
//!
//! | output | type | shape | |
//! |---|---|---|---|
//! | `policy_logits` | FP32 | `[n, actions]` | without `legal_actions` |
//! | `priors` | FP32 | `[n, k]` | priors of the legal actions, 0 for padding |
//! | `value` | FP32 | `[n, 1]` | value for the player to act, in [-1, 1] |

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use games::{PlaneStack, RowLayout};
use onnx::model::{PLANES, POLICY, ROWS, VALUE};
use proto::inference::{
    InferParameter, InferTensorContents, ModelInferRequest, ModelInferResponse,
    infer_parameter::ParameterChoice, model_infer_response::InferOutputTensor,
};

use super::{
    dense,
    error::{check_number, invalid, unexpected, wrong_number},
    tensor::{self, Input},
};
use tokio::time::Instant;
use tonic::Status;

use crate::{
    batching::job::Evaluation,
    intake::{
        request::{EvaluationRequest, Priority, Wants},
        validate::too_large,
    },
};

/// Name of the input with the legal actions, whose priors are returned.
pub const LEGAL: &str = "legal_actions";
/// Name of the output with the priors.
pub const PRIORS: &str = "priors";

/// Largest number of outputs of a request.
const MOST_OUTPUTS: usize = 2;

/// Triton's parameter for marking the last response to a request. Every request has one response here.
const FINAL_REQUESTED: &str = "triton_enable_empty_final_response";
/// Parameter of a response that is the last one.
const IS_FINAL: &str = "triton_final_response";

/// A parsed request.
#[derive(Debug)]
pub struct InferRequest {
    /// The request in the form shared by both protocols.
    pub request: EvaluationRequest,
    /// Form of the answer.
    pub form: Form,
}

/// Form of an answer: the requested outputs.
#[derive(Debug)]
pub struct Form {
    name: String,
    id: String,
    positions: usize,
    policy: PolicyOutput,
    outputs: Vec<Output>,
    is_raw: bool,
    final_requested: bool,
}

/// Form of the policy output.
#[derive(Debug, PartialEq, Eq)]
enum PolicyOutput {
    /// All logits; the number of actions per position.
    Logits(usize),
    /// Priors of the legal actions, `width` per position.
    Priors {
        /// False for padding.
        is_legal: Vec<bool>,
        width: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Policy,
    Value,
}

impl InferRequest {
    /// Parses a request for a model of this layout. The numbers are validated later, by [`crate::intake::validate`].
    ///
    /// # Errors
    /// A status that names the tensor.
    pub fn read(request: ModelInferRequest, layout: &RowLayout, max_request: usize) -> Result<Self, Status> {
        let (deadline, priority) = parameters(&request)?;
        let inputs = tensor::inputs(&request)?;
        let model = &request.model_name;
        if let Some(other) = inputs
            .iter()
            .find(|input| ![ROWS, PLANES, LEGAL].contains(&input.name()))
        {
            let known = "'indices' or 'planes', and 'legal_actions'";
            return Err(unexpected("input", other.name(), model, known));
        }
        let named = |name: &str| inputs.iter().find(|input| input.name() == name);
        let check = |positions| match positions > max_request {
            true => Err(invalid(too_large(positions, max_request))),
            false => Ok(positions),
        };
        let (positions, (indices, row_lengths)) = match (named(ROWS), named(PLANES)) {
            (Some(rows), None) => {
                // 0 means rows of different lengths.
                let positions = rows.positions(&[layout.row_len().unwrap_or_default()])?;
                (check(positions)?, read_rows(rows, layout)?)
            }
            (None, Some(planes)) => {
                let stack = layout.stack().map_err(|error| invalid(error.to_string()))?;
                let positions = planes.positions(&stack.shape())?;
                (check(positions)?, (read_planes(planes, stack)?, Vec::new()))
            }
            (None, None) => {
                return Err(invalid(format!("model '{model}' needs an input '{ROWS}'")));
            }
            (Some(_), Some(_)) => {
                return Err(invalid("give 'indices' or 'planes', not both"));
            }
        };
        let mut evaluation = EvaluationRequest {
            indices,
            row_lengths,
            legal_counts: vec![0; positions],
            wants: Wants::Logits,
            priority,
            deadline,
            ..EvaluationRequest::default()
        };
        let policy = match named(LEGAL) {
            None => PolicyOutput::Logits(layout.actions as usize),
            Some(legal) => read_legal(legal, positions, layout, &mut evaluation)?,
        };
        let outputs = outputs(&request, &policy)?;
        Ok(Self {
            form: Form {
                is_raw: !request.raw_input_contents.is_empty(),
                final_requested: request.parameters.contains_key(FINAL_REQUESTED),
                name: request.model_name,
                id: request.id,
                positions,
                policy,
                outputs,
            },
            request: evaluation,
        })
    }
}

/// Parses deadline and priority. The protocol's priority 1, the highest, is that of play; it is the default, because clients of this
/// protocol are not actors.
fn parameters(request: &ModelInferRequest) -> Result<(Option<Instant>, Priority), Status> {
    let (mut deadline, mut priority) = (None, Priority::Play);
    for (name, value) in &request.parameters {
        let number = match value.parameter_choice {
            Some(ParameterChoice::Int64Param(number)) => u64::try_from(number).ok(),
            Some(ParameterChoice::Uint64Param(number)) => Some(number),
            _ => None,
        };
        match (name.as_str(), number) {
            (FINAL_REQUESTED, _) => {}
            ("timeout", Some(0)) | ("priority", Some(0 | 1)) => {}
            ("timeout", Some(number)) => deadline = Instant::now().checked_add(Duration::from_micros(number)),
            ("priority", Some(_)) => priority = Priority::SelfPlay,
            ("timeout" | "priority", None) => {
                return Err(invalid(format!("parameter '{name}' must be a number, 0 or more")));
            }
            _ => {
                let known = "'timeout' (microseconds) and 'priority'";
                return Err(unexpected("parameter", name, &request.model_name, known));
            }
        }
    }
    Ok((deadline, priority))
}

/// Returns the rows back to back, without padding, and the length of each row if the layout's rows differ in length.
fn read_rows(rows: &Input<'_>, layout: &RowLayout) -> Result<(Vec<u32>, Vec<u32>), Status> {
    let width = rows.width();
    let differ = layout.row_len().is_none();
    match rows.datatype() {
        "UINT32" => {
            let numbers = rows.read::<u32>()?;
            let count = if differ { numbers.len() / width } else { 0 };
            Ok((numbers, vec![width as u32; count]))
        }
        "INT32" => {
            let mut numbers = rows.read::<i32>()?;
            let mut lengths = Vec::new();
            for (position, row) in numbers.chunks(width).enumerate() {
                let filled = row
                    .iter()
                    .rposition(|&number| number >= 0)
                    .map_or(0, |last| last + 1);
                let length = if differ { filled } else { width };
                if let Some(at) = row.iter().take(length).position(|&number| number < 0) {
                    let reason = format!("value {at}: {} is negative", row[at]);
                    return Err(wrong_number(ROWS, position, &reason));
                }
                if differ {
                    lengths.push(length as u32);
                }
            }
            numbers.retain(|&number| number >= 0);
            Ok((numbers.into_iter().map(i32::cast_unsigned).collect(), lengths))
        }
        _ => Err(rows.datatype_error("UINT32 or INT32")),
    }
}

fn read_planes(planes: &Input<'_>, stack: &PlaneStack) -> Result<Vec<u32>, Status> {
    let numbers = planes.read::<f32>()?;
    let mut rows = Vec::with_capacity(numbers.len() / stack.tensor_len() * stack.row_len());
    for (position, planes) in numbers.chunks(stack.tensor_len()).enumerate() {
        dense::collapse(stack, planes, &mut rows)
            .map_err(|reason| wrong_number(PLANES, position, &reason))?;
    }
    Ok(rows)
}

fn read_legal(
    legal: &Input<'_>,
    positions: usize,
    layout: &RowLayout,
    evaluation: &mut EvaluationRequest,
) -> Result<PolicyOutput, Status> {
    // No position has more legal actions than there are actions.
    let width = legal.width();
    let found = legal.positions(&[width.min(layout.actions as usize)])?;
    if found != positions {
        return Err(invalid(format!(
            "input '{LEGAL}' has {found} positions, the request has {positions}"
        )));
    }
    // Numbers above i32::MAX are kept: validation refuses them as unknown actions.
    let numbers: Vec<i64> = match legal.datatype() {
        "INT32" => legal.read::<i32>()?.into_iter().map(i64::from).collect(),
        "UINT32" => legal.read::<u32>()?.into_iter().map(i64::from).collect(),
        _ => return Err(legal.datatype_error("INT32 or UINT32")),
    };
    let is_legal: Vec<bool> = numbers.iter().map(|&number| number >= 0).collect();
    evaluation.wants = Wants::Priors;
    evaluation.legal_actions = numbers
        .into_iter()
        .filter_map(|number| u32::try_from(number).ok())
        .collect();
    evaluation.legal_counts = is_legal
        .chunks(width)
        .map(|is_legal| is_legal.iter().filter(|&&is_legal| is_legal).count() as u32)
        .collect();
    Ok(PolicyOutput::Priors { is_legal, width })
}

fn outputs(request: &ModelInferRequest, policy: &PolicyOutput) -> Result<Vec<Output>, Status> {
    if request.outputs.is_empty() {
        return Ok(vec![Output::Policy, Output::Value]);
    }
    check_number("outputs", request.outputs.len(), MOST_OUTPUTS)?;
    let has_legal = matches!(policy, PolicyOutput::Priors { .. });
    let mut outputs = Vec::with_capacity(request.outputs.len());
    for output in &request.outputs {
        if let Some(parameter) = output.parameters.keys().next() {
            return Err(invalid(format!(
                "output '{}': the parameter '{parameter}' is not supported",
                output.name
            )));
        }
        let kind = match output.name.as_str() {
            POLICY if has_legal => {
                return Err(invalid(
                    "with an input 'legal_actions' the policy output is 'priors', not 'policy_logits'",
                ));
            }
            PRIORS if !has_legal => {
                return Err(invalid(
                    "output 'priors' needs an input 'legal_actions' [n, k]; without one, request 'policy_logits'",
                ));
            }
            POLICY | PRIORS => Output::Policy,
            VALUE => Output::Value,
            other => {
                let known = "'policy_logits' or 'priors', and 'value'";
                return Err(unexpected("output", other, &request.model_name, known));
            }
        };
        if outputs.contains(&kind) {
            return Err(invalid(format!("output '{}' is requested twice", output.name)));
        }
        outputs.push(kind);
    }
    Ok(outputs)
}

impl Form {
    /// Writes the answer as tensors.
    pub fn fill(self, evaluation: Evaluation) -> ModelInferResponse {
        let Evaluation {
            version,
            values,
            policy: numbers,
        } = evaluation;
        let (name, width, policy) = match self.policy {
            PolicyOutput::Logits(width) => (POLICY, width, numbers),
            PolicyOutput::Priors { is_legal, width } => {
                let mut priors = numbers.into_iter();
                let prior = |is_legal| {
                    if is_legal {
                        priors.next().unwrap_or_default()
                    } else {
                        0.0
                    }
                };
                (PRIORS, width, is_legal.into_iter().map(prior).collect())
            }
        };
        let mut response = ModelInferResponse {
            model_name: self.name,
            model_version: version,
            id: self.id,
            ..ModelInferResponse::default()
        };
        if self.final_requested {
            let parameter = InferParameter {
                parameter_choice: Some(ParameterChoice::BoolParam(true)),
            };
            response.parameters.insert(IS_FINAL.into(), parameter);
        }
        for output in self.outputs {
            let (name, width, numbers) = match output {
                Output::Policy => (name, width, &policy),
                Output::Value => (VALUE, 1, &values),
            };
            let contents = if self.is_raw {
                response.raw_output_contents.push(bytes_of(numbers));
                None
            } else {
                Some(InferTensorContents {
                    fp32_contents: numbers.clone(),
                    ..InferTensorContents::default()
                })
            };
            response.outputs.push(InferOutputTensor {
                name: name.into(),
                datatype: "FP32".into(),
                shape: vec![self.positions as i64, width as i64],
                contents,
                ..InferOutputTensor::default()
            });
        }
        response
    }
}

fn bytes_of(numbers: &[f32]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(numbers.len() * 4);
    for &number in numbers {
        bytes.put_f32_le(number);
    }
    bytes.freeze()
}

#[cfg(test)]
mod tests;
