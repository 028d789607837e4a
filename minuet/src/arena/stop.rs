//! Ends a command that can be continued later when a signal arrives.

use std::{
    io, process,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use tokio::signal::unix::{SignalKind, signal};

static STOP: AtomicBool = AtomicBool::new(false);

/// Returns a flag that SIGINT and SIGTERM set. The second signal ends the process at once.
///
/// # Errors
/// The operating system refuses a thread or a signal handler.
pub fn on_signals() -> io::Result<&'static AtomicBool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            for last in [false, true] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if last {
                    #[expect(clippy::disallowed_methods, reason = "a second signal asks for that")]
                    process::exit(1);
                }
                STOP.store(true, Ordering::Relaxed);
            }
        });
    })?;
    Ok(&STOP)
}
