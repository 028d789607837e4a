//! Parts shared by all roles: arguments, logging, metrics, health, draining and connections.
//!
//! | module | purpose |
//! |---|---|
//! | [`role`] | the `main` of a role's binary: arguments, logs, metrics page, signals, exit codes |
//! | [`connect`] | links to other roles, spread over all servers of a host name |
//! | [`security`] | TLS, tokens, rights |
//! | [`calls`] | limits of calls: tokens, size, memory and time of requests |
//! | [`listener`] | accepted connections and their limits |
//! | [`serve`] | common server settings, health, reflection, draining with a time limit |
//! | [`backoff`] | delays between attempts |
//! | [`metrics_page`] | the Prometheus page: build, process, histogram buckets |
//! | [`metrics_table!`] | the metrics of a role as one table |
//! | [`errors`] | displays an error with all its sources; converts panics of third-party code into errors |
//! | [`telemetry`] | spans for an OpenTelemetry collector |
//! | [`log_throttle`] | limits how often a repeated condition is logged |
//! | [`filesystem`] | the kind of file system that a folder lies on |
//! | [`process`] | memory, processor time and file descriptors of a process |
//! | [`release`] | version and commit of a program |
//! | [`figures`] | files of figures over time: JSON lines, TensorBoard |

pub mod backoff;
pub mod calls;
pub mod connect;
pub mod errors;
pub mod figures;
pub mod filesystem;
pub mod listener;
pub mod log_throttle;
pub mod metrics_page;
mod metrics_table;
mod plain;
pub mod process;
pub mod release;
pub mod role;
pub mod security;
pub mod serve;
// A build without the feature `otlp` has the same interface and makes no spans.
#[cfg(feature = "otlp")]
pub mod telemetry;
#[cfg(not(feature = "otlp"))]
#[path = "telemetry/absent.rs"]
pub mod telemetry;

pub use errors::{chain, contain, end_if_output_fails};
pub use plain::{plain, plain_json, plain_lines};
