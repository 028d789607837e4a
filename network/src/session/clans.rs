//! Models of the generator game: rows are expanded into the arrays of the fish-eye network, in microseconds, and the logits
//! per imp become logits per action.
//!
//! Each row contains its own length. Nothing is padded, and all batch sizes run equally well.

use games::{
    RowLayout,
    generator::{
        Position,
        expansion::{ClanBatch, Expander},
        moves::MOVES,
        row,
    },
};
use onnx::{
    fish_eye,
    model::{POLICY, VALUE},
};
use ort::{
    session::{Session, SessionInputs},
    value::{DynValue, TensorElementType, TensorRef, ValueType},
};

use crate::{
    batch::{Batch, Outputs, RunError, Runner},
    provider::first_line,
    session::{ModelError, check_metadata, contract_error, names},
};

/// Logit of a move of an imp that does not exist. Its prior is always 0.
const NO_IMP: f32 = f32::MIN;

/// A loaded fish-eye network.
pub struct ClanRunner {
    session: Session,
    expander: Expander,
    actions: usize,
}

impl ClanRunner {
    /// Makes a runner of a session that is a fish-eye network over `layout`.
    ///
    /// # Errors
    /// [`ModelError`] that names the first difference.
    pub fn new(session: Session, layout: &RowLayout) -> Result<Self, ModelError> {
        check_metadata(&session, layout)?;
        let wanted = ClanBatch::default();
        let wanted = fish_eye::inputs(&wanted);
        if session.inputs().len() != wanted.len() {
            return Err(contract_error(
                "inputs",
                &names(session.inputs()),
                &format!("{} of them", wanted.len()),
            ));
        }
        for expected in wanted {
            let input = session
                .inputs()
                .iter()
                .find(|input| input.name() == expected.name)
                .ok_or_else(|| contract_error("inputs", &names(session.inputs()), expected.name))?;
            let inner = |shape: &[i64]| {
                shape
                    .iter()
                    .skip(1)
                    .map(|&side| side as usize)
                    .eq(expected.inner.iter().copied())
            };
            let is_right = match input.dtype() {
                ValueType::Tensor {
                    ty: TensorElementType::Int32,
                    shape,
                    ..
                } => shape.len() == 1 + expected.inner.len() && inner(&shape[..]),
                _ => false,
            };
            if !is_right {
                let wanted = format!("int32 [-1, {:?}]", expected.inner);
                return Err(contract_error(expected.name, &input.dtype().to_string(), &wanted));
            }
        }
        for name in [POLICY, VALUE] {
            if !session.outputs().iter().any(|output| output.name() == name) {
                return Err(contract_error("outputs", &names(session.outputs()), name));
            }
        }
        Ok(Self {
            session,
            expander: Expander::default(),
            actions: layout.actions as usize,
        })
    }

    fn expand(&mut self, batch: &Batch) -> Result<(), RunError> {
        self.expander.clear();
        let rows: Vec<u32> = batch.rows().iter().map(|&number| number as u32).collect();
        for row in row::split(&rows) {
            let position = Position::read(row).map_err(|error| RunError(error.to_string()))?;
            self.expander.push(&position);
        }
        if self.expander.positions() == batch.size() {
            return Ok(());
        }
        Err(RunError(format!(
            "{} rows in a batch of {}",
            self.expander.positions(),
            batch.size()
        )))
    }
}

impl Runner for ClanRunner {
    fn run(&mut self, batch: Batch) -> Result<Box<dyn Outputs>, RunError> {
        let failed = |error: ort::Error| RunError(first_line(&error.to_string()));
        self.expand(&batch)?;
        let arrays = self.expander.finish();
        let inputs = session_inputs(arrays).map_err(failed)?;
        let mut outputs = self.session.run(inputs).map_err(failed)?;
        let mut take = |name: &str| {
            outputs
                .remove(name)
                .ok_or_else(|| RunError(format!("the model gave no {name}")))
        };
        let (logits, values) = (take(POLICY)?, take(VALUE)?);
        let (_, of_imps) = logits.try_extract_tensor::<f32>().map_err(failed)?;
        let (_, found) = values.try_extract_tensor::<f32>().map_err(failed)?;
        if of_imps.len() != arrays.sept.len() * MOVES || found.len() != batch.size() {
            return Err(RunError(format!(
                "{} logits and {} values for {} imps of {} positions",
                of_imps.len(),
                found.len(),
                arrays.sept.len(),
                batch.size()
            )));
        }
        Ok(Box::new(ClanOutputs {
            logits: spread(of_imps, &arrays.root, self.actions),
            values,
        }))
    }
}

/// Spreads logits `[imps · moves]` to `[positions][actions]`.
fn spread(of_imps: &[f32], roots: &[i32], actions: usize) -> Vec<f32> {
    let mut logits = vec![NO_IMP; roots.len() * actions];
    let ends = roots
        .iter()
        .skip(1)
        .map(|&root| root as usize * MOVES)
        .chain([of_imps.len()]);
    for ((position, &root), end) in logits.chunks_mut(actions).zip(roots).zip(ends) {
        let own = of_imps.get(root as usize * MOVES..end).unwrap_or_default();
        position[..own.len()].copy_from_slice(own);
    }
    logits
}

fn session_inputs(arrays: &ClanBatch) -> ort::Result<SessionInputs<'_, '_>> {
    let named = fish_eye::inputs(arrays).into_iter().map(|input| {
        Ok((
            input.name,
            TensorRef::from_array_view((input.sides(), input.numbers))?,
        ))
    });
    let named: Vec<_> = named.collect::<ort::Result<_>>()?;
    Ok(named.into())
}

struct ClanOutputs {
    logits: Vec<f32>,
    values: DynValue,
}

impl Outputs for ClanOutputs {
    fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// Values in [0, 1], because the game has one player.
    fn values(&self) -> &[f32] {
        self.values
            .try_extract_tensor::<f32>()
            .map_or(&[], |(_, numbers)| numbers)
    }
}
