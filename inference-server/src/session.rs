//! A model in ONNX Runtime: rows in, logits and values out.

use games::RowLayout;
use onnx::model::{LAYOUT_KEY, PLANES, POLICY, ROWS, STEP_KEY, VALUE};
use ort::{
    session::Session,
    value::{DynValue, Outlet, Tensor, TensorElementType, ValueType},
};

use crate::backend::first_line;
use crate::runner::{Batch, Outputs, RunError, Runner};

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
    /// `indices`, expanded in the graph.
    Rows,
    /// `planes`, expanded here.
    Planes,
}

/// A loaded model.
pub struct SessionRunner {
    /// Takes a batch of any size.
    session: Session,
    /// The same model compiled for one batch size each: faster where the provider can make use of it.
    fixed: Vec<(usize, Session)>,
    takes: Takes,
    layout: RowLayout,
}

impl SessionRunner {
    /// Checks that a session is a model over `layout`.
    ///
    /// # Errors
    /// [`ModelError`] naming the first thing that is not so.
    pub fn new(session: Session, layout: &RowLayout) -> Result<Self, ModelError> {
        check_metadata(&session, layout)?;
        let free = |sides: &[usize]| {
            std::iter::once(-1)
                .chain(sides.iter().map(|&side| side as i64))
                .collect::<Vec<i64>>()
        };
        let rows = free(&[layout.row_len()]);
        let planes = free(&[layout.planes as usize, 8, 8]);
        let [input] = session.inputs() else {
            return Err(contract("inputs", &names(session.inputs()), "one"));
        };
        let takes = match input.name() {
            ROWS => {
                check_tensor(input, TensorElementType::Int32, &rows)?;
                Takes::Rows
            }
            PLANES => {
                check_tensor(input, TensorElementType::Float32, &planes)?;
                Takes::Planes
            }
            other => return Err(contract("input", other, &format!("{ROWS} or {PLANES}"))),
        };
        for (name, width) in [(POLICY, layout.actions as usize), (VALUE, 1)] {
            let output = session
                .outputs()
                .iter()
                .find(|output| output.name() == name)
                .ok_or_else(|| contract("outputs", &names(session.outputs()), name))?;
            check_tensor(output, TensorElementType::Float32, &free(&[width]))?;
        }
        Ok(Self {
            session,
            fixed: Vec::new(),
            takes,
            layout: layout.clone(),
        })
    }

    /// Adds a session of the same model for batches of `size` only.
    pub fn add_fixed(&mut self, size: usize, session: Session) {
        self.fixed.push((size, session));
    }

    fn expand(&self, batch: &Batch) -> Result<Vec<f32>, RunError> {
        let mut planes = vec![0.0; batch.size() * self.layout.tensor_len()];
        let mut row = Vec::with_capacity(self.layout.row_len());
        for (indices, planes) in batch
            .rows()
            .chunks(self.layout.row_len())
            .zip(planes.chunks_mut(self.layout.tensor_len()))
        {
            row.clear();
            row.extend(indices.iter().map(|&index| index as u32));
            self.layout
                .expand(&row, planes)
                .map_err(|error| RunError(error.to_string()))?;
        }
        Ok(planes)
    }
}

impl Runner for SessionRunner {
    fn run(&mut self, batch: Batch) -> Result<Box<dyn Outputs>, RunError> {
        let failed = |error: ort::Error| RunError(first_line(&error.to_string()));
        let size = batch.size();
        let (name, input) = match self.takes {
            Takes::Rows => {
                let shape = [size, self.layout.row_len()];
                let tensor = Tensor::from_array((shape, batch.into_rows())).map_err(failed)?;
                (ROWS, tensor.into_dyn())
            }
            Takes::Planes => {
                let shape = [size, self.layout.planes as usize, 8, 8];
                let tensor = Tensor::from_array((shape, self.expand(&batch)?)).map_err(failed)?;
                (PLANES, tensor.into_dyn())
            }
        };
        let session = match self.fixed.iter_mut().find(|(fixed, _)| *fixed == size) {
            Some((_, session)) => session,
            None => &mut self.session,
        };
        let mut outputs = session.run(ort::inputs![name => input]).map_err(failed)?;
        let mut take = |name: &str, width: usize| {
            let value = outputs
                .remove(name)
                .ok_or_else(|| RunError(format!("the model gave no {name}")))?;
            let (_, numbers) = value.try_extract_tensor::<f32>().map_err(failed)?;
            if numbers.len() == size * width {
                Ok(value)
            } else {
                Err(RunError(format!(
                    "{} numbers of {name} for {size} positions",
                    numbers.len()
                )))
            }
        };
        Ok(Box::new(SessionOutputs {
            logits: take(POLICY, self.layout.actions as usize)?,
            values: take(VALUE, 1)?,
        }))
    }
}

/// The runtime's own memory, not copied: a chess batch's logits are megabytes.
struct SessionOutputs {
    logits: DynValue,
    values: DynValue,
}

impl Outputs for SessionOutputs {
    fn logits(&self) -> &[f32] {
        numbers(&self.logits)
    }

    fn values(&self) -> &[f32] {
        numbers(&self.values)
    }
}

/// The type was checked when the outputs were taken.
fn numbers(value: &DynValue) -> &[f32] {
    value
        .try_extract_tensor::<f32>()
        .map_or(&[], |(_, numbers)| numbers)
}

fn check_metadata(session: &Session, layout: &RowLayout) -> Result<(), ModelError> {
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

fn check_tensor(outlet: &Outlet, kind: TensorElementType, sides: &[i64]) -> Result<(), ModelError> {
    let describe = |kind: &TensorElementType, sides: &[i64]| format!("{kind} {sides:?}");
    let expected = describe(&kind, sides);
    match outlet.dtype() {
        ValueType::Tensor { ty, shape, .. } if *ty == kind && fits(shape, sides) => Ok(()),
        ValueType::Tensor { ty, shape, .. } => Err(contract(outlet.name(), &describe(ty, shape), &expected)),
        other => Err(contract(outlet.name(), &other.to_string(), &expected)),
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

fn names(outlets: &[Outlet]) -> String {
    let names: Vec<&str> = outlets.iter().map(Outlet::name).collect();
    names.join(", ")
}

fn contract(what: &str, found: &str, expected: &str) -> ModelError {
    ModelError::Contract {
        what: what.into(),
        found: found.into(),
        expected: expected.into(),
    }
}
