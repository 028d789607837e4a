//! Models that requests name, and their descriptions in the protocol: metadata, and Triton's configuration.

use std::sync::Arc;

use network::model::Model;
use onnx::model::{PLANES, POLICY, ROWS, VALUE};
use proto::inference::{
    DataType, ModelConfig, ModelDynamicBatching, ModelInput, ModelMetadataResponse, ModelOutput,
    model_metadata_response::TensorMetadata,
};
use tonic::Status;

use super::error::{invalid, refused, unknown_model};
use crate::intake::{Intake, refusal::Refusal};

/// Suffix of a model's name that selects a description with dense planes as input.
const DENSE: &str = "_dense";

const PLATFORM: &str = "onnxruntime_onnx";
const BACKEND: &str = "onnxruntime";

/// A model that a request named.
pub(super) struct FoundModel {
    pub(super) model: Arc<Model>,
    /// Canonical name of the model on this server.
    pub(super) name: String,
    /// Name in the request.
    asked: String,
    /// True if the input is described as planes.
    is_dense: bool,
}

impl FoundModel {
    /// Finds the model that a request names.
    ///
    /// # Errors
    /// The status if there is no such model, or if it is not loaded.
    pub(super) fn find(intake: &Intake, asked: &str, version: &str) -> Result<Self, Status> {
        let plain = asked.strip_suffix(DENSE);
        let is_dense = plain.is_some();
        let plain = plain.unwrap_or(asked);
        if plain.is_empty() {
            return Err(invalid("the request does not name a model"));
        }
        let name = if version.is_empty() || version == plain {
            plain.to_owned()
        } else {
            format!("{plain}/{version}")
        };
        let found = intake.models.find(&name).map_err(|refusal| match refusal {
            Refusal::UnknownModel(_) => unknown_model(asked, version),
            other => refused(&other),
        })?;
        Ok(Self {
            model: found.model,
            name,
            asked: asked.to_owned(),
            is_dense,
        })
    }

    /// Returns name, type and shape of the input, without the batch dimension.
    fn input(&self) -> (&'static str, &'static str, DataType, Vec<i64>) {
        match self.model.info.layout.stack() {
            Ok(stack) if self.is_dense => {
                let dims = stack.shape().map(|side| side as i64);
                (PLANES, "FP32", DataType::TypeFp32, dims.to_vec())
            }
            Ok(stack) => (ROWS, "UINT32", DataType::TypeUint32, vec![stack.row_len() as i64]),
            // Rows of different lengths are padded with -1.
            Err(_) => (ROWS, "INT32", DataType::TypeInt32, vec![-1]),
        }
    }

    fn outputs(&self) -> [(&'static str, i64); 2] {
        [(POLICY, i64::from(self.model.info.layout.actions)), (VALUE, 1)]
    }

    /// Returns the model's metadata.
    pub(super) fn metadata(&self) -> ModelMetadataResponse {
        let tensor = |name: &str, datatype: &str, dims: &[i64]| TensorMetadata {
            name: name.into(),
            datatype: datatype.into(),
            shape: [&[-1], dims].concat(),
        };
        let (name, datatype, _, dims) = self.input();
        let properties = [
            ("game", self.model.info.layout.game.as_str()),
            (
                "also",
                "input legal_actions INT32 [-1,k], padded with -1: output priors FP32 [-1,k] in place of policy_logits; \
                 indices may be INT32; planes FP32 [-1,planes,height,width] may replace indices",
            ),
        ];
        ModelMetadataResponse {
            name: self.asked.clone(),
            versions: vec![self.model.info.version.clone()],
            platform: PLATFORM.into(),
            inputs: vec![tensor(name, datatype, &dims)],
            outputs: self
                .outputs()
                .map(|(name, width)| tensor(name, "FP32", &[width]))
                .into(),
            properties: properties.map(|(key, value)| (key.into(), value.into())).into(),
        }
    }

    /// Returns the model's configuration. Requests have at most `max_request` positions. They wait for others of their batch only
    /// while the device is busy.
    pub(super) fn config(&self, max_request: usize) -> ModelConfig {
        let (name, _, data_type, dims) = self.input();
        ModelConfig {
            name: self.asked.clone(),
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
                .into(),
            dynamic_batching: Some(ModelDynamicBatching::default()),
            backend: BACKEND.into(),
        }
    }
}
