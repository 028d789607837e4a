//! A network behind an inference server.

use std::{io, time::Duration};

use config::{ConfigError, SecurityConfig, security_from_environment};
use games::RowLayout;
use parking_lot::Mutex;
use proto::{
    priors,
    v1::{
        DescribeModelRequest, EvaluateReply, EvaluateRequest, ModelDescription, Priority,
        evaluator_client::EvaluatorClient,
    },
};
use service::connect::{self, AddressError, Link, MAX_MESSAGE_BYTES};
use tokio::runtime::Runtime;
use tonic::{Code, Response, Status};

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
/// stays one network. If the server no longer has that version because its label has moved, the label's present version
/// takes over, with a warning in the log. A network that was named by its version then fails.
#[derive(Debug)]
pub struct RemoteNetwork {
    address: String,
    /// Label or version that was named.
    model: String,
    /// Version that answers.
    version: Mutex<String>,
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
        let described = runtime
            .block_on(within(describe(&client, model)))
            .map_err(refused)?;
        let layout: RowLayout =
            serde_json::from_str(&described.layout_json).map_err(|error| ConnectError::Layout {
                address: address.into(),
                reason: error.to_string(),
            })?;
        Ok(Self {
            address: address.into(),
            model: model.into(),
            version: Mutex::new(described.version.clone()),
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

    /// Evaluates a request by the pinned version. If its label has moved, by the label's present version from then on.
    fn ask(&self, mut request: EvaluateRequest) -> Result<EvaluateReply, NetworkError> {
        let mut version = self.version.lock();
        loop {
            request.model = pinned(&self.model, &version);
            let (mut client, asked) = (self.client.clone(), request.clone());
            let status = match self.run(async move { client.evaluate(asked).await }) {
                Ok(reply) if reply.version == *version => return Ok(reply),
                Ok(reply) => return Err(self.wrong(format!("model {}", reply.version))),
                Err(status) => status,
            };
            let is_gone = status.code() == Code::NotFound;
            let Some(present) = is_gone.then(|| self.moved_from(&version)).flatten() else {
                return Err(NetworkError::Server {
                    address: self.address.clone(),
                    status: Box::new(status),
                });
            };
            tracing::warn!(
                address = self.address,
                before = *version,
                present,
                "the label has moved; its present version evaluates from now on"
            );
            *version = present;
        }
    }

    /// Returns the version that the label points at now, if it has moved from `version` to one with the same row layout.
    fn moved_from(&self, version: &str) -> Option<String> {
        if self.model.ends_with(version) {
            return None;
        }
        let described = self.run(describe(&self.client, &self.model)).ok()?;
        let layout: RowLayout = serde_json::from_str(&described.layout_json).ok()?;
        let is_other = described.version != version && layout == self.description.layout;
        is_other.then_some(described.version)
    }

    /// Waits for the answer to a call.
    fn run<T>(&self, call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Status> {
        match &*self.runtime.lock() {
            Some(runtime) => runtime.block_on(within(call)),
            None => Err(Status::cancelled("the connection is closed")),
        }
    }

    fn wrong(&self, reason: String) -> NetworkError {
        NetworkError::Answer {
            address: self.address.clone(),
            reason,
        }
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
        let row_len = self.description.layout.row_len();
        let mut first = 0;
        while first < batch.len() {
            let last = batch.len().min(first + LARGEST);
            if let Some(row_len) = row_len
                && (first..last).any(|position| batch.get(position).0.len() != row_len)
            {
                return Err(self.wrong(format!("a model of rows of {row_len} values")));
            }
            let request = EvaluateRequest {
                priority: Priority::Play.into(),
                ..batch.to_request(first..last, row_len)
            };
            let legal = request.legal_actions.len();
            let reply = self.ask(request)?;
            if reply.values.len() != last - first {
                return Err(self.wrong(format!("{} values", reply.values.len())));
            }
            if let Some(at) = reply.values.iter().position(|value| !value.is_finite()) {
                return Err(NetworkError::NotFinite(first + at));
            }
            predictions.values.extend_from_slice(&reply.values);
            priors::decode(&reply.priors, legal, &mut predictions.priors)
                .map_err(|error| self.wrong(error.to_string()))?;
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

async fn describe(client: &EvaluatorClient<Link>, model: &str) -> Result<Response<ModelDescription>, Status> {
    let request = DescribeModelRequest { model: model.into() };
    client.clone().describe_model(request).await
}

async fn within<T>(call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Status> {
    match tokio::time::timeout(TIMEOUT, call).await {
        Ok(answered) => answered.map(Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded(format!(
            "no answer within {} s",
            TIMEOUT.as_secs()
        ))),
    }
}
