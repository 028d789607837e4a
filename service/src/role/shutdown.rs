//! Requests to stop a role: signals, or the end of the supervising process.

use std::{
    io::{self, Read},
    process, thread,
    time::Duration,
};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Time after the end of standard input at which a supervised role exits at the latest, because no supervisor is left to
/// kill it.
const SUPERVISED_LIMIT: Duration = Duration::from_secs(60);

/// Cancels `shutdown` on the first SIGTERM or SIGINT; exits at once on the second.
///
/// # Errors
/// Error of the operating system if a signal handler cannot be installed.
pub fn stop_on_signals(shutdown: CancellationToken) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!("{name}: stopping; a second one stops at once");
        shutdown.cancel();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::warn!("second signal: stopped at once");
        #[expect(clippy::disallowed_methods, reason = "a second signal requests it")]
        process::exit(1);
    });
    Ok(())
}

/// Cancels `shutdown` when standard input ends. The operating system closes the pipe when the supervisor ends, even if it was
/// killed.
///
/// # Errors
/// Error of the operating system if no thread can be started.
pub fn stop_when_stdin_closes(shutdown: CancellationToken) -> io::Result<()> {
    let wait = move || {
        let mut stdin = io::stdin().lock();
        let mut ignored = [0; 64];
        while stdin.read(&mut ignored).is_ok_and(|length| length > 0) {}
        tracing::info!("standard input closed: stopping");
        shutdown.cancel();
        thread::sleep(SUPERVISED_LIMIT);
        tracing::error!("not stopped after {} s: giving up", SUPERVISED_LIMIT.as_secs());
        #[expect(clippy::disallowed_methods, reason = "the main thread hangs")]
        process::exit(1);
    };
    thread::Builder::new().name("supervised".into()).spawn(wait)?;
    Ok(())
}
