//! A role's binary as a child process: [`RoleProcess`].

use std::{
    ffi::OsStr,
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use service::role::Role;

use super::child::Killed;

const POLL: Duration = Duration::from_millis(20);
const STOPS_WITHIN: Duration = Duration::from_secs(15);

/// A process of a role, on the core of the starting thread. Killed when dropped.
pub struct RoleProcess {
    role: Role,
    child: Killed,
}

impl RoleProcess {
    /// Starts the binary of `role` in the folder of this program. The process logs warnings, or the level of `MINUET_LOG`; without
    /// `logs` its log is discarded.
    ///
    /// # Errors
    /// The binary cannot be started.
    pub fn start(
        role: Role,
        arguments: impl IntoIterator<Item: AsRef<OsStr>>,
        logs: bool,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe()?.with_file_name(role.binary());
        let mut command = Command::new(&program);
        command.args(arguments);
        Self::spawn(role, command, logs)
    }

    /// Starts the binary of `role` with settings of the form `section.key=value`, like [`RoleProcess::start`]. Its log is shown.
    ///
    /// # Errors
    /// The binary cannot be started.
    pub fn start_with(role: Role, settings: Vec<String>) -> anyhow::Result<Self> {
        let settings = settings.into_iter();
        Self::start(
            role,
            settings.flat_map(|setting| ["--set".to_owned(), setting]),
            true,
        )
    }

    /// Starts a program that takes the arguments of a role's binary, like [`RoleProcess::start`].
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(role: Role, mut command: Command, logs: bool) -> anyhow::Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.arg("--supervised").env("MALLOC_ARENA_MAX", "2");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        if std::env::var_os("MINUET_LOG").is_none() {
            command.env("MINUET_LOG", "warn");
        }
        if !logs {
            command.stderr(Stdio::null());
        }
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot start {program}; `make build` builds it"))?;
        Ok(Self {
            role,
            child: Killed(child),
        })
    }

    /// Returns the role of the process.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the number of the process.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Calls `ask` until it returns a value.
    ///
    /// # Errors
    /// The process ends, or `timeout` passes; then the last error of `ask`.
    pub fn wait_until<T>(
        &mut self,
        timeout: Duration,
        mut ask: impl FnMut() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let began = Instant::now();
        loop {
            let error = match ask() {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            self.check()?;
            if began.elapsed() > timeout {
                return Err(error.context(format!("{} is not ready after {timeout:?}", self.role.binary())));
            }
            thread::sleep(POLL);
        }
    }

    /// Returns an error if the process has ended.
    ///
    /// # Errors
    /// The process has ended.
    pub fn check(&mut self) -> anyhow::Result<()> {
        match self.child.0.try_wait()? {
            Some(status) => bail!("{} ended with {status}; its log shows why", self.role.binary()),
            None => Ok(()),
        }
    }

    /// Asks the process to end, and kills it if it takes too long.
    pub fn stop(mut self) {
        drop(self.child.0.stdin.take());
        let deadline = Instant::now() + STOPS_WITHIN;
        while matches!(self.child.0.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(POLL);
        }
    }
}

/// Returns `count` different loopback addresses on which nothing listens now.
///
/// # Errors
/// There are fewer free ports.
pub fn free_addresses(count: usize) -> io::Result<Vec<SocketAddr>> {
    // All listeners are held until the last one is open, so the addresses differ.
    let listeners = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<Vec<_>, _>>()?;
    listeners.iter().map(TcpListener::local_addr).collect()
}
