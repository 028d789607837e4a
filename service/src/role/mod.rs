//! The `main` function shared by the roles' binaries: arguments, logs, metrics page, signals, exit codes.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use service::role::{self, Role};
//!
//! fn main() -> ExitCode {
//!     role::main(Role::Actor, |config, shutdown| {
//!         Box::pin(async move {
//!             shutdown.cancelled().await; // play, until asked to stop
//!             drop(config);
//!             Ok(())
//!         })
//!     })
//! }
//! ```
//!
//! Exit codes: 0 after a requested stop, 1 on failure, 2 if arguments or configuration cannot be used.

mod arguments;
mod logging;
mod shutdown;

use std::{process::ExitCode, time::Duration};

use anyhow::{Context as _, anyhow, bail};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{connect, metrics_page, process, serve, telemetry::Telemetry};
use config::{ConfigError, RunConfig, load_with};

pub use arguments::{Arguments, LogFormat};
pub use shutdown::{stop_on_signals, stop_when_stdin_closes};

/// Time limit for the answer of the health service to a probe.
const PROBE_TIME: Duration = Duration::from_secs(4);
/// Time limit for remaining threads to stop after the role's work has ended.
const LEFT_OVER_THREADS: Duration = Duration::from_secs(2);

/// A role: the task of one process of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Keeps finished games and serves training batches.
    ReplayStore,
    /// Evaluates positions for actors.
    InferenceServer,
    /// Trains the network and publishes checkpoints.
    Learner,
    /// Plays games against itself.
    Actor,
    /// Plays new checkpoints against the best one.
    Rating,
    /// Searches positions for clients.
    Analysis,
    /// Shows the run in the browser.
    Studio,
}

impl Role {
    /// Returns the role's name, e.g. `replay-store`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReplayStore => "replay-store",
            Self::InferenceServer => "inference-server",
            Self::Learner => "learner",
            Self::Actor => "actor",
            Self::Rating => "rating",
            Self::Analysis => "analysis",
            Self::Studio => "studio",
        }
    }

    /// Returns the name of the role's binary, e.g. `minuet-replay-store`.
    pub fn binary(self) -> &'static str {
        match self {
            Self::ReplayStore => "minuet-replay-store",
            Self::InferenceServer => "minuet-inference-server",
            Self::Learner => "minuet-learner",
            Self::Actor => "minuet-actor",
            Self::Rating | Self::Analysis | Self::Studio => "minuet",
        }
    }

    /// Returns the first argument of the binary if the role is a subcommand of `minuet`, whose binary already contains its
    /// dependencies.
    pub fn subcommand(self) -> Option<&'static str> {
        matches!(self, Self::Rating | Self::Analysis | Self::Studio).then(|| self.name())
    }

    fn about(self) -> &'static str {
        match self {
            Self::ReplayStore => "Keeps finished games durably and hands out training batches.",
            Self::InferenceServer => {
                "Evaluates positions: gathers requests into batches and runs the newest network."
            }
            Self::Learner => "Trains the network on stored games and publishes checkpoints.",
            Self::Actor => "Plays games against itself and sends them to the replay store.",
            Self::Studio => "Shows the run in the browser.",
            Self::Analysis => "Searches positions for clients, many at once.",
            Self::Rating => {
                "Plays new checkpoints against the best one and moves the label `best` to a better one."
            }
        }
    }

    /// Returns the address of the metrics page in `config`; empty: none.
    pub fn metrics(self, config: &RunConfig) -> &str {
        match self {
            Self::ReplayStore => &config.replay.metrics,
            Self::InferenceServer => &config.inference.metrics,
            Self::Learner => &config.learner.metrics,
            Self::Actor => &config.actor.metrics,
            Self::Rating => &config.rating.metrics,
            Self::Analysis => &config.analysis.metrics,
            Self::Studio => "",
        }
    }

    /// Returns the full path of the key of [`Role::metrics`]; empty: the role has no metrics page.
    pub fn metrics_key(self) -> &'static str {
        match self {
            Self::ReplayStore => "replay.metrics",
            Self::InferenceServer => "inference.metrics",
            Self::Learner => "learner.metrics",
            Self::Actor => "actor.metrics",
            Self::Rating => "rating.metrics",
            Self::Analysis => "analysis.metrics",
            Self::Studio => "",
        }
    }

    /// Returns the address of a separate health service; empty: none, or the role's own service includes health.
    fn separate_health(self, config: &RunConfig) -> &str {
        match self {
            Self::ReplayStore | Self::InferenceServer | Self::Analysis | Self::Studio => "",
            Self::Learner => &config.learner.health,
            Self::Actor => &config.actor.health,
            Self::Rating => &config.rating.health,
        }
    }
}

/// Future of a running role. It is boxed so that a role is compiled once, in its own crate, and not again in its callers.
pub type Work = BoxFuture<'static, anyhow::Result<()>>;

/// Entry point of a role's crate: runs the role with a configuration until the token is cancelled.
pub type Run = fn(RunConfig, CancellationToken) -> Work;

/// Runs a role as a process: reads arguments and configuration, starts logs, metrics page and health, cancels `shutdown` on
/// signals, and returns the exit code. `run` must end soon after `shutdown` is cancelled.
pub fn main(role: Role, run: Run) -> ExitCode {
    main_with(role, Arguments::parse_for(role.binary(), role.about()), run)
}

/// Runs a role like [`main`], with arguments that were parsed before; see [`Role::subcommand`].
pub fn main_with(
    role: Role,
    arguments: Arguments,
    run: impl FnOnce(RunConfig, CancellationToken) -> Work,
) -> ExitCode {
    if let Some(address) = &arguments.probe {
        return match probe(address) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}: {}", role.binary(), crate::plain_lines(&format!("{error:#}")));
                ExitCode::FAILURE
            }
        };
    }
    let endpoint = arguments
        .trace_to
        .as_deref()
        .filter(|endpoint| !endpoint.is_empty());
    let telemetry = endpoint.map(|endpoint| Telemetry::new(endpoint, arguments.trace_share, role.name()));
    let telemetry = match telemetry.transpose() {
        Ok(telemetry) => telemetry,
        Err(error) => {
            eprintln!("{}: --trace-to: {error:#}", role.binary());
            return ExitCode::from(2);
        }
    };
    logging::start(arguments.log_format, telemetry.as_ref());
    let code = run_with(role, &arguments, run);
    if let Some(telemetry) = telemetry {
        telemetry.end();
    }
    code
}

fn run_with(
    role: Role,
    arguments: &Arguments,
    run: impl FnOnce(RunConfig, CancellationToken) -> Work,
) -> ExitCode {
    let Err(error) = run_to_end(role, arguments, run) else {
        tracing::info!("stopped");
        return ExitCode::SUCCESS;
    };
    let mut causes = error.chain();
    let Some(refused) = causes.find_map(|cause| cause.downcast_ref::<ConfigError>()) else {
        tracing::error!("{error:#}");
        return ExitCode::FAILURE;
    };
    let file = arguments.config.as_deref();
    let file = file.map_or_else(String::new, |file| format!("{}: ", file.display()));
    eprintln!(
        "{}: {}",
        role.binary(),
        crate::plain_lines(&format!("{file}{refused}"))
    );
    ExitCode::from(2)
}

fn run_to_end(
    role: Role,
    arguments: &Arguments,
    run: impl FnOnce(RunConfig, CancellationToken) -> Work,
) -> anyhow::Result<()> {
    let config = load_with(arguments.config.as_deref(), &arguments.overrides)?;
    // Before any thread is started, because on Linux a thread inherits its creator's niceness.
    if let Some(nice) = arguments.nice {
        rustix::process::nice(nice).context("cannot set the process's niceness")?;
    }
    if let Err(error) = process::raise_descriptors() {
        tracing::warn!(%error, "cannot raise the limit of file descriptors");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        stop_on_signals(shutdown.clone())?;
        if arguments.supervised {
            stop_when_stdin_closes(shutdown.clone())?;
        }
        let metrics = role.metrics(&config);
        if !metrics.is_empty() {
            metrics_page::install(metrics, role.name())?;
        }
        let health = role.separate_health(&config);
        if !health.is_empty() {
            serve::serve_health(health, shutdown.clone()).await?;
        }
        tracing::info!(
            role = role.name(),
            version = crate::release::version(),
            pid = std::process::id(),
            metrics,
            descriptors = process::descriptors(),
            "started"
        );
        run(config, shutdown).await
    });
    runtime.shutdown_timeout(LEFT_OVER_THREADS);
    ended
}

/// Queries the health service at `address` from the role's own binary, so that a container image needs no extra program. Succeeds if
/// it reports SERVING.
///
/// # Errors
/// If there is no answer in time, or another answer.
fn probe(address: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let mut client = HealthClient::new(connect::channel(address)?);
        let request = HealthCheckRequest {
            service: String::new(),
        };
        let answer = tokio::time::timeout(PROBE_TIME, client.check(request))
            .await
            .with_context(|| format!("no answer from {address} within {} s", PROBE_TIME.as_secs()))?
            // A status displays its source as Rust code.
            .map_err(|status| anyhow!("{address} does not answer: {}", status.message()))?;
        match answer.into_inner().status() {
            ServingStatus::Serving => Ok(()),
            other => bail!("{address} says {}", other.as_str_name()),
        }
    })
}
