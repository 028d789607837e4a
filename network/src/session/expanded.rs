//! Models whose rows differ in length. The codec expands the rows of a batch into the inputs of the graph, in microseconds,
//! and converts the logits of the graph to logits of actions.
//!
//! Nothing is padded, and all batch sizes run equally well.

use games::{
    RowLayout,
    codec::{Expander, Input},
};
use onnx::model::{POLICY, VALUE};
use ort::{
    session::{Session, SessionInputs},
    value::{TensorElementType, TensorRef, ValueType},
};

use crate::{
    batch::{Batch, Outputs, RunError, Runner, numbers},
    loader::LoadError,
    session::{check_metadata, contract_error, failed, names, take},
};

/// A loaded model, and the expander of its rows.
pub struct ExpandedRunner {
    session: Session,
    actions: usize,
    expander: Box<dyn Expander>,
}

impl ExpandedRunner {
    /// Makes a runner of a session that is a model over `layout`.
    ///
    /// # Errors
    /// [`LoadError`] that names the first difference.
    pub fn new(session: Session, layout: &RowLayout) -> Result<Self, LoadError> {
        check_metadata(&session, layout)?;
        let mut expander = layout.codec().expander();
        check_inputs(&session, &expander.inputs())?;
        for name in [POLICY, VALUE] {
            if !session.outputs().iter().any(|output| output.name() == name) {
                return Err(contract_error("outputs", &names(session.outputs()), name));
            }
        }
        Ok(Self {
            session,
            actions: layout.actions as usize,
            expander,
        })
    }

    fn expand(&mut self, batch: &Batch) -> Result<(), RunError> {
        self.expander.clear();
        let mut row = Vec::new();
        for numbers in batch.each() {
            row.clear();
            row.extend(numbers.iter().map(|&number| number as u32));
            self.expander
                .push(&row)
                .map_err(|error| RunError(error.to_string()))?;
        }
        Ok(())
    }
}

/// Checks that a session has the inputs `wanted`, with their inner sizes.
fn check_inputs(session: &Session, wanted: &[Input<'_>]) -> Result<(), LoadError> {
    if session.inputs().len() != wanted.len() {
        let expected = format!("{} of them", wanted.len());
        return Err(contract_error("inputs", &names(session.inputs()), &expected));
    }
    for expected in wanted {
        let input = session
            .inputs()
            .iter()
            .find(|input| input.name() == expected.name)
            .ok_or_else(|| contract_error("inputs", &names(session.inputs()), expected.name))?;
        let is_right = match input.dtype() {
            ValueType::Tensor {
                ty: TensorElementType::Int32,
                shape,
                ..
            } => {
                let inner = shape.iter().skip(1).map(|&size| size as usize);
                shape.len() == 1 + expected.inner.len() && inner.eq(expected.inner.iter().copied())
            }
            _ => false,
        };
        if !is_right {
            let wanted = format!("int32 [-1, {:?}]", expected.inner);
            return Err(contract_error(expected.name, &input.dtype().to_string(), &wanted));
        }
    }
    Ok(())
}

impl Runner for ExpandedRunner {
    fn run(&mut self, batch: Batch) -> Result<Outputs, RunError> {
        self.expand(&batch)?;
        let inputs = session_inputs(&self.expander.inputs()).map_err(failed)?;
        let mut outputs = self.session.run(inputs).map_err(failed)?;
        let actions = self.actions;
        let logits = take(&mut outputs, POLICY, self.expander.logit_count(actions))?;
        let values = take(&mut outputs, VALUE, batch.size())?;
        let logits = self.expander.dense_logits(numbers(&logits), actions).into_owned();
        Ok(Outputs::new(logits, numbers(&values).to_vec()))
    }
}

fn session_inputs<'a>(inputs: &[Input<'a>]) -> ort::Result<SessionInputs<'a, 'a>> {
    let named = inputs.iter().map(|input| {
        Ok((
            input.name,
            TensorRef::from_array_view((input.shape(), input.numbers))?,
        ))
    });
    let named: Vec<_> = named.collect::<ort::Result<_>>()?;
    Ok(named.into())
}
