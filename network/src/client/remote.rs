//! A network behind an inference server.

use std::{io, time::Duration};

use config::{ConfigError, SecurityConfig, security_from_environment};
use games::RowLayout;
use parking_lot::Mutex;
use proto::{
    priors,
    v1::{DescribeModelRequest, EvaluateRequest, evaluator_client::EvaluatorClient},
};
use service::connect::{self, AddressError, Link, MAX_MESSAGE_BYTES};
use tokio::runtime::Runtime;
use tonic::Status;

use super::{Description, Network, NetworkError, PositionBatch, Predictions};

/// Longest time for one answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Positions in one request, far below what servers accept by default.
const LARGEST: usize = 1024;

/// A server that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The run whose `[security]` counts cannot be read.
    #[error("MINUET_CONFIG: {0}")]
    Security(#[from] ConfigError),
    /// It does not describe its model.
    #[error("inference server {address}: {}", .status.message())]
    Describe {
        /// Where it is.
        address: String,
        /// What it said.
        status: Box<Status>,
    },
    /// The description means nothing here.
    #[error("inference server {address} serves a network whose row layout cannot be read: {reason}")]
    Layout {
        /// Where it is.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The system gave no thread.
    #[error("cannot start a runtime: {0}")]
    Runtime(#[from] io::Error),
}

/// A network behind an inference server. The version that the server described first is asked for by name ever
/// after, so that one player is one network: when the server has moved on, it says so.
#[derive(Debug)]
pub struct RemoteNetwork {
    address: String,
    description: Description,
    client: EvaluatorClient<Link>,
    runtime: Mutex<Runtime>,
}

impl RemoteNetwork {
    /// Connects, as `[security]` of the run that `MINUET_CONFIG` names says, and asks which network `model` (a label or a version; empty: the server's default) names.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(address: &str, model: &str) -> Result<Self, ConnectError> {
        Self::connect_with(address, model, &security_from_environment()?.unwrap_or_default())
    }

    /// As [`RemoteNetwork::connect`], as `security` says.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect_with(address: &str, model: &str, security: &SecurityConfig) -> Result<Self, ConnectError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let client = {
            let _entered = runtime.enter();
            EvaluatorClient::new(connect::link(address, security)?)
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES)
        };
        let refused = |status: Status| ConnectError::Describe {
            address: address.into(),
            status: Box::new(status),
        };
        let request = DescribeModelRequest { model: model.into() };
        let mut asking = client.clone();
        let described = runtime
            .block_on(within(async move { asking.describe_model(request).await }))
            .map_err(refused)?;
        let layout: RowLayout =
            serde_json::from_str(&described.layout_json).map_err(|error| ConnectError::Layout {
                address: address.into(),
                reason: error.to_string(),
            })?;
        Ok(Self {
            address: address.into(),
            description: Description {
                version: described.version,
                step: described.step,
                layout,
                provider: described.provider,
            },
            client,
            runtime: Mutex::new(runtime),
        })
    }

    fn ask(&self, request: EvaluateRequest) -> Result<proto::v1::EvaluateReply, NetworkError> {
        let mut client = self.client.clone();
        self.runtime
            .lock()
            .block_on(within(async move { client.evaluate(request).await }))
            .map_err(|status| NetworkError::Server {
                address: self.address.clone(),
                status: Box::new(status),
            })
    }
}

impl Network for RemoteNetwork {
    fn description(&self) -> &Description {
        &self.description
    }

    fn evaluate(&self, batch: &PositionBatch, predictions: &mut Predictions) -> Result<(), NetworkError> {
        let wrong = |reason: String| NetworkError::Answer {
            address: self.address.clone(),
            reason,
        };
        let row_len = self.description.layout.row_len();
        let mut first = 0;
        while first < batch.len() {
            let last = batch.len().min(first + LARGEST);
            if let Some(row_len) = row_len
                && (first..last).any(|position| batch.get(position).0.len() != row_len)
            {
                return Err(wrong(format!("a model of rows of {row_len} values")));
            }
            let request = EvaluateRequest {
                model: self.description.version.clone(),
                ..batch.to_request(first..last, row_len)
            };
            let legal = request.legal_actions.len();
            let reply = self.ask(request)?;
            if reply.version != self.description.version {
                return Err(wrong(format!("model {}", reply.version)));
            }
            if reply.values.len() != last - first {
                return Err(wrong(format!("{} values", reply.values.len())));
            }
            if let Some(at) = reply.values.iter().position(|value| !value.is_finite()) {
                return Err(NetworkError::NotFinite(first + at));
            }
            predictions.values.extend_from_slice(&reply.values);
            priors::decode(&reply.priors, legal, &mut predictions.priors)
                .map_err(|error| wrong(error.to_string()))?;
            first = last;
        }
        Ok(())
    }
}

async fn within<T>(call: impl Future<Output = Result<tonic::Response<T>, Status>>) -> Result<T, Status> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(answered) => answered.map(tonic::Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded(format!(
            "no answer within {} s",
            PATIENCE.as_secs()
        ))),
    }
}
