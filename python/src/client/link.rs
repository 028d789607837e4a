//! Addresses, `[security]`, deadlines, and the runtime of all calls.

use std::{
    future::Future,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use config::SecurityConfig;
use pyo3::prelude::*;
use service::connect::{self, Link};
use tokio::runtime::Runtime;
use tonic::Status;

use crate::error::{ServerError, SettingsError, server};

/// Interval at which a call that waits looks for Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(100);

/// Runtime of all calls of this process. A process that was forked has no threads of its parent's runtime, so it gets one of
/// its own; the parent's is never dropped.
pub fn runtime() -> PyResult<&'static Runtime> {
    static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);
    let mut kept = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    match *kept {
        Some((process, runtime)) if process == std::process::id() => Ok(runtime),
        _ => {
            let made = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .map_err(|error| {
                    ServerError::new_err(format!("cannot start the threads of the client: {error}"))
                })?;
            let runtime: &'static Runtime = Box::leak(Box::new(made));
            *kept = Some((std::process::id(), runtime));
            Ok(runtime)
        }
    }
}

/// A client that connects again in a forked process, where its parent's connection does not work.
pub struct Client<T> {
    pub address: String,
    security: Option<String>,
    make: fn(Link) -> T,
    made: Mutex<(u32, T)>,
}

impl<T: Clone> Client<T> {
    /// Connects to `address`; for `security` see [`link`].
    pub fn new(address: &str, security: Option<&str>, make: fn(Link) -> T) -> PyResult<Self> {
        Ok(Self {
            address: address.into(),
            security: security.map(str::to_owned),
            make,
            made: Mutex::new((std::process::id(), make(link(address, security)?))),
        })
    }

    /// Client of this process.
    pub fn get(&self) -> PyResult<T> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.0 != std::process::id() {
            let link = link(&self.address, self.security.as_deref())?;
            *made = (std::process::id(), (self.make)(link));
        }
        Ok(made.1.clone())
    }
}

/// Link to a server. `security` is a table `[security]` as JSON; without one, that of the run that `MINUET_CONFIG` names.
fn link(address: &str, security: Option<&str>) -> PyResult<Link> {
    let wrong =
        |error: &(dyn std::error::Error + 'static)| SettingsError::new_err(service::chain(error).to_string());
    let security: SecurityConfig = match security {
        Some(text) => serde_json::from_str(text)
            .map_err(|error| SettingsError::new_err(format!("security: {error}")))?,
        None => config::security_from_environment()
            .map_err(|error| wrong(&error))?
            .unwrap_or_default(),
    };
    let _entered = runtime()?.enter();
    connect::link(address, &security).map_err(|error| wrong(&error))
}

/// Waits for an answer with the GIL released. Ctrl-C ends the wait. Without a time the wait has no end of its own.
pub fn wait<T: Send>(
    py: Python<'_>,
    address: &str,
    seconds: Option<f64>,
    call: impl Future<Output = Result<T, Status>> + Send,
) -> PyResult<T> {
    let limit = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
    let runtime = runtime()?;
    let mut call = Box::pin(async {
        match limit {
            None => call.await,
            Some(limit) => tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
                Err(Status::deadline_exceeded(format!(
                    "no answer within {} s",
                    limit.as_secs_f64()
                )))
            }),
        }
    });
    loop {
        let waited =
            py.detach(|| runtime.block_on(async { tokio::time::timeout(SIGNALS, call.as_mut()).await }));
        match waited {
            Ok(answered) => return answered.map_err(|status| server(py, address, &status)),
            Err(_) => py.check_signals()?,
        }
    }
}
