//! Asking a role's health service, from within its own container: an image needs no second program for it.

use std::time::Duration;

use anyhow::{Context as _, bail};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::connect;

/// A role that does not answer within this time is not healthy.
const PATIENCE: Duration = Duration::from_secs(4);

/// Succeeds where the process that answers at `address` says that it is serving.
///
/// # Errors
/// Where nobody answers in time, or the answer is another one.
pub(super) fn probe(address: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let mut client = HealthClient::new(connect::channel(address)?);
        let request = HealthCheckRequest {
            service: String::new(),
        };
        let answer = tokio::time::timeout(PATIENCE, client.check(request))
            .await
            .with_context(|| format!("no answer from {address} within {} s", PATIENCE.as_secs()))??;
        match answer.into_inner().status() {
            ServingStatus::Serving => Ok(()),
            other => bail!("{address} says {}", other.as_str_name()),
        }
    })
}
