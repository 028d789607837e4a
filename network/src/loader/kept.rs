//! Measured orders of the providers, kept in the user's cache folder: later starts with the same model on the same machine take the
//! same provider, without measuring again.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use config::Provider;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::loader::Loader;

/// Name of the file in the cache folder.
const FILE: &str = "providers.json";
/// Number of orders that are kept. The oldest makes room.
const MOST: usize = 256;
/// Largest file that is read: 256 orders take a tenth of it.
const MOST_BYTES: u64 = 1 << 20;

/// An order of the providers, and all that it was measured for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    conditions: Conditions,
    /// The fastest first.
    ranking: Vec<Provider>,
}

/// Everything that the speed of a provider depends on, and its agreement with f32.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Conditions {
    /// SHA-256 of the model's file, in hexadecimal.
    digest: String,
    processor: Option<String>,
    cores: usize,
    /// Version of NVIDIA's driver; `None` without one.
    gpu_driver: Option<String>,
    /// Version of ONNX Runtime, with its build.
    runtime: String,
    threads: usize,
    batch: usize,
    fp16: bool,
}

/// Returns the folder in which Minuet keeps what it can make again: `MINUET_CACHE`, else `minuet` in `XDG_CACHE_HOME` or in
/// `~/.cache`. `None` if none of these variables is set.
pub fn cache_folder() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
    let named = variable("MINUET_CACHE").map(PathBuf::from);
    named.or_else(|| {
        let base = variable("XDG_CACHE_HOME").map(PathBuf::from);
        let base = base.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")));
        Some(base?.join("minuet"))
    })
}

impl Loader {
    /// Lets the loader keep the measured orders of the providers in this folder, and take them from there. Without a folder, as by
    /// default, it measures at every start.
    pub fn keeping_choices(mut self, folder: Option<PathBuf>) -> Self {
        self.choices = folder.map(|folder| folder.join(FILE));
        self
    }

    /// Returns what the choice of a provider depends on for the model with this digest.
    pub(super) fn conditions(&self, digest: &str) -> Conditions {
        let driver = fs::read_to_string("/proc/driver/nvidia/version").ok();
        Conditions {
            digest: digest.to_owned(),
            processor: service::process::processor(),
            cores: service::process::cores(),
            gpu_driver: driver.and_then(|text| text.lines().next().map(str::to_owned)),
            runtime: ort::info().to_owned(),
            threads: self.settings.threads,
            batch: self.buckets.largest(),
            fp16: self.settings.fp16,
        }
    }

    /// Returns the order that was measured under these conditions; empty if none is known.
    pub(super) fn kept_ranking(&self, conditions: &Conditions) -> Vec<Provider> {
        let Some(file) = &self.choices else {
            return Vec::new();
        };
        let all = read(file).unwrap_or_else(|error| {
            let file = file.display();
            tracing::warn!(%file, %error, "the kept choices of providers cannot be read and are ignored");
            Vec::new()
        });
        let mut found = all.into_iter().filter(|kept| kept.conditions == *conditions);
        found.next().map(|kept| kept.ranking).unwrap_or_default()
    }

    /// Keeps an order. A failure is logged: the next start measures again.
    pub(super) fn keep_ranking(&self, conditions: Conditions, ranking: Vec<Provider>) {
        let Some(file) = &self.choices else { return };
        if let Err(error) = keep(file, Kept { conditions, ranking }) {
            let file = file.display();
            tracing::warn!(%file, %error, "the choice of the provider cannot be kept");
        }
    }
}

/// Reads all orders. A missing file holds none.
fn read(file: &Path) -> io::Result<Vec<Kept>> {
    match service::filesystem::read(file, MOST_BYTES) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Adds an order to the file. Readers find the old content or the new one. Of two programs that write at the same time one loses its
/// order, and measures again at its next start.
fn keep(file: &Path, new: Kept) -> io::Result<()> {
    let mut all = read(file).unwrap_or_default();
    all.retain(|kept| kept.conditions != new.conditions);
    all.push(new);
    write_newest(file, &all, MOST)
}

/// Writes the last `most` entries as a file of the cache. Readers find the old content or the new one.
pub(crate) fn write_newest(file: &Path, all: &[impl Serialize], most: usize) -> io::Result<()> {
    let excess = all.len().saturating_sub(most);
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut draft = NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&mut draft, &all[excess..])?;
    draft.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(digest: usize, first: Provider) -> Kept {
        Kept {
            conditions: Conditions {
                digest: digest.to_string(),
                processor: None,
                cores: 2,
                gpu_driver: None,
                runtime: "1".into(),
                threads: 1,
                batch: 8,
                fp16: false,
            },
            ranking: vec![first, Provider::Cpu],
        }
    }

    #[test]
    fn the_newest_orders_are_kept_and_a_damaged_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/folder").join(FILE);
        assert_eq!(read(&file).unwrap(), []);
        keep(&file, kept(0, Provider::CpuInt8)).unwrap();
        assert_eq!(read(&file).unwrap(), [kept(0, Provider::CpuInt8)]);
        let many: Vec<Kept> = (0..MOST).map(|digest| kept(digest, Provider::CpuInt8)).collect();
        fs::write(&file, serde_json::to_vec(&many).unwrap()).unwrap();
        keep(&file, kept(MOST, Provider::CpuInt8)).unwrap();
        let all = read(&file).unwrap();
        assert_eq!((all.len(), &all[0].conditions.digest[..]), (MOST, "1"));
        keep(&file, kept(5, Provider::Cuda)).unwrap();
        let all = read(&file).unwrap();
        assert_eq!((all.len(), all.last()), (MOST, Some(&kept(5, Provider::Cuda))));

        fs::write(&file, "[{").unwrap();
        assert!(read(&file).is_err());
        keep(&file, kept(1, Provider::Cuda)).unwrap();
        assert_eq!(read(&file).unwrap(), [kept(1, Provider::Cuda)]);
        let left = fs::read_dir(file.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "no draft is left");
    }
}
