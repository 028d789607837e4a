//! A model in ONNX Runtime: rows in, logits and values out.

pub mod binding;
pub mod clans;

use games::{PlaneStack, RowLayout};
use onnx::legal::LEGAL;
use onnx::model::{LAYOUT_KEY, POLICY, STEP_KEY, VALUE};
use ort::{
    session::Session,
    value::{DynValue, Outlet, Tensor, TensorElementType, ValueType},
};
use serde::{Deserialize, Serialize};

use crate::batch::{Batch, Outputs, RunError, Runner};
use crate::provider::first_line;
use crate::session::binding::{Binding, BoundNames, Memory};

/// A model that is not what the contract of [`onnx::model`] asks for.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// An input or output is missing or of another type or shape.
    #[error("the model's {what}: {found} found, {expected} expected")]
    Contract {
        /// Which.
        what: String,
        /// What there is.
        found: String,
        /// What there must be.
        expected: String,
    },
    /// There is no memory for batches that the device can reach.
    #[error("no memory that the device reaches: {0}")]
    Bind(String),
    /// The file says other things than its manifest.
    #[error("the model's {what} is not that of its manifest")]
    Manifest {
        /// What differs.
        what: &'static str,
    },
    /// The metadata in the file means nothing.
    #[error(transparent)]
    Metadata(#[from] onnx::model::MetadataError),
}

/// What a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// Rows, expanded in the graph.
    Rows,
    /// Planes, expanded here.
    Planes,
}

/// What a model's inputs and outputs are called, and what its value means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contract {
    /// The input; `None`: the only one.
    pub input: Option<String>,
    /// The policy's logits.
    pub policy: String,
    /// The value.
    pub value: String,
    /// What the value means.
    pub value_kind: ValueKind,
}

impl Default for Contract {
    /// That of the models that Minuet makes.
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
    /// A sha-256, in hexadecimal, over all that a model's answers depend on: its file, by its own `digest`, what its rows mean,
    /// and how its outputs are read.
    pub fn identity(&self, digest: &str, layout: &RowLayout) -> String {
        let all = serde_json::json!({ "file": digest, "layout": layout, "contract": self });
        checkpoints::version::sha256_hex(all.to_string().as_bytes())
    }
}

/// What a model's value means, always from the point of view of the player to act.
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
    /// Three numbers, of which the softmax is that.
    WinDrawLossLogits,
}

impl ValueKind {
    /// Numbers for each position.
    pub fn width(self) -> usize {
        match self {
            Self::Tanh | Self::Probability => 1,
            Self::WinDrawLoss | Self::WinDrawLossLogits => 3,
        }
    }

    /// A position's value in [-1, 1].
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
            // The width was checked when the model was loaded.
            _ => f32::NAN,
        }
    }
}

/// A loaded model.
pub struct SessionRunner {
    /// Takes a batch of any size.
    session: Session,
    /// The same model compiled for one batch size each: faster where the provider can make use of it.
    fixed: Vec<(usize, Session)>,
    takes: Takes,
    /// The input's name.
    input: String,
    contract: Contract,
    stack: PlaneStack,
    actions: usize,
    /// Where batches lie, for a model that picks legal logits itself.
    bound: Option<Binding>,
}

impl SessionRunner {
    /// Checks that a session is a model over `layout` with the inputs and outputs of `contract`.
    ///
    /// # Errors
    /// [`ModelError`] naming the first thing that is not so.
    pub fn new(session: Session, layout: &RowLayout, contract: &Contract) -> Result<Self, ModelError> {
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
        let takes = takes(input, stack)?;
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
            takes,
            input: input.name().to_owned(),
            session,
            fixed: Vec::new(),
            contract: contract.clone(),
            stack: stack.clone(),
            actions,
            bound: None,
        })
    }

    /// From now on batches lie in `memory`, and only what is wanted of the outputs comes back. The model must have the input
    /// and the output of [`onnx::legal`].
    ///
    /// # Errors
    /// [`ModelError::Bind`] where there is no such memory.
    pub fn bind(&mut self, memory: Memory) -> Result<(), ModelError> {
        let names = BoundNames {
            input: self.input.clone(),
            policy: self.contract.policy.clone(),
            value: self.contract.value.clone(),
        };
        let binding = Binding::new(&self.session, memory, names);
        self.bound = Some(binding.map_err(|error| ModelError::Bind(first_line(&error.to_string())))?);
        Ok(())
    }

    /// What the model calls its free side; `None` where it has no name for it.
    pub fn batch_symbol(&self) -> Option<String> {
        match self.session.inputs().first()?.dtype() {
            ValueType::Tensor {
                dimension_symbols, ..
            } => dimension_symbols.first().cloned(),
            _ => None,
        }
        .filter(|symbol| !symbol.is_empty())
    }

    /// Adds a session of the same model for batches of `size` only.
    pub fn add_fixed(&mut self, size: usize, session: Session) {
        self.fixed.push((size, session));
    }

    fn expand(&self, batch: &Batch) -> Result<Vec<f32>, RunError> {
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

impl Runner for SessionRunner {
    fn run(&mut self, mut batch: Batch) -> Result<Box<dyn Outputs>, RunError> {
        let failed = |error: ort::Error| RunError(first_line(&error.to_string()));
        let size = batch.size();
        let legal = batch.take_legal();
        if let Some(bound) = &self.bound {
            let given = match self.takes {
                Takes::Rows => bound.rows([size, self.stack.row_len()], batch.rows()),
                Takes::Planes => {
                    let shape = [size, self.stack.planes as usize, 8, 8];
                    bound.planes(shape, &self.expand(&batch)?)
                }
            };
            let width = legal.as_ref().map(|legal| legal.width);
            let bound = bound
                .run(&mut self.session, &given.map_err(failed)?, size, legal)
                .map_err(failed)?;
            let (policy_width, kind) = (width.unwrap_or(self.actions), self.contract.value_kind);
            check_length(&bound.policy, "logits", size, policy_width)?;
            check_length(&bound.values, "values", size, kind.width())?;
            return Ok(Box::new(SessionOutputs {
                logits: bound.policy,
                width,
                values: Values::of(kind, bound.values),
            }));
        }
        let input = match self.takes {
            Takes::Rows => {
                let shape = [size, self.stack.row_len()];
                let tensor = Tensor::from_array((shape, batch.into_rows())).map_err(failed)?;
                tensor.into_dyn()
            }
            Takes::Planes => {
                let shape = [size, self.stack.planes as usize, 8, 8];
                let tensor = Tensor::from_array((shape, self.expand(&batch)?)).map_err(failed)?;
                tensor.into_dyn()
            }
        };
        let session = match self.fixed.iter_mut().find(|(fixed, _)| *fixed == size) {
            Some((_, session)) => session,
            None => &mut self.session,
        };
        let name = self.input.as_str();
        let mut outputs = session.run(ort::inputs![name => input]).map_err(failed)?;
        let mut take = |name: &str, width: usize| {
            let value = outputs
                .remove(name)
                .ok_or_else(|| RunError(format!("the model gave no {name}")))?;
            check_length(&value, name, size, width).map(|()| value)
        };
        let kind = self.contract.value_kind;
        let logits = take(&self.contract.policy, self.actions)?;
        let values = take(&self.contract.value, kind.width())?;
        Ok(Box::new(SessionOutputs {
            logits,
            width: None,
            values: Values::of(kind, values),
        }))
    }

    fn picks_legal(&self) -> bool {
        self.bound.is_some()
    }
}

/// So many numbers for each position.
fn check_length(value: &DynValue, what: &str, size: usize, width: usize) -> Result<(), RunError> {
    match numbers(value).len() {
        length if length == size * width => Ok(()),
        length => Err(RunError(format!("{length} {what} for {size} positions"))),
    }
}

/// The runtime's own memory, not copied: a chess batch's logits are megabytes.
struct SessionOutputs {
    logits: DynValue,
    /// Where they are the legal actions' only.
    width: Option<usize>,
    values: Values,
}

enum Values {
    /// As the model gives them.
    Given(DynValue),
    /// From other numbers.
    Computed(Vec<f32>),
}

impl Values {
    fn of(kind: ValueKind, values: DynValue) -> Self {
        match kind {
            ValueKind::Tanh => Self::Given(values),
            _ => Self::Computed(
                numbers(&values)
                    .chunks(kind.width())
                    .map(|numbers| kind.value(numbers))
                    .collect(),
            ),
        }
    }
}

impl Outputs for SessionOutputs {
    fn logits(&self) -> &[f32] {
        match self.width {
            None => numbers(&self.logits),
            Some(_) => &[],
        }
    }

    fn legal_logits(&self) -> Option<(&[f32], usize)> {
        self.width.map(|width| (numbers(&self.logits), width))
    }

    fn values(&self) -> &[f32] {
        match &self.values {
            Values::Given(values) => numbers(values),
            Values::Computed(values) => values,
        }
    }
}

/// The type was checked when the outputs were taken.
fn numbers(value: &DynValue) -> &[f32] {
    value
        .try_extract_tensor::<f32>()
        .map_or(&[], |(_, numbers)| numbers)
}

pub(crate) fn check_metadata(session: &Session, layout: &RowLayout) -> Result<(), ModelError> {
    let Ok(metadata) = session.metadata() else {
        return Ok(());
    };
    // Models from elsewhere say nothing; the manifest's layout counts then.
    if let Some(text) = metadata.custom(LAYOUT_KEY) {
        let found = onnx::model::parse_metadata(&text, metadata.custom(STEP_KEY).as_deref())?;
        if found.layout != *layout {
            return Err(ModelError::Manifest { what: "row layout" });
        }
    }
    Ok(())
}

/// Rows (int32 `[batch, row]`) or planes (f32 `[batch, planes, 8, 8]`).
fn takes(input: &Outlet, stack: &PlaneStack) -> Result<Takes, ModelError> {
    let rows = [-1, stack.row_len() as i64];
    let planes = [-1, i64::from(stack.planes), 8, 8];
    match input.dtype() {
        ValueType::Tensor {
            ty: TensorElementType::Int32,
            shape,
            ..
        } if fits(shape, &rows) => Ok(Takes::Rows),
        ValueType::Tensor {
            ty: TensorElementType::Float32,
            shape,
            ..
        } if fits(shape, &planes) => Ok(Takes::Planes),
        other => {
            let expected = format!("int32 {rows:?} or f32 {planes:?}");
            Err(contract_error(input.name(), &describe(other), &expected))
        }
    }
}

/// The batch must be free; other sides may be left open by the file.
fn fits(found: &[i64], expected: &[i64]) -> bool {
    found.len() == expected.len()
        && found.first() == Some(&-1)
        && found
            .iter()
            .zip(expected)
            .all(|(found, expected)| *found == -1 || found == expected)
}

/// So many numbers for each position, in whatever shape. Sides that the file leaves open are checked with each batch.
fn check_output(output: &Outlet, width: usize) -> Result<(), ModelError> {
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
            Err(contract_error(output.name(), &describe(other), &expected))
        }
    }
}

fn describe(kind: &ValueType) -> String {
    match kind {
        ValueType::Tensor { ty, shape, .. } => format!("{ty} {:?}", &shape[..]),
        other => other.to_string(),
    }
}

pub(crate) fn names(outlets: &[Outlet]) -> String {
    let names: Vec<&str> = outlets.iter().map(Outlet::name).collect();
    names.join(", ")
}

pub(crate) fn contract_error(what: &str, found: &str, expected: &str) -> ModelError {
    ModelError::Contract {
        what: what.into(),
        found: found.into(),
        expected: expected.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_answers_depend_on_makes_another_identity() {
        let (plain, layout) = (Contract::default(), crate::testing::layout());
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
    fn values_of_every_kind_are_from_minus_one_to_one() {
        assert_eq!(ValueKind::Tanh.value(&[0.25]), 0.25);
        assert_eq!(ValueKind::Probability.value(&[0.75]), 0.5);
        assert_eq!(ValueKind::WinDrawLoss.value(&[0.5, 0.25, 0.25]), 0.25);
        let logits = [3.0_f32.ln() + 50.0, 50.0, 50.0];
        assert!((ValueKind::WinDrawLossLogits.value(&logits) - 0.4).abs() < 1e-5);
        assert!(ValueKind::WinDrawLoss.value(&[0.5]).is_nan());
    }
}
