//! Parts that all benchmarks share: repetition, measurement, output.
//!
//! | module | contents |
//! |---|---|
//! | [`rounds`](self::rounds()) | a warm-up, then repeated measurements |
//! | [`measure`] | wall clock and processor time of a process, and the cores that it runs on |
//! | [`runtime`](self::runtime()) | the runtime of a client |
//! | [`report`] | medians, ratios, text or JSON |
//! | [`role`] | a role's binary as a child process |
//! | [`child`] | a child process that works for as long as it is told |
//! | [`page`](self::page()) | metrics pages |
//! | [`positions`] | positions of played games, as requests |
//! | [`model`] | the network that is measured |
//! | [`direct`] | baseline: a model called by Minuet's loader |
//! | [`onnxruntime`] | baseline: a model called by ONNX Runtime's Python package |
//! | [`compared`] | ratios to a baseline, and the two baselines of a network |

pub mod child;
pub mod compared;
pub mod direct;
pub mod measure;
pub mod model;
pub mod onnxruntime;
pub mod positions;
pub mod report;
pub mod role;

use std::net::SocketAddr;

use anyhow::Context as _;
use launcher::page::Page;
use tokio::runtime::{Builder, Runtime};

/// Runs `work` once to warm up and then `count` times; returns the results of the latter.
///
/// # Errors
/// The first error of `work`.
pub fn rounds<T>(count: usize, mut work: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
    work()?;
    (0..count).map(|_| work()).collect()
}

/// Returns a runtime with one thread, which is on the core of this thread. Make it after the thread was pinned.
///
/// # Errors
/// The system refuses the thread.
pub fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

/// Fetches the metrics page at `address`.
///
/// # Errors
/// No page answers.
pub fn page(address: SocketAddr) -> anyhow::Result<Page> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // A busy machine may need longer than the time limit of one request.
    let page = (0..3).find_map(|_| runtime.block_on(Page::fetch(address)));
    page.with_context(|| format!("no metrics page answers at {address}"))
}
