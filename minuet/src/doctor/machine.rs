//! The machine: processor, cores, memory, GPU, clock, ports, the roles' programs and the library that runs networks.

use std::{
    collections::BTreeSet,
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use config::{Device, Provider, RunConfig};
use indicatif::BinaryBytes;
use launcher::{plan::ports, processes, run::addresses::Addresses};
use service::role::Role;

use super::Check;

/// Memory below which a small run does not fit, in bytes.
const LEAST_MEMORY: u64 = 1 << 30;
/// Memory below which larger networks or windows do not fit, in bytes.
const LITTLE_MEMORY: u64 = 3 << 30;
/// Ports of a run with one actor and a rating.
const PORTS: usize = 7;
/// Differences of clocks that are normal between machines.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// Looks at the machine.
pub fn checks(config: &RunConfig, run: Option<&Path>) -> Vec<Check> {
    let mut checks = vec![processor(), cores(), memory(), gpu(config), clock()];
    checks.extend(free_ports(config, run));
    checks
}

fn processor() -> Check {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim())
    };
    let name = service::process::processor().unwrap_or("unknown processor".into());
    let flags: BTreeSet<&str> = of("flags").unwrap_or_default().split(' ').collect();
    let known = [
        ("amx_bf16", "AMX"),
        ("avx512_bf16", "AVX-512 bf16"),
        ("avx512_vnni", "AVX-512 VNNI"),
        ("avx_vnni", "AVX VNNI"),
        ("avx512f", "AVX-512"),
        ("avx2", "AVX2"),
    ];
    // The instructions of x86-64-v2, without which ONNX Runtime ends at the first network. Minuet's own programs need none of them.
    let needed = ["cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"];
    let missing: Vec<&str> = needed.into_iter().filter(|&flag| !flags.contains(flag)).collect();
    if cfg!(target_arch = "x86_64") && !flags.is_empty() && !missing.is_empty() {
        return Check::fail(
            "processor",
            format!("{name} lacks {}", missing.join(", ")),
            "take a machine of 2009 or later, or give the virtual machine its host's processor: networks need x86-64-v2",
        );
    }
    let found = known.iter().filter(|(flag, _)| flags.contains(flag));
    let units = match found.map(|(_, name)| *name).collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "no vector units known".into(),
        units => units,
    };
    let fix = "without AVX2 evaluation and training are several times slower";
    Check::warn_if(
        !flags.contains("avx2"),
        "processor",
        format!("{name}: {units}"),
        fix,
    )
}

fn cores() -> Check {
    let (usable, all) = (service::process::cores(), online().unwrap_or_default());
    let text = match all {
        0 => format!("{usable} usable"),
        _ => format!("{usable} of {all} usable"),
    };
    let fix = "self-play and training share one core; give the container or the process more";
    Check::warn_if(usable < 2, "cores", text, fix)
}

/// Number of the machine's cores, whatever this process may use.
fn online() -> Option<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let ranges = text.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<usize>().ok()? + 1 - first.parse::<usize>().ok()?)
    });
    ranges.sum()
}

fn memory() -> Check {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let of = |key: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim().split(' ').next()?.parse::<u64>().ok()? << 10)
    };
    let (Some(all), Some(free)) = (of("MemTotal:"), of("MemAvailable:")) else {
        return Check::warn("memory", "the system does not tell", "a small run needs 1 GiB");
    };
    let limit = cgroup("memory.max").or_else(|| cgroup("memory/memory.limit_in_bytes"));
    let limit = limit.filter(|&limit| limit < all);
    // Pages of files count as used, but the system gives them up.
    let pages = fs::read_to_string("/sys/fs/cgroup/memory.stat").unwrap_or_default();
    let pages = pages
        .lines()
        .find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok());
    let used = cgroup("memory.current").unwrap_or_default();
    let used = used.saturating_sub(pages.unwrap_or_default());
    let free = limit.map_or(free, |limit| free.min(limit.saturating_sub(used)));
    let of_all = BinaryBytes(limit.unwrap_or(all));
    let limited = limit.map_or("", |_| ", the limit of this container");
    let text = format!("{} free of {of_all}{limited}", BinaryBytes(free));
    match free {
        0..LEAST_MEMORY => Check::fail(
            "memory",
            text,
            "end other programs or raise the container's limit: a small run needs 1 GiB",
        ),
        LEAST_MEMORY..LITTLE_MEMORY => Check::warn(
            "memory",
            text,
            "enough for a small network; lower actor.cache_mib and inference.cache_mib for a large one",
        ),
        _ => Check::ok("memory", text),
    }
}

/// Reads a number from this process's control group.
fn cgroup(name: &str) -> Option<u64> {
    fs::read_to_string(Path::new("/sys/fs/cgroup").join(name))
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn gpu(config: &RunConfig) -> Check {
    let driver = fs::read_to_string("/proc/driver/nvidia/version").ok();
    let version = driver.as_deref().and_then(|text| text.lines().next());
    let devices = fs::read_dir("/proc/driver/nvidia/gpus").map_or(0, Iterator::count);
    let is_requested = matches!(config.inference.provider, Provider::Cuda | Provider::Tensorrt)
        || config.learner.device == Device::Cuda;
    match version {
        Some(version) if devices > 0 => Check::ok("gpu", format!("{devices} × NVIDIA, driver {version}")),
        Some(version) => Check::warn(
            "gpu",
            format!("a driver ({version}) without a GPU"),
            "give the container a GPU, or ignore this: the CPU computes",
        ),
        None if is_requested => Check::fail(
            "gpu",
            "run.toml asks for a GPU, but this machine has no NVIDIA driver",
            "install the driver, or set inference.provider and learner.device to auto",
        ),
        None => Check::ok("gpu", "none; the CPU computes"),
    }
}

fn clock() -> Check {
    let now = SystemTime::now();
    let built = std::env::current_exe()
        .and_then(fs::metadata)
        .and_then(|file| file.modified());
    let at = humantime::format_rfc3339_seconds(now);
    if built.is_ok_and(|built| now + CLOCK_TOLERANCE < built) {
        return Check::fail(
            "clock",
            format!("{at} is before this program was made"),
            "set the clock, or start a time service: certificates and ages of checkpoints depend on it",
        );
    }
    Check::ok("clock", at.to_string())
}

/// Ports that `minuet up` can take, and those that `run.toml` names for roles that are started one by one.
fn free_ports(config: &RunConfig, run: Option<&Path>) -> Vec<Check> {
    let mut checks = vec![match ports::free(run.unwrap_or(Path::new(".")), PORTS) {
        Ok(_) => Check::ok("ports", format!("{PORTS} free ones for `minuet up`")),
        Err(error) => Check::fail(
            "ports",
            error.to_string(),
            "end programs that hold ports between 20000 and 32000",
        ),
    }];
    if run.is_some_and(|run| Addresses::of_running(run).is_some()) {
        return checks;
    }
    let named = |config: &RunConfig| {
        [
            ("inference.address", config.inference.listen_address().to_owned()),
            ("replay.address", config.replay.listen_address().to_owned()),
            ("inference.metrics", config.inference.metrics.clone()),
            ("replay.metrics", config.replay.metrics.clone()),
            ("learner.metrics", config.learner.metrics.clone()),
            ("actor.metrics", config.actor.metrics.clone()),
        ]
    };
    let usual = named(&RunConfig::default());
    for ((key, address), (_, usual)) in named(config).into_iter().zip(usual) {
        // A name that is not this machine's is that of a server elsewhere.
        let is_taken = !address.is_empty()
            && matches!(TcpListener::bind(&address), Err(error) if error.kind() == std::io::ErrorKind::AddrInUse);
        if !is_taken {
            continue;
        }
        let text = format!("{key} = {address} is taken by another program");
        let fix = "`minuet up` takes free ports by itself; roles started one by one need another address";
        let set = format!("end that program, or set another address: {key}");
        checks.push(match address == usual {
            true => Check::warn("ports", text, fix),
            false => Check::fail("ports", text, set),
        });
    }
    checks
}

/// Looks at the programs and at ONNX Runtime.
///
/// # Errors
/// The folder of this program is unknown.
pub fn programs(config: &RunConfig, binaries: Option<&Path>) -> anyhow::Result<Vec<Check>> {
    let folder = processes::binaries(binaries)?;
    let roles = [
        Role::ReplayStore,
        Role::InferenceServer,
        Role::Learner,
        Role::Actor,
    ];
    let mut checks: Vec<Check> = roles
        .into_iter()
        .filter_map(|role| program(&folder.join(role.binary())))
        .collect();
    if checks.is_empty() {
        let text = format!("all start, in {}", folder.display());
        checks.push(Check::ok("programs", text));
    }
    checks.push(onnx_runtime(config));
    Ok(checks)
}

/// Returns a check if the program does not start.
fn program(path: &Path) -> Option<Check> {
    let started = Command::new(path).arg("--version").stdin(Stdio::null()).output();
    let reason = match started {
        Ok(output) if output.status.success() => return None,
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let first = text.lines().next().map(str::trim).filter(|line| !line.is_empty());
            first.map_or_else(|| output.status.to_string(), str::to_owned)
        }
        Err(error) => error.to_string(),
    };
    Some(Check::fail(
        "programs",
        format!("{} does not start: {reason}", path.display()),
        "in a clone, `make build` builds the programs and fetches their libraries; a wheel or an archive is installed again",
    ))
}

fn onnx_runtime(config: &RunConfig) -> Check {
    if let Err(error) = network::runtime::load() {
        return Check::fail(
            "onnxruntime",
            service::chain(&error).to_string(),
            "in a clone, `make setup` fetches the library; a wheel has it from the package onnxruntime-openvino; or name one in ORT_DYLIB_PATH",
        );
    }
    let usable: Vec<&str> = Provider::each()
        .filter(|&provider| network::provider::check(provider).is_ok())
        .map(Provider::name)
        .collect();
    let text = format!("providers: {}", usable.join(", "));
    match network::provider::check(config.inference.provider) {
        Err(error) => Check::fail("onnxruntime", error.to_string(), "set inference.provider to auto"),
        Ok(()) => Check::ok("onnxruntime", text),
    }
}
