//! What asks a role to stop: signals, or the end of whoever supervises it.

use std::{
    io::{self, Read},
    process, thread,
    time::Duration,
};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A supervised role ends at the latest this long after its standard input closed, since nobody is left to end it.
const SUPERVISED_LIMIT: Duration = Duration::from_secs(60);

/// SIGTERM and SIGINT cancel `shutdown`; the second one exits at once.
///
/// # Errors
/// If the operating system refuses a signal handler.
pub(super) fn on_signals(shutdown: CancellationToken) -> io::Result<()> {
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
        process::exit(1);
    });
    Ok(())
}

/// The end of standard input cancels `shutdown`. The operating system closes a pipe with the process that
/// holds its other end, however that ends, so this holds even where the supervisor was killed.
///
/// # Errors
/// If no thread can be started.
pub(super) fn when_stdin_closes(shutdown: CancellationToken) -> io::Result<()> {
    let wait = move || {
        let mut stdin = io::stdin().lock();
        let mut ignored = [0; 64];
        while stdin.read(&mut ignored).is_ok_and(|length| length > 0) {}
        tracing::info!("standard input closed: stopping");
        shutdown.cancel();
        thread::sleep(SUPERVISED_LIMIT);
        tracing::error!("not stopped after {} s: giving up", SUPERVISED_LIMIT.as_secs());
        process::exit(1);
    };
    thread::Builder::new().name("supervised".into()).spawn(wait)?;
    Ok(())
}
