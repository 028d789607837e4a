//! Where training runs: the CPU with so many threads, or a GPU that is really there.

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use tch::Device;

/// The part of libtorch that knows GPUs. This program is linked without it, so that machines without a GPU need none of it.
const CUDA_LIBRARY: &str = "libtorch_cuda.so";

/// The variables that say how OpenMP's threads wait.
const WAITING: [&str; 2] = ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT"];
/// What glibc's allocator is told: a step's tensors are taken from the heap and given back to it, where by default each
/// of several MB would be mapped, faulted in page by page and unmapped again.
const ALLOCATOR: [(&str, &str); 2] = [
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    ("MALLOC_TRIM_THRESHOLD_", "1073741824"),
];

/// A device that was asked for and is not there.
#[derive(Debug, thiserror::Error)]
#[error(
    "learner.device is `cuda`, but {reason}; set learner.device = \"cpu\" (or \"auto\") to train on the CPU"
)]
pub struct DeviceError {
    /// What is missing.
    pub reason: String,
}

/// Chooses the device. Call it before any other use of torch in the process.
///
/// # Errors
/// [`DeviceError`] where a GPU is asked for and is not there; there is no silent fall-back.
pub fn choose(wanted: config::Device) -> Result<Device, DeviceError> {
    if wanted == config::Device::Cpu {
        return Ok(Device::Cpu);
    }
    match (find_gpu(), wanted) {
        (Ok(()), _) => {
            tracing::info!(cudnn = tch::Cuda::cudnn_is_available(), "training on the GPU");
            Ok(Device::Cuda(0))
        }
        (Err(reason), config::Device::Cuda) => Err(DeviceError { reason }),
        (Err(reason), _) => {
            tracing::info!(reason, "training on the CPU");
            Ok(Device::Cpu)
        }
    }
}

/// Sets the CPU threads of torch operations called from this thread; 0 takes a quarter of the cores, at least one.
pub fn set_threads(threads: usize) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { (cores / 4).max(1) } else { threads };
    tch::set_num_threads(i32::try_from(threads).unwrap_or(i32::MAX));
}

/// Starts this program anew, in the same process, with an environment that suits torch, unless that says so already:
/// threads sleep while they wait for each other, and memory is kept between steps. Both are read when libraries are loaded,
/// so it is too late to set them now. Call it before anything else.
///
/// By default threads wait busily, which on cores that are shared with self-play costs far more than it gains: with two
/// threads on two busy cores 31 to 48 samples/s were measured, and 170 to 280 with sleeping ones. Keeping memory gained
/// some 5 % of whole steps in bf16.
pub fn restart_with_a_fit_environment() {
    use std::os::unix::process::CommandExt as _;

    let is_set = |name: &str| std::env::var_os(name).is_some();
    let mut missing: Vec<(&str, &str)> = ALLOCATOR.into_iter().filter(|(name, _)| !is_set(name)).collect();
    if !WAITING.iter().any(|name| is_set(name)) {
        missing.push((WAITING[0], "passive"));
    }
    if missing.is_empty() {
        return;
    }
    let mut arguments = std::env::args_os();
    let (Ok(program), Some(name)) = (std::env::current_exe(), arguments.next()) else {
        return;
    };
    let error = std::process::Command::new(program)
        .arg0(name)
        .args(arguments)
        .envs(missing)
        .exec();
    // Only reached where it failed; training is slower then, but right.
    eprintln!("minuet-learner: cannot start anew with an environment that suits torch: {error}");
}

fn find_gpu() -> Result<(), String> {
    load_cuda_library()?;
    if tch::Cuda::is_available() {
        Ok(())
    } else {
        Err("torch finds no usable NVIDIA GPU or driver".into())
    }
}

/// Loads torch's GPU half if the machine has it; loading it registers it with the CPU half.
#[allow(unsafe_code)]
fn load_cuda_library() -> Result<(), String> {
    // SAFETY: loading a library runs its initialisers. These are torch's own, of the version this program is linked
    // against (the loader refuses others by their symbols), and they run before any other torch call, as they would
    // if it were linked. It is never unloaded. Measured: without this, CUDA tensors cannot be made.
    let library = unsafe { Library::open(Some(CUDA_LIBRARY), RTLD_NOW | RTLD_GLOBAL) };
    match library {
        Ok(library) => {
            std::mem::forget(library);
            Ok(())
        }
        Err(error) => {
            let error = error.to_string();
            let line = error.lines().next().unwrap_or_default();
            Err(format!(
                "{CUDA_LIBRARY} cannot be loaded ({line}); LD_LIBRARY_PATH must name a GPU build of torch"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_always_there_and_a_missing_gpu_is_an_error() {
        assert_eq!(choose(config::Device::Cpu).unwrap(), Device::Cpu);
        if find_gpu().is_err() {
            assert_eq!(choose(config::Device::Auto).unwrap(), Device::Cpu);
            let error = choose(config::Device::Cuda).unwrap_err().to_string();
            assert!(error.contains("learner.device"), "{error}");
        }
    }
}
