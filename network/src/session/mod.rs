//! A model in ONNX Runtime: rows in, logits and values out.
//!
//! | module | contents |
//! |---|---|
//! | `binding` | batches in memory that the device reads and writes itself |
//! | [`expanded`] | models whose rows differ in length |

mod binding;
pub mod expanded;

use std::collections::HashMap;

use games::{PlaneStack, RowLayout};
use onnx::{
    int8::{Probe, Range},
    legal::LEGAL,
    model::{LAYOUT_KEY, POLICY, STEP_KEY, VALUE},
};
use ort::{
    session::{Session, SessionOutputs as SessionOutputValues},
    value::{DynValue, Outlet, Tensor, TensorElementType, ValueType},
};
use serde::{Deserialize, Serialize};

use crate::{
    batch::{Batch, Outputs, RunError, Runner, numbers},
    loader::LoadError,
    provider::first_line,
    session::binding::Binding,
};

/// Form of a model's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputForm {
    /// Rows, which the graph expands.
    Rows,
    /// Planes, which the server expands.
    Planes,
}

/// Names of a model's inputs and outputs, and the meaning of its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// Name of the input. `None`: the only input.
    pub input: Option<String>,
    /// Name of the output with the policy logits.
    pub policy: String,
    /// Name of the output with the value.
    pub value: String,
    /// Meaning of the value.
    pub value_kind: ValueKind,
}

impl Default for Contract {
    /// Returns the contract of the models that Minuet makes.
    fn default() -> Self {
        Self {
            input: None,
            policy: POLICY.into(),
            value: VALUE.into(),
            value_kind: ValueKind::Tanh,
        }
    }
}

impl Contract {
    /// Returns the SHA-256, in hexadecimal, of everything that a model's outputs depend on: the `digest` of its file, its
    /// layout, and this contract.
    pub fn identity(&self, digest: &str, layout: &RowLayout) -> String {
        let all = serde_json::json!({ "file": digest, "layout": layout, "contract": self });
        checkpoints::version::sha256_hex(all.to_string().as_bytes())
    }

    /// Returns the outputs of a batch of `size` positions.
    fn outputs(&self, logits: DynValue, values: DynValue, size: usize) -> Result<Outputs, RunError> {
        let kind = self.value_kind;
        let values = checked(values, "values", size * kind.width())?;
        let values = numbers(&values).chunks(kind.width());
        Ok(Outputs::of_runtime(
            logits,
            values.map(|numbers| kind.value(numbers)).collect(),
        ))
    }
}

/// Meaning of a model's value, from the point of view of the player to act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueKind {
    /// One number in [-1, 1].
    #[default]
    Tanh,
    /// One number in [0, 1]: the expected score.
    Probability,
    /// Three numbers: the probabilities of a win, a draw and a loss.
    WinDrawLoss,
    /// Three numbers: the logits of a win, a draw and a loss.
    WinDrawLossLogits,
}

impl ValueKind {
    /// Returns the number of outputs per position.
    pub fn width(self) -> usize {
        match self {
            Self::Tanh | Self::Probability => 1,
            Self::WinDrawLoss | Self::WinDrawLossLogits => 3,
        }
    }

    /// Returns the value of a position in [-1, 1].
    fn value(self, numbers: &[f32]) -> f32 {
        match (self, numbers) {
            (Self::Tanh, &[value]) => value,
            (Self::Probability, &[score]) => 2.0 * score - 1.0,
            (Self::WinDrawLoss, &[win, _, loss]) => win - loss,
            (Self::WinDrawLossLogits, &[win, draw, loss]) => {
                let largest = win.max(draw).max(loss);
                let [win, draw, loss] = [win, draw, loss].map(|logit| (logit - largest).exp());
                (win - loss) / (win + draw + loss)
            }
            // Unreachable: the width was checked when the model was loaded.
            _ => f32::NAN,
        }
    }
}

/// A model over a stack of planes in an ONNX Runtime session.
pub struct SessionRunner {
    /// Session for batches of any size.
    session: Session,
    /// Sessions of the same model that were compiled for one batch size each, which some providers run faster.
    fixed: Vec<(usize, Session)>,
    input_form: InputForm,
    /// Name of the input.
    input: String,
    contract: Contract,
    stack: PlaneStack,
    actions: usize,
    /// Bound memory, for a model that picks legal logits itself.
    bound: Option<Binding>,
}

impl SessionRunner {
    /// Makes a runner of a session that is a model over `layout` with the inputs and outputs of `contract`.
    ///
    /// # Errors
    /// [`LoadError`] that names the first difference.
    pub fn new(session: Session, layout: &RowLayout, contract: &Contract) -> Result<Self, LoadError> {
        check_metadata(&session, layout)?;
        let stack = layout
            .stack()
            .map_err(|error| contract_error("rows", &error.to_string(), "planes"))?;
        let mut inputs = session.inputs().iter().filter(|input| input.name() != LEGAL);
        let (Some(input), None) = (inputs.next(), inputs.next()) else {
            return Err(contract_error("inputs", &names(session.inputs()), "one"));
        };
        if let Some(expected) = contract.input.as_deref().filter(|name| *name != input.name()) {
            return Err(contract_error("input", input.name(), expected));
        }
        let input_form = input_form(input, stack)?;
        let actions = layout.actions as usize;
        for (name, width) in [
            (&contract.policy, actions),
            (&contract.value, contract.value_kind.width()),
        ] {
            let output = session
                .outputs()
                .iter()
                .find(|output| output.name() == name)
                .ok_or_else(|| contract_error("outputs", &names(session.outputs()), name))?;
            check_output(output, width)?;
        }
        Ok(Self {
            input_form,
            input: input.name().to_owned(),
            session,
            fixed: Vec::new(),
            contract: contract.clone(),
            stack: stack.clone(),
            actions,
            bound: None,
        })
    }

    /// Puts batches into bound memory from now on, pinned for the GPU of this index if there is one, so that only the wanted outputs
    /// come back. The model must have the input and the output of [`onnx::legal`].
    ///
    /// # Errors
    /// [`LoadError`] if the memory is not available.
    pub fn bind(&mut self, gpu: Option<u32>) -> Result<(), LoadError> {
        let binding = Binding::new(&self.session, gpu);
        self.bound = Some(binding.map_err(|error| {
            let reason = first_line(&error.to_string());
            LoadError::Unsuitable(format!("cannot allocate memory for the device: {reason}"))
        })?);
        Ok(())
    }

    /// Returns the name of the model's batch dimension. `None` if it has no name.
    pub fn batch_symbol(&self) -> Option<String> {
        match self.session.inputs().first()?.dtype() {
            ValueType::Tensor {
                dimension_symbols, ..
            } => dimension_symbols.first().cloned(),
            _ => None,
        }
        .filter(|symbol| !symbol.is_empty())
    }

    /// Adds a session of the same model that takes only batches of `size` positions.
    pub fn add_fixed(&mut self, size: usize, session: Session) {
        self.fixed.push((size, session));
    }

    /// Runs a batch and returns the ranges of tensors, for a model that gives them ([`onnx::int8::with_ranges`]).
    ///
    /// # Errors
    /// [`RunError`] if the model fails or gives no such ranges.
    pub fn ranges(&mut self, batch: Batch, tensors: &[String]) -> Result<HashMap<String, Range>, RunError> {
        let input = self.tensor(batch)?;
        let name = self.input.as_str();
        let outputs = self.session.run(ort::inputs![name => input]).map_err(failed)?;
        let ranges = tensors.iter().map(|tensor| {
            let [low, high] = Probe::outputs(tensor).map(|name| {
                let found = outputs.get(&name).and_then(|value| numbers(value).first());
                found
                    .copied()
                    .ok_or_else(|| RunError(format!("the model gave no {name}")))
            });
            let range = Range {
                low: low?,
                high: high?,
            };
            Ok((tensor.clone(), range))
        });
        ranges.collect()
    }

    /// Returns a batch as the model's input.
    fn tensor(&self, mut batch: Batch) -> Result<DynValue, RunError> {
        let size = batch.size();
        Ok(match self.input_form {
            InputForm::Rows => {
                let shape = [size, self.stack.row_len()];
                let tensor = Tensor::from_array((shape, batch.into_rows())).map_err(failed)?;
                tensor.into_dyn()
            }
            InputForm::Planes => {
                let expanded = (self.planes(size), self.expand(&mut batch)?);
                let tensor = Tensor::from_array(expanded).map_err(failed)?;
                tensor.into_dyn()
            }
        })
    }

    /// Returns the dimensions of the planes of `size` positions.
    fn planes(&self, size: usize) -> Vec<usize> {
        [size].into_iter().chain(self.stack.shape()).collect()
    }

    fn expand(&self, batch: &mut Batch) -> Result<Vec<f32>, RunError> {
        if let Some(planes) = batch.take_planes() {
            return Ok(planes);
        }
        let mut planes = vec![0.0; batch.size() * self.stack.tensor_len()];
        let mut row = Vec::with_capacity(self.stack.row_len());
        for (indices, planes) in batch.each().zip(planes.chunks_mut(self.stack.tensor_len())) {
            row.clear();
            row.extend(indices.iter().map(|&index| index as u32));
            self.stack
                .expand(&row, planes)
                .map_err(|error| RunError(error.to_string()))?;
        }
        Ok(planes)
    }
}

/// Returns the session for batches of `size` positions.
fn session_for<'a>(any: &'a mut Session, fixed: &'a mut [(usize, Session)], size: usize) -> &'a mut Session {
    fixed
        .iter_mut()
        .find(|(fixed, _)| *fixed == size)
        .map_or(any, |(_, session)| session)
}

impl Runner for SessionRunner {
    fn run(&mut self, mut batch: Batch) -> Result<Outputs, RunError> {
        let size = batch.size();
        let legal = batch.take_legal();
        if let Some(bound) = &self.bound {
            let given = match self.input_form {
                InputForm::Rows => bound.put(vec![size, self.stack.row_len()], batch.rows()),
                InputForm::Planes => bound.put(self.planes(size), &self.expand(&mut batch)?),
            };
            let width = legal.as_ref().map(|legal| legal.width);
            let session = session_for(&mut self.session, &mut self.fixed, size);
            let given = (self.input.as_str(), &given.map_err(failed)?);
            let (logits, values) = bound
                .run(session, given, size, legal, &self.contract)
                .map_err(failed)?;
            let logits = checked(logits, "logits", size * width.unwrap_or(self.actions))?;
            return Ok(self.contract.outputs(logits, values, size)?.with_width(width));
        }
        let input = self.tensor(batch)?;
        let session = session_for(&mut self.session, &mut self.fixed, size);
        let name = self.input.as_str();
        let mut outputs = session.run(ort::inputs![name => input]).map_err(failed)?;
        let logits = take(&mut outputs, &self.contract.policy, size * self.actions)?;
        let values = take(
            &mut outputs,
            &self.contract.value,
            size * self.contract.value_kind.width(),
        )?;
        self.contract.outputs(logits, values, size)
    }

    fn picks_legal(&self) -> bool {
        self.bound.is_some()
    }
}

pub(crate) fn failed(error: ort::Error) -> RunError {
    RunError(first_line(&error.to_string()))
}

/// Takes the output `name`, which must have `count` numbers.
pub(crate) fn take(
    outputs: &mut SessionOutputValues<'_>,
    name: &str,
    count: usize,
) -> Result<DynValue, RunError> {
    let missing = || RunError(format!("the model gave no {name}"));
    checked(outputs.remove(name).ok_or_else(missing)?, name, count)
}

/// Returns an output if it has `count` numbers.
fn checked(value: DynValue, name: &str, count: usize) -> Result<DynValue, RunError> {
    match numbers(&value).len() {
        found if found == count => Ok(value),
        found => Err(RunError(format!(
            "the model's {name} has {found} numbers, {count} expected"
        ))),
    }
}

pub(crate) fn check_metadata(session: &Session, layout: &RowLayout) -> Result<(), LoadError> {
    let Ok(metadata) = session.metadata() else {
        return Ok(());
    };
    // Models of other programs have no metadata. Then the layout of the manifest applies.
    if let Some(text) = metadata.custom(LAYOUT_KEY) {
        let found = onnx::model::parse_metadata(&text, metadata.custom(STEP_KEY).as_deref())
            .map_err(|error| LoadError::Unsuitable(error.to_string()))?;
        if found.layout != *layout {
            let reason = "the model's row layout is not that of its manifest";
            return Err(LoadError::Unsuitable(reason.into()));
        }
    }
    Ok(())
}

/// Returns the form of the input: rows (int32 `[batch, row]`) or planes (f32 `[batch, planes, height, width]`).
fn input_form(input: &Outlet, stack: &PlaneStack) -> Result<InputForm, LoadError> {
    let rows = [-1, stack.row_len() as i64];
    let [planes, height, width] = stack.shape().map(|side| side as i64);
    let planes = [-1, planes, height, width];
    match input.dtype() {
        ValueType::Tensor {
            ty: TensorElementType::Int32,
            shape,
            ..
        } if fits(shape, &rows) => Ok(InputForm::Rows),
        ValueType::Tensor {
            ty: TensorElementType::Float32,
            shape,
            ..
        } if fits(shape, &planes) => Ok(InputForm::Planes),
        other => {
            let expected = format!("int32 {rows:?} or f32 {planes:?}");
            Err(contract_error(input.name(), &other.to_string(), &expected))
        }
    }
}

/// True if a shape fits. The batch dimension must be free; the file may leave other dimensions open.
fn fits(found: &[i64], expected: &[i64]) -> bool {
    found.len() == expected.len()
        && found.first() == Some(&-1)
        && found
            .iter()
            .zip(expected)
            .all(|(found, expected)| *found == -1 || found == expected)
}

/// Checks that an output has `width` numbers per position in any shape. Open dimensions are checked with each batch.
fn check_output(output: &Outlet, width: usize) -> Result<(), LoadError> {
    match output.dtype() {
        ValueType::Tensor {
            ty: TensorElementType::Float32,
            shape,
            ..
        } if shape.first() == Some(&-1)
            && (shape[1..].contains(&-1) || shape[1..].iter().product::<i64>() == width as i64) =>
        {
            Ok(())
        }
        other => {
            let expected = format!("f32 [-1, {width}]");
            Err(contract_error(output.name(), &other.to_string(), &expected))
        }
    }
}

pub(crate) fn names(outlets: &[Outlet]) -> String {
    let names: Vec<&str> = outlets.iter().map(Outlet::name).collect();
    names.join(", ")
}

pub(crate) fn contract_error(what: &str, found: &str, expected: &str) -> LoadError {
    LoadError::Unsuitable(format!("the model's {what}: {found} found, {expected} expected"))
}

#[cfg(test)]
mod tests {
    use games::{Game as _, connect_four::ConnectFour};

    use super::*;

    #[test]
    fn identity_depends_on_file_layout_and_contract() {
        let (plain, layout) = (Contract::default(), ConnectFour::layout(Default::default()));
        let mut others = vec![plain.identity("a", &layout), plain.identity("b", &layout)];
        assert_eq!(others[0], Contract::default().identity("a", &layout));
        for contract in [
            Contract {
                policy: "moves".into(),
                ..Contract::default()
            },
            Contract {
                value: "outcome".into(),
                ..Contract::default()
            },
            Contract {
                value_kind: ValueKind::Probability,
                ..Contract::default()
            },
            Contract {
                input: Some("board".into()),
                ..Contract::default()
            },
        ] {
            others.push(contract.identity("a", &layout));
        }
        let mirrored = RowLayout {
            mirrored_actions: true,
            ..layout
        };
        others.push(plain.identity("a", &mirrored));
        others.sort();
        others.dedup();
        assert_eq!(others.len(), 7);
    }

    #[test]
    fn every_kind_of_value_is_mapped_to_minus_one_to_one() {
        assert_eq!(ValueKind::Tanh.value(&[0.25]), 0.25);
        assert_eq!(ValueKind::Probability.value(&[0.75]), 0.5);
        assert_eq!(ValueKind::WinDrawLoss.value(&[0.5, 0.25, 0.25]), 0.25);
        let logits = [3.0_f32.ln() + 50.0, 50.0, 50.0];
        assert!((ValueKind::WinDrawLossLogits.value(&logits) - 0.4).abs() < 1e-5);
        assert!(ValueKind::WinDrawLoss.value(&[0.5]).is_nan());
    }
}
