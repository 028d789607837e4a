//! A network behind an inference server.

use std::{io, time::Duration};

use config::{ConfigError, SecurityConfig, security_from_environment};
use games::RowLayout;
use parking_lot::Mutex;
use proto::{
    priors,
    v1::{DescribeModelRequest, EvaluateRequest, Priority, evaluator_client::EvaluatorClient},
};
use service::connect::{self, AddressError, Link, MAX_MESSAGE_BYTES};
use tokio::runtime::Runtime;
use tonic::Status;

use super::{Description, Network, NetworkError, PositionBatch, Predictions};

/// Longest wait for one answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Largest number of positions in one request, far below the default limit of servers.
const LARGEST: usize = 1024;

/// Error: an inference server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is malformed.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The run that `MINUET_CONFIG` names cannot be read.
    #[error("the configuration that MINUET_CONFIG names cannot be read")]
    Security(#[from] ConfigError),
    /// The server did not describe its model.
    #[error("inference server {address}: {}", .status.message())]
    Describe {
        /// Address of the server.
        address: String,
        /// Status of the call.
        status: Box<Status>,
    },
    /// The row layout in the description cannot be parsed.
    #[error("inference server {address} serves a network whose row layout cannot be read: {reason}")]
    Layout {
        /// Address of the server.
        address: String,
        /// Reason.
        reason: String,
    },
    /// The async runtime cannot be started.
    #[error("cannot start a runtime")]
    Runtime(#[from] io::Error),
}

/// A network behind an inference server. Every request names the version that the server described first, so that a player
/// stays one network. When the server no longer has that version, requests fail.
#[derive(Debug)]
pub struct RemoteNetwork {
    address: String,
    /// Name of the version in requests.
    model: String,
    description: Description,
    client: EvaluatorClient<Link>,
    /// `None` only while the network is dropped.
    runtime: Mutex<Option<Runtime>>,
}

impl RemoteNetwork {
    /// Connects with the `[security]` settings of the run that `MINUET_CONFIG` names, and asks for the description of
    /// `model`: a label, a version, or the server's default if it is empty.
    ///
    /// # Errors
    /// [`ConnectError`] with the reason.
    pub fn connect(address: &str, model: &str) -> Result<Self, ConnectError> {
        Self::connect_with(address, model, &security_from_environment()?.unwrap_or_default())
    }

    /// Connects with the settings `security`, otherwise like [`RemoteNetwork::connect`].
    ///
    /// # Errors
    /// [`ConnectError`] with the reason.
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
            model: pinned(model, &described.version),
            description: Description {
                version: described.version,
                step: described.step,
                layout,
                provider: described.provider,
            },
            client,
            runtime: Mutex::new(Some(runtime)),
        })
    }

    fn ask(&self, request: EvaluateRequest) -> Result<proto::v1::EvaluateReply, NetworkError> {
        let mut client = self.client.clone();
        let answered = match &*self.runtime.lock() {
            Some(runtime) => runtime.block_on(within(async move { client.evaluate(request).await })),
            None => Err(Status::cancelled("the connection is closed")),
        };
        answered.map_err(|status| NetworkError::Server {
            address: self.address.clone(),
            status: Box::new(status),
        })
    }
}

impl Drop for RemoteNetwork {
    /// Ends the runtime without waiting, so that an async task may drop a network.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.lock().take() {
            runtime.shutdown_background();
        }
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
                model: self.model.clone(),
                priority: Priority::Play.into(),
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

/// Returns the server's name for a version that it described for `model`. A model of another source keeps the source's name:
/// `chess/best` becomes `chess/best/VERSION`, where the server passes over the label.
fn pinned(model: &str, version: &str) -> String {
    match model {
        "" => version.to_owned(),
        _ if model.ends_with(version) => model.to_owned(),
        _ => format!("{model}/{version}"),
    }
}

async fn within<T>(call: impl Future<Output = Result<tonic::Response<T>, Status>>) -> Result<T, Status> {
    match tokio::time::timeout(TIMEOUT, call).await {
        Ok(answered) => answered.map(tonic::Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded(format!(
            "no answer within {} s",
            TIMEOUT.as_secs()
        ))),
    }
}
