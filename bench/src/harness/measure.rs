//! Wall clock and processor time of a process, and the cores that processes run on.

use std::{
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::page;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Positions evaluated.
    pub positions: u64,
    /// Wall-clock time.
    pub time: Duration,
    /// Processor time of the process that evaluated them, in seconds.
    pub cpu_seconds: f64,
    /// Processor time of the thread called [`DEVICE`], in seconds. It is a part of `cpu_seconds`.
    pub device_seconds: f64,
    /// Time in which the device computed, in seconds: `device_seconds`, or the figure of the metrics page if there is one.
    pub busy_seconds: f64,
}

/// A process that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Process number.
    pub pid: u32,
    /// Metrics page, if the device is not one of the process's threads.
    pub page: Option<SocketAddr>,
}

impl From<u32> for Subject {
    /// Makes the subject of a process whose device is one of its threads.
    fn from(pid: u32) -> Self {
        Self { pid, page: None }
    }
}

/// The inference server's thread that runs the model.
const DEVICE: &str = "device";
/// Metric of the time that batches took on the device.
const DEVICE_SECONDS: &str = "minuet_inference_device_seconds_sum";

impl Measured {
    /// Returns the number of positions per second.
    pub fn per_second(&self) -> f64 {
        self.positions as f64 / self.time.as_secs_f64()
    }

    /// Returns the number of positions per second of processor time.
    pub fn per_cpu_second(&self) -> f64 {
        self.positions as f64 / self.cpu_seconds
    }

    /// Returns the share of the time in which the device computed, in [0, 1].
    pub fn busy_share(&self) -> f64 {
        (self.busy_seconds / self.time.as_secs_f64()).min(1.0)
    }

    /// Returns the processor time outside the device's thread, in microseconds for each position.
    pub fn other_threads_us(&self) -> f64 {
        (self.cpu_seconds - self.device_seconds) * 1e6 / self.positions.max(1) as f64
    }
}

/// Measures the wall-clock time of `work`, which returns the number of positions processed, and the processor time that a process uses
/// meanwhile.
pub fn measure(
    subject: impl Into<Subject>,
    work: impl FnOnce() -> anyhow::Result<u64>,
) -> anyhow::Result<Measured> {
    let subject = subject.into();
    let (before, began) = (used(subject)?, Instant::now());
    let positions = work()?;
    let time = began.elapsed();
    let after = used(subject)?;
    Ok(Measured {
        busy_seconds: after.busy - before.busy,
        positions,
        time,
        cpu_seconds: after.all - before.all,
        device_seconds: after.device - before.device,
    })
}

/// Processor time of a process, in seconds.
struct Used {
    all: f64,
    device: f64,
    busy: f64,
}

/// Reads the processor time of all threads from `/proc`. Threads that have ended are not counted: none should end meanwhile.
fn used(Subject { pid, page: address }: Subject) -> anyhow::Result<Used> {
    let mut used = Used {
        all: 0.0,
        device: 0.0,
        busy: 0.0,
    };
    let threads =
        std::fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("process {pid} is gone"))?;
    for thread in threads.flatten() {
        // A thread may end between the listing and the read.
        let seconds = thread_seconds(&thread.path()).unwrap_or_default();
        used.all += seconds;
        let name = std::fs::read_to_string(thread.path().join("comm"));
        if name.is_ok_and(|name| name.trim() == DEVICE) {
            used.device += seconds;
        }
    }
    used.busy = match address {
        None => used.device,
        Some(address) => page(address)?.sum(DEVICE_SECONDS).unwrap_or_default(),
    };
    Ok(used)
}

/// Returns the processor time of a thread whose folder in `/proc` is `folder`, in seconds.
pub fn thread_seconds(folder: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(folder.join("schedstat")).ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? * 1e-9)
}

/// The first two cores that this process may use.
pub struct Cores {
    first: usize,
    second: usize,
}

impl Cores {
    /// Finds the cores that this process may use.
    pub fn find() -> anyhow::Result<Self> {
        let allowed = sched_getaffinity(None).context("cannot ask which cores may be used")?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let first = cores.next().context("no core may be used")?;
        let second = cores.next().unwrap_or(first);
        Ok(Self { first, second })
    }

    /// True if this process may use two cores.
    pub fn are_two(&self) -> bool {
        self.first != self.second
    }

    /// Pins this thread, and everything that it starts from now on, to the first core.
    pub fn use_first(&self) -> anyhow::Result<()> {
        pin(self.first)
    }

    /// Pins this thread, and everything that it starts from now on, to the second core.
    pub fn use_second(&self) -> anyhow::Result<()> {
        pin(self.second)
    }
}

fn pin(core: usize) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).with_context(|| format!("cannot run on core {core}"))
}
