//! Queries a role's health service from the role's own binary, so that a container image needs no extra program.

use std::time::Duration;

use anyhow::{Context as _, bail};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::connect;

/// Time limit for the health service's answer.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Succeeds if the health service at `address` reports SERVING.
///
/// # Errors
/// If there is no answer in time, or another answer.
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
        let answer = tokio::time::timeout(TIMEOUT, client.check(request))
            .await
            .with_context(|| format!("no answer from {address} within {} s", TIMEOUT.as_secs()))??;
        match answer.into_inner().status() {
            ServingStatus::Serving => Ok(()),
            other => bail!("{address} says {}", other.as_str_name()),
        }
    })
}
