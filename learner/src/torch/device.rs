//! The device of training: the CPU or a GPU, and the environment that suits torch.

use anyhow::bail;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use tch::Device;

/// The GPU part of libtorch. This program is not linked with it, so that it runs on machines without a GPU.
const CUDA_LIBRARY: &str = "libtorch_cuda.so";

/// Environment variables that set how OpenMP's threads wait.
const WAITING: [&str; 2] = ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT"];
/// Settings of glibc's allocator that keep the tensors of a step on the heap. By default each tensor of several MB would be
/// mapped, faulted in page by page and unmapped again.
const ALLOCATOR: [(&str, &str); 2] = [
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    ("MALLOC_TRIM_THRESHOLD_", "1073741824"),
];

/// Chooses the device. Call it before any other use of torch in the process.
///
/// # Errors
/// A GPU is configured and not available; there is no silent fallback.
pub fn choose(wanted: config::Device) -> anyhow::Result<Device> {
    if wanted == config::Device::Cpu {
        return Ok(Device::Cpu);
    }
    match (find_gpu(), wanted) {
        (Ok(()), _) => {
            tracing::info!(cudnn = tch::Cuda::cudnn_is_available(), "training on the GPU");
            Ok(Device::Cuda(0))
        }
        (Err(reason), config::Device::Cuda) => bail!(
            "learner.device is `cuda`, but {reason}; set learner.device = \"cpu\" (or \"auto\") to train on the CPU"
        ),
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

/// Restarts this program, in the same process, with an environment that suits torch: threads sleep while they wait for each
/// other, and memory is kept between steps. Variables that are set already stay as they are. A restart is needed because libraries
/// read the variables when they are loaded. Call it before anything else.
///
/// By default threads wait in a loop, which is slow on cores that are shared with self-play: two threads on two busy cores trained
/// 31 to 48 samples/s, and 170 to 280 with sleeping threads. Keeping memory made whole steps in bf16 about 5 % faster.
pub fn restart_with_torch_environment() {
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
    // Only reached if the restart failed; training is slower then, but correct.
    eprintln!("minuet-learner: cannot restart with an environment that suits torch: {error}");
}

fn find_gpu() -> Result<(), String> {
    load_cuda_library()?;
    if tch::Cuda::is_available() {
        Ok(())
    } else {
        Err("torch finds no usable NVIDIA GPU or driver".into())
    }
}

/// Loads the GPU part of torch, which registers itself with the CPU part.
#[allow(unsafe_code)]
fn load_cuda_library() -> Result<(), String> {
    // SAFETY: loading a library runs its initialisers. These are torch's own, of the version this program is linked
    // against (the loader refuses others by their symbols), and they run before any other torch call, as if the library
    // were linked. It is never unloaded. Without it, CUDA tensors cannot be made.
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
