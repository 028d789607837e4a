//! `[analysis]`: the analysis service.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// Settings of the analysis role. `minuet up` does not start it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct AnalysisConfig {
    /// Address that the service listens on, host:port, e.g. "0.0.0.0:50053" in a container; empty: "127.0.0.1:50053".
    pub address: String,
    /// Network that evaluates, as a player of `minuet arena`, e.g. "runs/chess@best", which is loaded once, or
    /// "http://inference-server:50051@best", whose newest version takes over within ten seconds. Empty: the default model of the
    /// inference servers (inference.address).
    pub model: String,
    /// Address of the Prometheus metrics page; empty: none.
    pub metrics: String,
    /// Address of a second, plaintext health service, for probes that cannot reach the service because of its TLS; empty: none.
    pub health: String,
}

impl AnalysisConfig {
    /// Returns the address to listen on.
    pub fn listen_address(&self) -> &str {
        super::run::first_given(&self.address, "127.0.0.1:50053")
    }
}
