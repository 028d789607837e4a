//! The proof of an export: ONNX Runtime with the exported file must give the outputs of libtorch.
//!
//! Both compute in f32 with sums in different orders, so the outputs differ by rounding: 1e-6 of the logits' range was
//! measured. The bounds are a hundred times that, and far below the effect of a wrong weight, a wrong fold or a wrong
//! expansion.

use std::path::Path;

use games::RowLayout;
use ort::{
    environment::Environment,
    session::{Session, SessionInputs, SessionOutputs},
    value::Tensor as OrtTensor,
};
use tch::{Device, Kind};

use crate::{
    data::expanded::expand,
    network::{Network, Pass, ValueLogits, inputs::Feeder},
    torch::{TorchError, to_host},
};

/// Largest allowed difference of a logit, as a share of the logits' range (or of 1 if that is more).
pub const POLICY_BOUND: f32 = 1e-4;
/// Largest allowed difference of a value.
pub const VALUE_BOUND: f32 = 1e-4;

/// Result of a proof: the differences between ONNX Runtime and libtorch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Largest difference of a logit, as a share of the range.
    pub policy: f32,
    /// Largest difference of a value, or of a probability of win, draw or loss.
    pub value: f32,
    /// Positions compared.
    pub positions: usize,
}

/// Error: an export must not be published.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// The library of ONNX Runtime cannot be loaded.
    #[error(transparent)]
    Runtime(#[from] network::runtime::RuntimeError),
    /// ONNX Runtime refused the file, or failed to run it.
    #[error("ONNX Runtime refused the export: {0}")]
    Run(String),
    /// An output is infinite or not a number.
    #[error("the {output} of {by} is not finite")]
    NotFinite {
        /// `policy`, `value` or `wdl`.
        output: &'static str,
        /// `libtorch` or `ONNX Runtime`.
        by: &'static str,
    },
    /// The outputs differ by more than rounding.
    #[error("ONNX Runtime and libtorch differ in {output} by {difference:e}, {bound:e} is allowed")]
    Differs {
        /// `policy`, `value` or `wdl`.
        output: &'static str,
        /// The largest difference.
        difference: f32,
        /// The bound.
        bound: f32,
    },
    /// No position to compare on.
    #[error("there is no position to prove the export on")]
    NoRows,
    /// A torch operation failed.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

/// Outputs of a network for some positions.
struct Answers {
    logits: Vec<f32>,
    values: Vec<f32>,
    /// Probabilities of a win, a draw and a loss, if the network has this output.
    outcomes: Option<Vec<f32>>,
}

/// Proves exports with ONNX Runtime.
#[derive(Debug)]
pub struct Prover {
    environment: Environment,
}

impl Prover {
    /// Loads ONNX Runtime, see [`network::runtime::load`].
    ///
    /// # Errors
    /// [`ProofError::Runtime`].
    pub fn load(configured: &Path) -> Result<Self, ProofError> {
        Ok(Self {
            environment: network::runtime::load(configured)?,
        })
    }

    /// Compares `model`, the export of `network`, with the network on valid rows, back to back.
    ///
    /// # Errors
    /// [`ProofError`] if the export must not be published.
    pub fn prove(
        &self,
        model: &[u8],
        network: &Network,
        layout: &RowLayout,
        rows: &[u32],
    ) -> Result<Agreement, ProofError> {
        if rows.is_empty() {
            return Err(ProofError::NoRows);
        }
        let by_torch = answers_of_torch(network, layout, rows)?;
        let by_runtime = self.answers_of_runtime(model, layout, rows)?;
        compare(&by_torch, &by_runtime)
    }

    fn answers_of_runtime(
        &self,
        model: &[u8],
        layout: &RowLayout,
        rows: &[u32],
    ) -> Result<Answers, ProofError> {
        let mut session = Session::builder(&self.environment)
            .map_err(refused)?
            .with_intra_threads(1)
            .map_err(refused)?
            .with_no_environment_execution_providers()
            .map_err(refused)?
            .commit_from_memory(model)
            .map_err(refused)?;
        let inputs = expand(layout, rows).map_err(|error| ProofError::Run(error.to_string()))?;
        let named = inputs.into_iter().map(|input| {
            let tensor = OrtTensor::from_array((input.shape, input.numbers));
            Ok((input.name, tensor.map_err(refused)?))
        });
        let named: Vec<_> = named.collect::<Result<_, ProofError>>()?;
        let inputs: SessionInputs<'_, '_> = named.into();
        let outputs = session.run(inputs).map_err(refused)?;
        Ok(Answers {
            logits: numbers(&outputs, onnx::model::POLICY)?,
            values: numbers(&outputs, onnx::model::VALUE)?,
            outcomes: match outputs.contains_key(onnx::model::OUTCOMES) {
                true => Some(numbers(&outputs, onnx::model::OUTCOMES)?),
                false => None,
            },
        })
    }
}

fn numbers(outputs: &SessionOutputs<'_>, name: &str) -> Result<Vec<f32>, ProofError> {
    let output = outputs
        .get(name)
        .ok_or_else(|| ProofError::Run(format!("there is no output `{name}`")))?;
    let (_, numbers) = output.try_extract_tensor::<f32>().map_err(refused)?;
    Ok(numbers.to_vec())
}

fn refused<T>(error: ort::Error<T>) -> ProofError {
    ProofError::Run(TorchError::new(&error.to_string()).to_string())
}

/// Computes the outputs with libtorch in f32 on the CPU, because a GPU may compute with less precision.
fn answers_of_torch(network: &Network, layout: &RowLayout, rows: &[u32]) -> Result<Answers, ProofError> {
    let _guard = tch::no_grad_guard();
    let on_cpu;
    let network = if network.variables().device() == Device::Cpu {
        network
    } else {
        on_cpu = copy_to_cpu(network)?;
        &on_cpu
    };
    let inputs = Feeder::new(layout, Device::Cpu)?.rows(rows)?;
    let outputs = network.forward(&inputs, Pass::EVALUATE)?;
    let outcomes = match &outputs.value_logits {
        Some(ValueLogits::Outcomes(logits)) => Some(to_host(
            &logits.f_softmax(1, Kind::Float).map_err(TorchError::from)?,
        )?),
        _ => None,
    };
    Ok(Answers {
        logits: to_host(&outputs.logits)?,
        values: to_host(&outputs.values)?,
        outcomes,
    })
}

fn copy_to_cpu(network: &Network) -> Result<Network, ProofError> {
    let mut copy = Network::new(network.shape(), 0, Device::Cpu)?;
    let variables = network.variables().to_host()?;
    copy.variables_mut()
        .load(&variables)
        .map_err(|error| ProofError::Torch(TorchError::new(&error.to_string())))?;
    Ok(copy)
}

fn compare(torch: &Answers, runtime: &Answers) -> Result<Agreement, ProofError> {
    for (by, answers) in [("libtorch", torch), ("ONNX Runtime", runtime)] {
        let outcomes = answers.outcomes.as_ref().map(|outcomes| ("wdl", outcomes));
        let both = [("policy", &answers.logits), ("value", &answers.values)];
        for (output, numbers) in both.into_iter().chain(outcomes) {
            if numbers.iter().any(|number| !number.is_finite()) {
                return Err(ProofError::NotFinite { output, by });
            }
        }
    }
    let least = torch.logits.iter().copied().fold(f32::INFINITY, f32::min);
    let most = torch.logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let policy = largest_difference(&torch.logits, &runtime.logits)? / (most - least).max(1.0);
    let value = largest_difference(&torch.values, &runtime.values)?;
    let outcomes = match (&torch.outcomes, &runtime.outcomes) {
        (None, None) => 0.0,
        (Some(torch), Some(runtime)) => largest_difference(torch, runtime)?,
        _ => {
            let reason = "`wdl` is an output of either the network or the file, not of both";
            return Err(ProofError::Run(reason.into()));
        }
    };
    for (output, difference, bound) in [
        ("policy", policy, POLICY_BOUND),
        ("value", value, VALUE_BOUND),
        ("wdl", outcomes, VALUE_BOUND),
    ] {
        if difference > bound {
            return Err(ProofError::Differs {
                output,
                difference,
                bound,
            });
        }
    }
    Ok(Agreement {
        policy,
        value: value.max(outcomes),
        positions: torch.values.len(),
    })
}

fn largest_difference(left: &[f32], right: &[f32]) -> Result<f32, ProofError> {
    if left.len() != right.len() {
        return Err(ProofError::Run(format!(
            "{} numbers, libtorch gives {}",
            right.len(),
            left.len()
        )));
    }
    Ok(left
        .iter()
        .zip(right)
        .map(|(left, right)| (left - right).abs())
        .fold(0.0, f32::max))
}
