//! Which core does what, and what was done in how much time.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::super::page::page;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Positions evaluated.
    pub positions: u64,
    /// Wall clock.
    pub time: Duration,
    /// Processor time of the process that evaluated them.
    pub cpu_seconds: f64,
    /// The part of it that was used by the thread called [`DEVICE`].
    pub device_seconds: f64,
    /// How long the device was computing: that thread's time, or, where a metrics page says it, what that says.
    pub busy_seconds: f64,
}

/// The process that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its number.
    pub pid: u32,
    /// Its metrics page, where the device is none of its threads.
    pub page: Option<SocketAddr>,
}

impl From<u32> for Subject {
    /// A process whose device is one of its threads.
    fn from(pid: u32) -> Self {
        Self { pid, page: None }
    }
}

/// The inference server's thread that runs the model.
const DEVICE: &str = "device";
/// What its metrics page says of the time that batches took.
const DEVICE_SECONDS: &str = "minuet_inference_device_seconds_sum";

impl Measured {
    /// Positions a second.
    pub fn per_second(&self) -> f64 {
        self.positions as f64 / self.time.as_secs_f64()
    }

    /// Positions for each second of processor time.
    pub fn per_cpu_second(&self) -> f64 {
        self.positions as f64 / self.cpu_seconds
    }

    /// Share of the time in which the device was computing, in [0, 1].
    pub fn busy_share(&self) -> f64 {
        (self.busy_seconds / self.time.as_secs_f64()).min(1.0)
    }

    /// Processor time outside of the device's thread, in microseconds for each position.
    pub fn other_threads_us(&self) -> f64 {
        (self.cpu_seconds - self.device_seconds) * 1e6 / self.positions.max(1) as f64
    }
}

/// A figure of each measurement.
pub fn each(measured: &[Measured], figure: impl Fn(&Measured) -> f64) -> Vec<f64> {
    measured.iter().map(figure).collect()
}

/// A figure of each measurement, for each one of what was measured in turn with it.
pub fn ratios(measured: &[Measured], baseline: &[Measured], figure: impl Fn(&Measured) -> f64) -> Vec<f64> {
    let pairs = measured.iter().zip(baseline);
    pairs
        .map(|(measured, baseline)| figure(measured) / figure(baseline))
        .collect()
}

/// Times `work` (which says how many positions it evaluated), and the processor time of a process meanwhile.
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

/// What `/proc` counts in nanoseconds for each thread. Threads that have ended are not counted: none should end meanwhile.
fn used(Subject { pid, page: address }: Subject) -> anyhow::Result<Used> {
    let mut used = Used {
        all: 0.0,
        device: 0.0,
        busy: 0.0,
    };
    let threads =
        std::fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("process {pid} is gone"))?;
    for thread in threads.flatten() {
        // A thread may end between the two.
        let read = |file: &str| std::fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let nanoseconds: f64 = read("schedstat")
            .split(' ')
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        used.all += nanoseconds * 1e-9;
        if read("comm").trim() == DEVICE {
            used.device += nanoseconds * 1e-9;
        }
    }
    used.busy = match address {
        None => used.device,
        Some(address) => page(address)?.sum(DEVICE_SECONDS),
    };
    Ok(used)
}

/// The first two cores that this process may use.
pub struct Cores {
    first: usize,
    second: usize,
}

impl Cores {
    /// Finds them.
    pub fn find() -> anyhow::Result<Self> {
        let allowed = sched_getaffinity(None).context("cannot ask which cores may be used")?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let first = cores.next().context("no core may be used")?;
        let second = cores.next().unwrap_or(first);
        Ok(Self { first, second })
    }

    /// Whether there are two.
    pub fn are_two(&self) -> bool {
        self.first != self.second
    }

    /// This thread runs on the first one from now on, and so does what it starts.
    pub fn use_first(&self) -> anyhow::Result<()> {
        pin(self.first)
    }

    /// This thread runs on the second one from now on, and so does what it starts.
    pub fn use_second(&self) -> anyhow::Result<()> {
        pin(self.second)
    }
}

fn pin(core: usize) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).with_context(|| format!("cannot run on core {core}"))
}
