//! Keeping one process running: started, started again with a back-off when it dies, stopped when asked.
//!
//! A process stops when its standard input closes. That is how it is asked to, and it is also what happens when
//! `minuet up` itself is killed: no role outlives it.

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

use super::{census::Census, event::Event, logs, plan::Member};

/// A process that lives shorter than this failed at once.
const AT_ONCE: Duration = Duration::from_secs(30);
/// A process that failed at once this many times in a row is given up.
const TRIES: u32 = 5;
/// The exit code of a role that cannot use its arguments or configuration: trying again would not help.
const UNUSABLE: i32 = 2;
const FIRST_DELAY: Duration = Duration::from_millis(400);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// Lines of a dead process's log that are shown.
const QUOTED_LINES: usize = 8;
/// A disk with less room than this is full, in bytes: whoever cannot work on it may when there is room again.
const ROOM: u64 = 1 << 20;

/// Where a process runs.
#[derive(Clone, Debug)]
pub struct Place {
    /// Folder of the roles' binaries.
    pub binaries: PathBuf,
    /// The process's log.
    pub log: PathBuf,
    /// The run's processes.
    pub census: Arc<Mutex<Census>>,
    /// Who is told.
    pub events: mpsc::Sender<Event>,
}

/// A process, and the pipe that it stops with.
struct Running {
    child: Child,
    /// Kept apart from the child: waiting for a child closes the pipe that it holds.
    stdin: Option<ChildStdin>,
}

enum Ended {
    /// Because it was asked to.
    Asked,
    /// By itself; the exit code, where there is one.
    Alone { status: String, code: Option<i32> },
}

/// A process that could not be started.
struct NotStarted {
    reason: String,
    /// Trying again would not help.
    is_hopeless: bool,
}

/// Keeps `member` running until `stop` is cancelled or it is given up. True if it had to be killed.
///
/// It is given up when it fails at once again and again, but not while the disk with its log is full: then it is tried until there is room.
pub async fn supervise(member: Member, place: Place, stop: CancellationToken) -> bool {
    let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY, u64::from(std::process::id()));
    let mut failures = 0;
    loop {
        let begins_at = logs::length(&place.log);
        let began = Instant::now();
        let ended = match start(&member, &place).await {
            Ok(mut running) => {
                let pid = running.child.id().unwrap_or_default();
                let name = member.name.clone();
                tell(&place, Event::RoleStarted { name, pid }).await;
                match watch(&mut running.child, &stop).await {
                    Ended::Asked => return end(running, &member, &place).await,
                    alone => alone,
                }
            }
            Err(NotStarted { reason, is_hopeless }) => Ended::Alone {
                status: reason,
                code: is_hopeless.then_some(UNUSABLE),
            },
        };
        let Ended::Alone { status, code } = ended else {
            return false;
        };
        let lived = began.elapsed();
        if lived >= AT_ONCE {
            failures = 0;
            backoff.reset();
        }
        if !is_full(&place.log) {
            failures += 1;
        }
        let last_lines = if lived < AT_ONCE {
            logs::tail(&place.log, begins_at, QUOTED_LINES)
        } else {
            Vec::new()
        };
        let hopeless = code == Some(UNUSABLE);
        if hopeless || failures == TRIES {
            let reason = if hopeless {
                format!("{status} (it cannot use what it was started with)")
            } else {
                format!("{status}; it failed at once {TRIES} times in a row")
            };
            let event = Event::RoleFailed {
                name: member.name,
                reason,
                log: place.log.display().to_string(),
                last_lines,
            };
            // The one that is told stops the run.
            let _ = place.events.send(event).await;
            return false;
        }
        let delay = backoff.next_delay();
        let event = Event::RoleExited {
            name: member.name.clone(),
            status,
            after_seconds: lived.as_secs_f64(),
            again_in_seconds: delay.as_secs_f64(),
            last_lines,
        };
        tell(&place, event).await;
        tokio::select! {
            () = stop.cancelled() => return false,
            () = tokio::time::sleep(delay) => {}
        }
    }
}

/// Whether the disk that a file is to lie on is full. What cannot be asked is not.
fn is_full(file: &Path) -> bool {
    let folder = file.parent().unwrap_or(Path::new("."));
    rustix::fs::statvfs(folder).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM)
}

async fn start(member: &Member, place: &Place) -> Result<Running, NotStarted> {
    let binary = place.binaries.join(member.role.binary());
    let log = logs::open(&place.log).and_then(|log| Ok((log.try_clone()?, log)));
    let (log_too, log) = log.map_err(|error| NotStarted {
        reason: format!("cannot open its log: {error}"),
        is_hopeless: false,
    })?;
    let mut child = Command::new(&binary)
        .args(&member.arguments)
        .envs(
            member
                .environment
                .iter()
                .filter(|(name, _)| std::env::var_os(name).is_none())
                .copied(),
        )
        .stdin(Stdio::piped())
        .stdout(log)
        .stderr(log_too)
        // Ctrl-C reaches the terminal's foreground group: only `minuet up`, which then stops the roles in order.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| NotStarted {
            reason: format!("cannot start {}: {error}", binary.display()),
            is_hopeless: matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            ),
        })?;
    if let Some(pid) = child.id() {
        let written = place.census.lock().await.started(&member.name, pid);
        if let Err(error) = written {
            // Only a start after this one was killed would miss it, and the roles end by themselves then.
            let text = format!(
                "cannot write down that {} runs as process {pid}: {error}",
                member.name
            );
            tell(place, Event::Warning { text }).await;
        }
    }
    let stdin = child.stdin.take();
    Ok(Running { child, stdin })
}

async fn watch(child: &mut Child, stop: &CancellationToken) -> Ended {
    tokio::select! {
        () = stop.cancelled() => Ended::Asked,
        status = child.wait() => match status {
            Ok(status) => Ended::Alone { status: status.to_string(), code: status.code() },
            Err(error) => Ended::Alone { status: error.to_string(), code: None },
        },
    }
}

/// Asks the process to end and waits for it; kills it when it takes too long. True if it had to be killed.
async fn end(running: Running, member: &Member, place: &Place) -> bool {
    let Running { mut child, stdin } = running;
    drop(stdin);
    let killed = tokio::time::timeout(member.stop_within, child.wait())
        .await
        .is_err();
    if killed {
        // An error means that it has just ended.
        let _ = child.kill().await;
    }
    let name = member.name.clone();
    tell(place, Event::RoleStopped { name, killed }).await;
    killed
}

/// A closed channel means that nobody is left to tell.
async fn tell(place: &Place, event: Event) {
    let _ = place.events.send(event).await;
}
