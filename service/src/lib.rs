//! What every role shares: the run's configuration, logging, metrics, health, draining, connecting.
//!
//! | module | what it is for |
//! |---|---|
//! | [`role`] | the `main` of a role's binary: arguments, logs, metrics page, signals, exit codes |
//! | [`connect`] | lazily connecting links to other roles, spread over all servers of a name |
//! | [`security`] | TLS, tokens, rights |
//! | [`listener`] | which connections a server lets in |
//! | [`serve`] | the same server settings everywhere, health, reflection, draining with a deadline |
//! | [`backoff`] | how long to wait before the next attempt |
//! | [`metrics_page`] | the Prometheus page: build, process, histogram buckets |
//! | [`contain`](mod@contain) | panics of others' code that are expected, and answered |
//! | [`telemetry`] | spans for an OpenTelemetry collector |
//! | [`process`] | memory and processor time of a process |
//! | [`figures`] | figures over time as files: JSON lines, TensorBoard |

pub mod backoff;
pub mod connect;
pub mod contain;
pub mod figures;
pub mod listener;
pub mod metrics_page;
pub mod process;
pub mod role;
pub mod security;
pub mod serve;
// A build without the feature `otlp` has the same interface and makes no spans.
#[cfg(feature = "otlp")]
pub mod telemetry;
#[cfg(not(feature = "otlp"))]
#[path = "telemetry/absent.rs"]
pub mod telemetry;
