//! Export of a network as an ONNX file that takes rows, and its proof: ONNX Runtime with the exported file must give the outputs of
//! libtorch.
//!
//! Both compute in f32 with sums in different orders, so the outputs differ by rounding: 1e-6 of the logits' range was
//! measured. The bounds are a hundred times that, and far below the effect of a wrong weight, a wrong fold or a wrong
//! expansion.

use games::{RowForm, RowLayout};
use onnx::{
    Input, Metadata, OnnxError, fish_eye,
    model::{OUTCOMES, PAIRS_KEY, with_entry},
};
use ort::{
    environment::Environment,
    session::{Session, SessionInputs, SessionOutputs},
    value::Tensor as OrtTensor,
};
use tch::{Device, Kind};

use crate::{
    data::expanded::expand,
    network::{Folded, Network, POLICY, Pass, VALUE, ValueForm, inputs::Feeder},
    torch::{TorchError, shortened, to_host},
};

/// Largest allowed difference of a logit, as a share of the logits' range (or of 1 if that is more).
pub const POLICY_BOUND: f32 = 1e-4;
/// Name of libtorch in errors.
const TORCH: &str = "libtorch";
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
pub enum ExportError {
    /// A weight, or an output of libtorch, is infinite or not a number: training has diverged.
    #[error("the network is not finite: {0}")]
    NotFinite(String),
    /// The file cannot be written, ONNX Runtime refuses it, or it does not give the outputs of libtorch.
    #[error("the export was refused: {0}")]
    Refused(String),
}

impl From<OnnxError> for ExportError {
    fn from(error: OnnxError) -> Self {
        match error {
            OnnxError::NotFinite(_) => Self::NotFinite(error.to_string()),
            error => Self::Refused(error.to_string()),
        }
    }
}

impl From<TorchError> for ExportError {
    fn from(error: TorchError) -> Self {
        Self::Refused(error.to_string())
    }
}

fn refused(reason: impl std::fmt::Display) -> ExportError {
    ExportError::Refused(reason.to_string())
}

/// Writes a network as an ONNX file. A tower has its normalisations folded in and begins with the expansion of `layout`. A
/// fish-eye network takes rows that the codec has expanded.
///
/// # Errors
/// [`ExportError`], e.g. if a weight is not finite.
pub fn export(network: &Network, layout: &RowLayout, step: u64) -> Result<Vec<u8>, ExportError> {
    let metadata = Metadata {
        layout: layout.clone(),
        step,
    };
    Ok(match network.fold()? {
        Folded::Tower(weights) => onnx::build(&weights, &metadata, Input::Rows)?,
        Folded::FishEye(weights) => fish_eye::build(&weights, &metadata)?,
    })
}

/// Writes the number of pairs that a network was trained on into its ONNX file ([`onnx::model::PAIRS_KEY`]), if its rows can
/// hold pairs.
///
/// # Errors
/// [`ExportError::Refused`] if `model` is not an ONNX file.
pub fn with_pairs(model: Vec<u8>, layout: &RowLayout, pairs: u64) -> Result<Vec<u8>, ExportError> {
    match layout.form {
        RowForm::Planes(_) => Ok(model),
        RowForm::Clan(_) => with_entry(&model, PAIRS_KEY, &pairs.to_string()).map_err(refused),
    }
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
    /// The library cannot be loaded.
    pub fn load() -> Result<Self, network::runtime::RuntimeError> {
        Ok(Self {
            environment: network::runtime::load()?,
        })
    }

    /// Compares `model`, the export of `network`, with the network on valid rows, back to back.
    ///
    /// # Errors
    /// [`ExportError`] if the export must not be published.
    pub fn prove(
        &self,
        model: &[u8],
        network: &Network,
        layout: &RowLayout,
        rows: &[u32],
    ) -> Result<Agreement, ExportError> {
        if rows.is_empty() {
            return Err(refused("there is no position to prove the export on"));
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
    ) -> Result<Answers, ExportError> {
        let mut session = Session::builder(&self.environment)
            .map_err(by_runtime)?
            .with_intra_threads(1)
            .map_err(by_runtime)?
            .with_no_environment_execution_providers()
            .map_err(by_runtime)?
            .commit_from_memory(model)
            .map_err(by_runtime)?;
        let inputs = expand(layout, rows).map_err(refused)?;
        let named = inputs.into_iter().map(|input| {
            let tensor = OrtTensor::from_array((input.shape, input.numbers));
            Ok((input.name, tensor.map_err(by_runtime)?))
        });
        let named: Vec<_> = named.collect::<Result<_, ExportError>>()?;
        let inputs: SessionInputs<'_, '_> = named.into();
        let outputs = session.run(inputs).map_err(by_runtime)?;
        Ok(Answers {
            logits: numbers(&outputs, onnx::model::POLICY)?,
            values: numbers(&outputs, onnx::model::VALUE)?,
            outcomes: match outputs.contains_key(OUTCOMES) {
                true => Some(numbers(&outputs, OUTCOMES)?),
                false => None,
            },
        })
    }
}

fn numbers(outputs: &SessionOutputs<'_>, name: &str) -> Result<Vec<f32>, ExportError> {
    let output = outputs
        .get(name)
        .ok_or_else(|| refused(format!("there is no output `{name}`")))?;
    let (_, numbers) = output.try_extract_tensor::<f32>().map_err(by_runtime)?;
    Ok(numbers.to_vec())
}

fn by_runtime<T>(error: ort::Error<T>) -> ExportError {
    refused(format!("ONNX Runtime: {}", shortened(&error.to_string())))
}

/// Computes the outputs with libtorch in f32 on the CPU, because a GPU may compute with less precision.
fn answers_of_torch(network: &Network, layout: &RowLayout, rows: &[u32]) -> Result<Answers, ExportError> {
    let _guard = tch::no_grad_guard();
    let on_cpu;
    let network = if network.variables.device == Device::Cpu {
        network
    } else {
        on_cpu = copy_to_cpu(network)?;
        &on_cpu
    };
    let inputs = Feeder::new(layout, Device::Cpu)?.rows(rows)?;
    let outputs = network.forward(&inputs, Pass::EVALUATE)?;
    let outcomes = match outputs.value_form {
        ValueForm::Outcomes => {
            let outcomes = outputs.head(VALUE)?.f_softmax(1, Kind::Float);
            Some(to_host(&outcomes.map_err(TorchError::from)?)?)
        }
        ValueForm::Tanh | ValueForm::Sigmoid => None,
    };
    Ok(Answers {
        logits: to_host(outputs.head(POLICY)?)?,
        values: to_host(&outputs.values)?,
        outcomes,
    })
}

fn copy_to_cpu(network: &Network) -> Result<Network, ExportError> {
    let mut copy = Network::new(&network.shape, 0, Device::Cpu)?;
    let variables = network.variables.to_host()?;
    copy.variables.load(&variables).map_err(refused)?;
    Ok(copy)
}

fn compare(torch: &Answers, runtime: &Answers) -> Result<Agreement, ExportError> {
    for (by, answers) in [(TORCH, torch), ("ONNX Runtime", runtime)] {
        let outcomes = answers.outcomes.as_ref().map(|outcomes| ("wdl", outcomes));
        let both = [("policy", &answers.logits), ("value", &answers.values)];
        for (output, numbers) in both.into_iter().chain(outcomes) {
            if numbers.iter().any(|number| !number.is_finite()) {
                let reason = format!("the {output} of {by} is not finite");
                return Err(match by {
                    TORCH => ExportError::NotFinite(reason),
                    _ => ExportError::Refused(reason),
                });
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
            return Err(refused(reason));
        }
    };
    for (output, difference, bound) in [
        ("policy", policy, POLICY_BOUND),
        ("value", value, VALUE_BOUND),
        ("wdl", outcomes, VALUE_BOUND),
    ] {
        if difference > bound {
            return Err(refused(format!(
                "ONNX Runtime and libtorch differ in {output} by {difference:e}, {bound:e} is allowed"
            )));
        }
    }
    Ok(Agreement {
        policy,
        value: value.max(outcomes),
        positions: torch.values.len(),
    })
}

fn largest_difference(left: &[f32], right: &[f32]) -> Result<f32, ExportError> {
    if left.len() != right.len() {
        return Err(refused(format!(
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
