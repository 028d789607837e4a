//! Keeps one process running: starts it, restarts it with a backoff when it dies, and stops it on request.
//!
//! A process stops when its standard input closes. The operating system also closes it if `minuet up` itself is killed, so no role
//! outlives `minuet up`.

use std::{
    io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use service::backoff::Backoff;
use tokio::{
    process::{Child, ChildStdin, Command},
    sync::{Mutex, mpsc},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{host, list::ProcessList, logs};
use crate::{event::Event, plan::PlannedProcess};

/// A process that runs for less than this time has failed at once.
const AT_ONCE: Duration = Duration::from_secs(30);
/// Number of failures at once in a row after which a process is given up.
const TRIES: u32 = 5;
/// Exit code of a role that cannot use its arguments or configuration; restarting it would not help.
const UNUSABLE: i32 = 2;
const FIRST_DELAY: Duration = Duration::from_millis(400);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// Lines of an ended process's log that are shown.
const QUOTED_LINES: usize = 8;
/// Free bytes below which a disk counts as full. Processes that fail on a full disk are not given up.
const ROOM: u64 = 1 << 20;

/// Surroundings of a process.
#[derive(Clone, Debug)]
pub struct ProcessContext {
    /// Folder of the roles' binaries.
    pub binaries: PathBuf,
    /// Path of the process's log.
    pub log: PathBuf,
    /// List of the run's processes.
    pub list: Arc<Mutex<ProcessList>>,
    /// Channel for the events.
    pub events: mpsc::Sender<Event>,
}

/// A running process, and the pipe whose closing stops it.
struct Running {
    child: Child,
    /// Kept apart from the child, because waiting for a child closes the pipe that it holds.
    stdin: Option<ChildStdin>,
}

/// End of a process that was not requested.
struct Failure {
    /// Exit status, or the reason why the process could not be started.
    status: String,
    /// True if starting the process again would not help.
    is_hopeless: bool,
}

/// Keeps a process running until `shutdown` is cancelled or the process is given up. Returns true if it had to be killed.
///
/// A process that fails at once again and again is given up, but not while the disk with its log is full.
pub async fn supervise(
    planned: PlannedProcess,
    context: ProcessContext,
    shutdown: CancellationToken,
) -> bool {
    let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY, u64::from(std::process::id()));
    let mut failures = 0;
    loop {
        let begins_at = logs::length(&context.log);
        let began = Instant::now();
        let failure = match start(&planned, &context).await {
            Ok(mut running) => {
                let pid = running.child.id().unwrap_or_default();
                let name = planned.name.clone();
                send_event(&context, Event::RoleStarted { name, pid }).await;
                match watch(&mut running.child, &shutdown).await {
                    Some(failure) => failure,
                    None => return end(running, &planned, &context).await,
                }
            }
            Err(failure) => failure,
        };
        let Failure { status, is_hopeless } = failure;
        let lived = began.elapsed();
        if lived >= AT_ONCE {
            failures = 0;
            backoff.reset();
        }
        if !is_full(&context.log) {
            failures += 1;
        }
        let last_lines = match lived < AT_ONCE {
            true => logs::tail(&context.log, begins_at, QUOTED_LINES),
            false => Vec::new(),
        };
        if is_hopeless || failures == TRIES {
            let reason = match is_hopeless {
                true => format!("{status} (it cannot use its arguments or configuration)"),
                false => format!("{status}; it failed at once {TRIES} times in a row"),
            };
            let event = Event::RoleFailed {
                name: planned.name,
                reason,
                log: context.log.display().to_string(),
                last_lines,
            };
            // The receiver stops the run if it needs the process.
            send_event(&context, event).await;
            return false;
        }
        let delay = backoff.next_delay();
        let event = Event::RoleExited {
            name: planned.name.clone(),
            status,
            after_seconds: lived.as_secs_f64(),
            again_in_seconds: delay.as_secs_f64(),
            last_lines,
        };
        send_event(&context, event).await;
        tokio::select! {
            () = shutdown.cancelled() => return false,
            () = tokio::time::sleep(delay) => {}
        }
    }
}

/// True if the disk of a file is full; false if the system does not tell.
fn is_full(file: &Path) -> bool {
    let folder = file.parent().unwrap_or(Path::new("."));
    rustix::fs::statvfs(folder).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM)
}

async fn start(planned: &PlannedProcess, context: &ProcessContext) -> Result<Running, Failure> {
    let (binary, first) = match host::command().filter(|_| planned.is_hosted) {
        Some((program, first)) => (program.into(), first),
        None => (context.binaries.join(planned.role.binary()), &[][..]),
    };
    let log = logs::open(&context.log).and_then(|log| Ok((log.try_clone()?, log)));
    let (log_too, log) = log.map_err(|error| Failure {
        status: format!("cannot open its log: {error}"),
        is_hopeless: false,
    })?;
    let mut child = Command::new(&binary)
        .args(first)
        .args(&planned.arguments)
        .envs(
            planned
                .environment
                .iter()
                .filter(|(name, _)| std::env::var_os(name).is_none())
                .copied(),
        )
        .stdin(Stdio::piped())
        .stdout(log)
        .stderr(log_too)
        // Ctrl-C reaches only the terminal's foreground group: `minuet up`, which then stops the roles in order.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Failure {
            status: format!("cannot start {}: {error}", binary.display()),
            is_hopeless: matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            ),
        })?;
    if let Some(pid) = child.id() {
        let written = context.list.lock().await.started(&planned.name, pid);
        if let Err(error) = written {
            // Only the next start after a kill needs the entry, and the roles end by themselves then.
            let text = format!(
                "cannot add {}, process {pid}, to the list of processes: {error}",
                planned.name
            );
            send_event(context, Event::Warning { text }).await;
        }
    }
    let stdin = child.stdin.take();
    Ok(Running { child, stdin })
}

/// Waits for the end of a process. `None`: it is to be stopped.
async fn watch(child: &mut Child, shutdown: &CancellationToken) -> Option<Failure> {
    tokio::select! {
        () = shutdown.cancelled() => None,
        status = child.wait() => Some(match status {
            Ok(status) => Failure { status: status.to_string(), is_hopeless: status.code() == Some(UNUSABLE) },
            Err(error) => Failure { status: error.to_string(), is_hopeless: false },
        }),
    }
}

/// Asks the process to end and waits; kills it if it takes too long. Returns true if it was killed.
async fn end(running: Running, planned: &PlannedProcess, context: &ProcessContext) -> bool {
    let Running { mut child, stdin } = running;
    drop(stdin);
    let killed = tokio::time::timeout(planned.stop_within, child.wait())
        .await
        .is_err();
    if killed {
        // An error means that it has just ended.
        let _ = child.kill().await;
    }
    let name = planned.name.clone();
    send_event(context, Event::RoleStopped { name, killed }).await;
    killed
}

/// Sends an event. Does nothing if the channel is closed.
async fn send_event(context: &ProcessContext, event: Event) {
    let _ = context.events.send(event).await;
}
