//! Memory and processor time of a process, and the processor, read from `/proc` on Linux: on other systems they are `None`. The
//! number of cores, and of file descriptors: connections and files take them from one limit.

use std::{
    fs, io,
    num::NonZero,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Clock ticks per second of `/proc/*/stat`: 100 on every Linux (`USER_HZ` is fixed by the ABI).
const TICKS_PER_SECOND: f64 = 100.0;

/// Environment variable that names the folder of Minuet's programs, for processes of other programs: a Python interpreter.
const PROGRAMS: &str = "MINUET_PROGRAMS";

/// Returns the folder of Minuet's programs: the one that the environment names, or that of this program.
///
/// # Errors
/// The operating system does not tell the path of this program.
pub fn programs() -> io::Result<PathBuf> {
    match std::env::var_os(PROGRAMS) {
        Some(folder) if !folder.is_empty() => Ok(folder.into()),
        _ => Ok(std::env::current_exe()?
            .parent()
            .map(PathBuf::from)
            .unwrap_or_default()),
    }
}

/// Returns the number of cores that this process may use: those of its affinity, within its container's limit.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Returns the name of this machine's processor; `None` if the system does not tell.
pub fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Raises the limit of descriptors to the highest value that the process may set.
///
/// # Errors
/// The error of the operating system; the limit stays as it was.
pub fn raise_descriptors() -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return Ok(());
    }
    Ok(setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )?)
}

/// Returns the largest number of descriptors that the process may have.
pub fn descriptors() -> usize {
    let current = getrlimit(Resource::Nofile).current;
    current
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX)
}

/// Longest text of a command in [`users`], in characters.
const COMMAND: usize = 100;

/// Names the other processes of this account that have `file` open, for people: `process 123 (minuet games export …)`. Empty if the
/// system does not tell.
pub fn users(file: &Path) -> Vec<String> {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let Ok(wanted) = fs::metadata(file).map(identity) else {
        return Vec::new();
    };
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let has_open = |process: &Path| {
        entries(&process.join("fd")).any(|open| fs::metadata(open.path()).map(identity).ok() == Some(wanted))
    };
    let processes = entries(Path::new("/proc")).filter_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        (pid != std::process::id() && has_open(&process.path())).then_some((pid, process.path()))
    });
    let named = processes.map(|(pid, process)| {
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let command = command.trim().chars().take(COMMAND);
        let shown: String = command
            .map(|letter| if letter.is_control() { '?' } else { letter })
            .collect();
        format!("process {pid} ({shown})")
    });
    named.collect()
}

/// Resources used by a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Peak resident memory, in bytes.
    pub peak_resident_bytes: u64,
    /// Processor time used so far, user and system, over all threads, in seconds.
    pub cpu_seconds: f64,
}

/// Returns the resources used by the process `pid`; `None` if there is no such process.
pub fn usage(pid: u32) -> Option<Usage> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kibibytes = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().split(' ').next()?.parse().ok()
    };
    let fields = stat_fields(pid)?;
    let ticks = fields.user_ticks.checked_add(fields.system_ticks)?;
    Some(Usage {
        resident_bytes: kibibytes("VmRSS:")? * 1024,
        peak_resident_bytes: kibibytes("VmHWM:")? * 1024,
        cpu_seconds: ticks as f64 / TICKS_PER_SECOND,
    })
}

/// Returns the start time of the process `pid` in clock ticks since boot. The pair of pid and start time identifies a process,
/// because pids are reused. `None` if there is no such process, or if it is a zombie.
pub fn started_at(pid: u32) -> Option<u64> {
    let fields = stat_fields(pid)?;
    (fields.state != 'Z' && fields.state != 'X').then_some(fields.started_ticks)
}

struct StatFields {
    state: char,
    user_ticks: u64,
    system_ticks: u64,
    started_ticks: u64,
}

fn stat_fields(pid: u32) -> Option<StatFields> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses `/proc/<pid>/stat` (proc(5)). The second field, the command's name, may contain any characters, also brackets.
fn parse_stat(text: &str) -> Option<StatFields> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let mut number = |skip: usize| fields.nth(skip)?.parse().ok();
    Some(StatFields {
        state,
        user_ticks: number(10)?,
        system_ticks: number(0)?,
        started_ticks: number(6)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_parsed_for_any_command_name() {
        let line = "1234 (a) b (c) S 1 1234 1234 0 -1 4194560 900 0 0 0 57 21 0 0 20 0 5 0 987654 1 2 3";
        let fields = parse_stat(line).unwrap();
        assert_eq!(
            (
                fields.state,
                fields.user_ticks,
                fields.system_ticks,
                fields.started_ticks
            ),
            ('S', 57, 21, 987_654)
        );
        assert!(parse_stat("").is_none());
        assert!(parse_stat("1 (x) S 1 2").is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn usage_is_positive_for_this_process_and_none_for_a_dead_one() {
        let own = usage(std::process::id()).unwrap();
        assert!(own.resident_bytes > 100_000 && own.peak_resident_bytes >= own.resident_bytes);
        assert!(started_at(std::process::id()).unwrap() > 0);

        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(usage(pid).is_none() && started_at(pid).is_none());
    }
}
