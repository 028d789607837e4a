//! The trial load of a model of another source, in a process of its own: a model that takes too much memory or time, or ends its process,
//! is refused before this process loads it.
//!
//! The process is the inference server's program with the argument [`ARGUMENT`]. It loads and runs the model on the CPU as the server would,
//! with a limit on its memory. Programs that load the same files again and again keep which ones passed ([`Trial::run_once`]).

use std::{
    fs,
    io::{self, BufRead as _, Read as _},
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    thread,
    time::Duration,
};

use bytes::Bytes;
use checkpoints::version::sha256_hex;
use config::Provider;
use games::RowLayout;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use service::role::Role;
use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

use crate::{
    ModelFile,
    loader::{self, LoadError, Loader},
    session::Contract,
};

/// Only argument of the process that tries a model out.
pub const ARGUMENT: &str = "try-model";
/// Longest time of a trial in a server. A network of 40 blocks and 256 filters takes some seconds.
pub const TIME: Duration = Duration::from_secs(60);
/// Memory for batches and for the runtime, besides that of the model.
const ALLOWANCE: u64 = 512 << 20;
/// Largest batch of a trial: larger ones take a large network too long on a CPU.
const BATCH: usize = 32;
/// Memory that loading and running a usual model takes: a multiple of its file, and what the batches need.
const USUAL: (u64, u64) = (4, 96 << 20);
/// Name of the file, in a folder for what can be made again, that holds the digests of the models which passed.
const PASSED: &str = "tried.json";
/// Number of models that are remembered. The oldest makes room.
const MOST: usize = 256;
/// Largest file of keys that is read: 256 keys take a tenth of it.
const MOST_BYTES: u64 = 1 << 18;

/// Error of the process that tries a model out.
#[derive(Debug, thiserror::Error)]
enum TrialError {
    /// The standard input does not hold a trial and a model.
    #[error("the model cannot be read")]
    Read(#[from] io::Error),
    /// The first line is not a trial.
    #[error("the trial cannot be read")]
    Header(#[from] serde_json::Error),
    /// The memory of the process cannot be limited or measured.
    #[error("cannot limit the memory of a trial load")]
    Memory(#[source] io::Error),
    /// The model cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// A model to try out: the first line of the process's standard input, in front of the model's file.
#[derive(Debug, Deserialize, Serialize)]
pub struct Trial {
    /// Layout of the model's rows.
    pub layout: RowLayout,
    /// Names of its inputs and outputs.
    pub contract: Contract,
    /// Memory that the model may take, in bytes.
    pub memory: u64,
    /// Name of the setting for that memory, for messages; empty: none.
    #[serde(skip)]
    pub memory_setting: &'static str,
    /// Time that the trial may take.
    pub time: Duration,
}

impl Trial {
    /// Tries the model of this file out. Returns the memory, in bytes, that one session of it takes beyond that of a usual model: its graph
    /// may make large tensors.
    ///
    /// # Errors
    /// The reason why the model cannot be served; or this program cannot be started.
    pub async fn run(&self, file: &Bytes) -> Result<u64, String> {
        let start = || -> io::Result<_> {
            let mut command = Command::new(program()?);
            let command = command.arg(ARGUMENT).kill_on_drop(true);
            let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
            command.stderr(Stdio::piped()).spawn()
        };
        let mut child = start().map_err(|error| format!("its trial load cannot be started: {error}"))?;
        let header = serde_json::to_string(self).map_err(|error| error.to_string())?;
        let input = child.stdin.take();
        // A process that ends early does not read all; its own message counts.
        let writing = async move {
            if let Some(mut input) = input {
                let _ = input.write_all(format!("{header}\n").as_bytes()).await;
                let _ = input.write_all(file).await;
            }
        };
        let ended = timeout(self.time, async {
            tokio::join!(writing, child.wait_with_output()).1
        })
        .await;
        let setting = match self.memory_setting {
            "" => String::new(),
            name => format!(": {name}"),
        };
        let most = format!("at most {} MiB may be used{setting}", self.memory >> 20);
        match ended {
            Err(_) => Err(format!("its trial load took more than {:?}", self.time)),
            Ok(Err(error)) => Err(format!("its trial load failed: {error}")),
            Ok(Ok(output)) if output.status.success() => {
                let printed = String::from_utf8_lossy(&output.stdout);
                let taken: Result<u64, _> = printed.trim().parse();
                let taken = taken.map_err(|_| "its trial load printed no number".to_owned())?;
                Ok(taken.saturating_sub(USUAL.0 * file.len() as u64 + USUAL.1))
            }
            Ok(Ok(output)) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().last().unwrap_or_default();
                match output.status.code() {
                    Some(1) if !said.contains("alloc") => Err(said.to_owned()),
                    Some(1) => Err(format!("{said} ({most})")),
                    _ => Err(format!("its trial load ended with {} ({most})", output.status)),
                }
            }
        }
    }
}

impl Trial {
    /// Tries the model out as [`Trial::run`] does, unless `folder` says that it passed before. Blocks.
    ///
    /// # Errors
    /// As [`Trial::run`].
    pub fn run_once(&self, file: &Bytes, folder: Option<&Path>) -> Result<(), String> {
        let layout = serde_json::to_vec(&self.layout).map_err(|error| error.to_string())?;
        let key = sha256_hex(&[sha256_hex(file).into_bytes(), layout].concat());
        let passed = folder.map(|folder| folder.join(PASSED));
        let known = passed.as_deref().map(read_passed).unwrap_or_default();
        if known.contains(&key) {
            return Ok(());
        }
        // The caller may be a task of a runtime, which may not wait for another one.
        let tried = thread::scope(|scope| {
            let trying = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| error.to_string())?;
                runtime.block_on(self.run(file))
            });
            trying.join()
        });
        tried.unwrap_or_else(|_| Err("its trial load was interrupted".into()))?;
        if let Some(path) = passed
            && let Err(error) = keep_passed(&path, known, key)
        {
            let path = path.display();
            tracing::warn!(%path, %error, "the result of a trial load cannot be kept");
        }
        Ok(())
    }
}

/// Returns the keys of the models that passed; none if the file is missing or damaged, because a trial is only made again then.
fn read_passed(path: &Path) -> Vec<String> {
    let text = service::filesystem::read(path, MOST_BYTES).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Adds a key to the file. Readers find the old content or the new one.
fn keep_passed(path: &Path, mut known: Vec<String>, key: String) -> io::Result<()> {
    known.push(key);
    loader::write_newest(path, &known, MOST)
}

/// Returns the path of the inference server's program: in the folder of Minuet's programs, or in the folder above, where tests have it.
fn program() -> io::Result<PathBuf> {
    let own = service::process::programs()?;
    let folders = own.ancestors().take(2);
    let mut programs = folders.map(|folder| folder.join(Role::InferenceServer.binary()));
    let missing = || {
        io::Error::other(format!(
            "no {} next to this program",
            Role::InferenceServer.binary()
        ))
    };
    programs.find(|path| path.is_file()).ok_or_else(missing)
}

/// Loads the model on standard input: the `main` of the process that tries a model out.
pub fn main() -> ExitCode {
    match load() {
        Ok(taken) => {
            println!("{taken}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", service::chain(&error).to_string().replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

/// Returns the memory that loading and running took, in bytes.
fn load() -> Result<u64, TrialError> {
    let (mut input, mut header, mut bytes) = (io::stdin().lock(), String::new(), Vec::new());
    input.read_line(&mut header)?;
    let trial: Trial = serde_json::from_str(&header)?;
    input.read_to_end(&mut bytes)?;
    let loader = Loader::new(1, BATCH, Provider::Cpu)?;
    limit_memory(trial.memory.saturating_add(ALLOWANCE)).map_err(TrialError::Memory)?;
    let file = ModelFile {
        bytes: bytes.into(),
        version: String::new(),
        step: 0,
        layout: trial.layout,
        search: None,
    };
    let before = memory("VmRSS:").map_err(TrialError::Memory)?;
    let _model = loader.load_from("", &file, &trial.contract)?;
    let most = memory("VmHWM:").map_err(TrialError::Memory)?;
    Ok(most.saturating_sub(before))
}

/// Limits the memory that this process may take from now on, in bytes.
fn limit_memory(more: u64) -> io::Result<()> {
    let taken = memory("VmData:")?;
    for (resource, most) in [(Resource::Data, taken.saturating_add(more)), (Resource::Core, 0)] {
        let most = Some(most);
        setrlimit(
            resource,
            Rlimit {
                current: most,
                maximum: most,
            },
        )?;
    }
    Ok(())
}

/// Returns a number of the system about this process's memory, in bytes.
fn memory(name: &str) -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|text| text.trim().split(' ').next()?.parse::<u64>().ok());
    let missing = || io::Error::other(format!("/proc/self/status has no {name}"));
    Ok(kib.ok_or_else(missing)? << 10)
}
