//! Descriptions of a model in the protocol: metadata, and Triton's configuration.

use games::RowLayout;
use onnx::model::{PLANES, POLICY, ROWS, VALUE};
use proto::inference::{
    DataType, ModelConfig, ModelDynamicBatching, ModelInput, ModelMetadataResponse, ModelOutput,
    model_metadata_response::TensorMetadata,
};

/// Suffix of a model's name that selects a description with dense planes as input.
pub const DENSE: &str = "_dense";

const PLATFORM: &str = "onnxruntime_onnx";
const BACKEND: &str = "onnxruntime";

/// A model and the form that a client requests.
#[derive(Clone, Copy, Debug)]
pub struct DescribedModel<'a> {
    /// Name in the request.
    pub name: &'a str,
    /// True if the input is described as planes.
    pub is_dense: bool,
    /// Version of the model.
    pub version: &'a str,
    /// Layout of its rows.
    pub layout: &'a RowLayout,
}

impl DescribedModel<'_> {
    /// Returns name, type and shape of the input, without the batch dimension.
    fn input(&self) -> (&'static str, &'static str, DataType, Vec<i64>) {
        match self.layout.stack() {
            Ok(stack) if self.is_dense => {
                let dims = vec![i64::from(stack.planes), 8, 8];
                (PLANES, "FP32", DataType::TypeFp32, dims)
            }
            Ok(stack) => (ROWS, "UINT32", DataType::TypeUint32, vec![stack.row_len() as i64]),
            // Rows of different lengths are padded with -1.
            Err(_) => (ROWS, "INT32", DataType::TypeInt32, vec![-1]),
        }
    }

    fn outputs(&self) -> [(&'static str, i64); 2] {
        [(POLICY, i64::from(self.layout.actions)), (VALUE, 1)]
    }

    /// Returns the model's metadata.
    pub fn metadata(&self) -> ModelMetadataResponse {
        let tensor = |name: &str, datatype: &str, dims: &[i64]| TensorMetadata {
            name: name.into(),
            datatype: datatype.into(),
            shape: std::iter::once(-1).chain(dims.iter().copied()).collect(),
        };
        let (name, datatype, _, dims) = self.input();
        let parameters = [
            ("game", self.layout.game.clone()),
            (
                "also",
                "input legal_actions INT32 [-1,k], padded with -1: output priors FP32 [-1,k] in place of policy_logits; \
                 indices may be INT32; planes FP32 [-1,planes,8,8] may replace indices"
                    .into(),
            ),
        ];
        ModelMetadataResponse {
            name: self.name.into(),
            versions: vec![self.version.into()],
            platform: PLATFORM.into(),
            inputs: vec![tensor(name, datatype, &dims)],
            outputs: self
                .outputs()
                .map(|(name, width)| tensor(name, "FP32", &[width]))
                .to_vec(),
            properties: parameters.map(|(key, value)| (key.to_owned(), value)).into(),
        }
    }

    /// Returns the model's configuration. Requests have at most `max_request` positions and wait at most `max_wait_us`
    /// microseconds for others of their batch.
    pub fn config(&self, max_request: usize, max_wait_us: u64) -> ModelConfig {
        let (name, _, data_type, dims) = self.input();
        ModelConfig {
            name: self.name.into(),
            platform: PLATFORM.into(),
            max_batch_size: i32::try_from(max_request).unwrap_or(i32::MAX),
            input: vec![ModelInput {
                name: name.into(),
                data_type: data_type.into(),
                dims,
            }],
            output: self
                .outputs()
                .map(|(name, width)| ModelOutput {
                    name: name.into(),
                    data_type: DataType::TypeFp32.into(),
                    dims: vec![width],
                })
                .to_vec(),
            dynamic_batching: Some(ModelDynamicBatching {
                preferred_batch_size: Vec::new(),
                max_queue_delay_microseconds: max_wait_us,
            }),
            backend: BACKEND.into(),
        }
    }
}
