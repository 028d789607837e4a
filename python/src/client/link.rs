//! Addresses, `[security]`, deadlines, repeated calls, and the runtime of all calls.

use std::{
    error::Error as _,
    future::Future,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use config::SecurityConfig;
use pyo3::prelude::*;
use service::{
    backoff::Backoff,
    connect::{self, Link},
};
use tokio::runtime::Runtime;
use tonic::{Code, Request, Response, Status};

use crate::error::{ServerError, SettingsError, server};

/// Interval at which a call that waits looks for Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(100);

/// Time by which the server's deadline of a call is later than the client's, which then ends the call and names its length.
const GRACE: Duration = Duration::from_millis(200);

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

/// A client of one server. It connects again in a forked process, where its parent's connection does not work.
///
/// Calls that the server cannot take at the moment are repeated until their deadline, as actors do, once the server has answered
/// a call. Before its first answer they fail at once, so that a wrong address is found without a wait.
pub struct Client<T> {
    pub address: String,
    security: Option<String>,
    make: fn(Link) -> T,
    made: Mutex<(u32, T)>,
    has_answered: AtomicBool,
}

impl<T: Clone> Client<T> {
    /// Connects to `address`; for `security` see [`link`].
    pub fn new(address: &str, security: Option<&str>, make: fn(Link) -> T) -> PyResult<Self> {
        Ok(Self {
            address: address.into(),
            security: security.map(str::to_owned),
            make,
            made: Mutex::new((std::process::id(), make(link(address, security)?))),
            has_answered: AtomicBool::new(false),
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

    /// Limits of a call that begins now.
    pub fn limits(&self, seconds: f64) -> Limits {
        Limits {
            deadline: Instant::now() + duration(seconds),
            repeats: self.has_answered.load(Ordering::Relaxed),
        }
    }

    /// Makes one call, and waits for its answer with the GIL released.
    pub fn call<M, R, F>(
        &self,
        py: Python<'_>,
        seconds: f64,
        message: M,
        method: impl Fn(T, Request<M>) -> F + Send,
    ) -> PyResult<R>
    where
        T: Send,
        M: Clone + Send,
        R: Send,
        F: Future<Output = Result<Response<R>, Status>> + Send,
    {
        let (client, limits) = (self.get()?, self.limits(seconds));
        let call = limits.repeat(move || method(client.clone(), limits.request(message.clone())));
        self.wait(py, Some(seconds), call).map(Response::into_inner)
    }

    /// Waits for an answer with the GIL released. Ctrl-C ends the wait. Without a time the wait has no end of its own.
    pub fn wait<R: Send>(
        &self,
        py: Python<'_>,
        seconds: Option<f64>,
        call: impl Future<Output = Result<R, Status>> + Send,
    ) -> PyResult<R> {
        let answer = wait(py, seconds.map(duration), call)?.map_err(of_link);
        if !answer.as_ref().is_err_and(is_passing) {
            self.has_answered.store(true, Ordering::Relaxed);
        }
        answer.map_err(|status| server(py, &self.address, &status))
    }
}

/// True if the server may take the same call a moment later.
pub fn is_passing(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::DeadlineExceeded
            | Code::Cancelled
    )
}

/// A status UNAVAILABLE with the reason if the connection broke, which tonic reports as an unknown or internal error with a source.
/// A status that a server sent has none.
pub fn of_link(status: Status) -> Status {
    match (status.code(), status.source()) {
        (Code::Unavailable | Code::Unknown | Code::Internal, Some(source)) => {
            Status::unavailable(service::chain(source).to_string())
        }
        _ => status,
    }
}

/// A time in seconds; 0 if it is negative or no number, and the longest one if it is too large.
pub fn duration(seconds: f64) -> Duration {
    const LONGEST: Duration = Duration::from_secs(1 << 32);
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) => duration.min(LONGEST),
        Err(_) if seconds > 0.0 => LONGEST,
        Err(_) => Duration::ZERO,
    }
}

/// Deadline of one call, and whether it is repeated until then.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    deadline: Instant,
    repeats: bool,
}

impl Limits {
    /// Time until the deadline.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// A request with a deadline for the server, a moment after the client's own.
    pub fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        request.set_timeout(self.left() + GRACE);
        request
    }

    /// Makes attempts, with growing delays between them, until one succeeds, fails with an error that a repetition does not help, or the deadline is too close.
    ///
    /// # Errors
    /// The last attempt's status.
    pub async fn repeat<R, F>(self, mut attempt: impl FnMut() -> F) -> Result<R, Status>
    where
        F: Future<Output = Result<R, Status>>,
    {
        let mut backoff = Backoff::for_connections();
        loop {
            let status = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(status) => of_link(status),
            };
            let delay = backoff.next_delay();
            if !self.repeats || !is_passing(&status) || Instant::now() + delay >= self.deadline {
                return Err(status);
            }
            tokio::time::sleep(delay).await;
        }
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
    security.check().map_err(|error| wrong(&error))?;
    let _entered = runtime()?.enter();
    connect::link(address, &security).map_err(|error| wrong(&error))
}

/// Waits for an answer with the GIL released, for at most `limit`. The outer error is an exception of Ctrl-C.
fn wait<R: Send>(
    py: Python<'_>,
    limit: Option<Duration>,
    call: impl Future<Output = Result<R, Status>> + Send,
) -> PyResult<Result<R, Status>> {
    let runtime = runtime()?;
    let mut call = Box::pin(within(limit, call));
    loop {
        let waited =
            py.detach(|| runtime.block_on(async { tokio::time::timeout(SIGNALS, call.as_mut()).await }));
        match waited {
            Ok(answer) => return Ok(answer),
            Err(_) => py.check_signals()?,
        }
    }
}

/// The answer, or a status DEADLINE_EXCEEDED after `limit`.
pub async fn within<R>(
    limit: Option<Duration>,
    call: impl Future<Output = Result<R, Status>>,
) -> Result<R, Status> {
    let Some(limit) = limit else {
        return call.await;
    };
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
        let seconds = limit.as_secs_f64();
        Err(Status::deadline_exceeded(format!("no answer within {seconds} s")))
    })
}
