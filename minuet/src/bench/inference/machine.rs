//! Which core does what, and what was done in how much time.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Positions evaluated.
    pub positions: u64,
    /// Wall clock.
    pub time: Duration,
    /// Processor time of the process that evaluated them.
    pub cpu_seconds: f64,
}

impl Measured {
    /// Positions a second.
    pub fn per_second(&self) -> f64 {
        self.positions as f64 / self.time.as_secs_f64()
    }

    /// Positions for each second of processor time.
    pub fn per_cpu_second(&self) -> f64 {
        self.positions as f64 / self.cpu_seconds
    }
}

/// Times `work` (which says how many positions it evaluated), and the processor time of the process `pid` meanwhile.
pub fn measure(pid: u32, work: impl FnOnce() -> anyhow::Result<u64>) -> anyhow::Result<Measured> {
    let cpu_seconds = || {
        service::process::usage(pid)
            .map(|usage| usage.cpu_seconds)
            .with_context(|| format!("process {pid} is gone"))
    };
    let (before, began) = (cpu_seconds()?, Instant::now());
    let positions = work()?;
    let time = began.elapsed();
    Ok(Measured {
        positions,
        time,
        cpu_seconds: cpu_seconds()? - before,
    })
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
