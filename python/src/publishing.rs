//! Checkpoints: fetching with their digests checked, and publishing as the learner does: under the store's lease, the manifest
//! last, the label after that.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use checkpoints::{Draft, Error, Manifest, Repository, lease::LeaseTimes};
use pyo3::{prelude::*, types::PyBytes};

use crate::{client::link::runtime, error::CheckpointError};

fn refused(store: &str, error: &Error) -> PyErr {
    CheckpointError::new_err(format!("{store}: {}", service::chain(error)))
}

/// Publishes a checkpoint under the store's lease and moves the label `latest` to it. Returns its version. `draft` is the description of
/// a manifest as JSON.
#[pyfunction]
pub fn publish(
    py: Python<'_>,
    store: &str,
    draft: &str,
    files: HashMap<String, Vec<u8>>,
    seconds: f64,
) -> PyResult<String> {
    let draft: Draft = serde_json::from_str(draft)
        .map_err(|error| CheckpointError::new_err(format!("invalid description of a checkpoint: {error}")))?;
    let files: Vec<(String, Bytes)> = files
        .into_iter()
        .map(|(name, bytes)| (name, bytes.into()))
        .collect();
    // Another machine may have a process of the same number.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let holder = format!("python-{}-{}", std::process::id(), since.as_nanos());
    let publishing = async {
        let repository = Repository::open(store)?;
        let lease = repository.lease(&holder, LeaseTimes::default()).await?;
        let files = files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone()));
        let published = match lease.publish(draft, files.collect()).await {
            Ok(version) => lease.set_label(&version).await.map(|()| version),
            Err(error) => Err(error),
        };
        lease.release().await?;
        published
    };
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let runtime = runtime()?;
    let published = py.detach(|| runtime.block_on(async { tokio::time::timeout(limit, publishing).await }));
    match published {
        Ok(published) => Ok(published.map_err(|error| refused(store, &error))?.to_string()),
        Err(_) => Err(CheckpointError::new_err(format!(
            "{store}: another learner publishes to it and held its lease for {seconds} s"
        ))),
    }
}

/// Manifest of a version or label as JSON, and the contents of those of `names` that the checkpoint has.
#[pyfunction]
pub fn fetch<'py>(
    py: Python<'py>,
    store: &str,
    version: &str,
    names: Vec<String>,
) -> PyResult<(String, HashMap<String, Bound<'py, PyBytes>>)> {
    let runtime = runtime()?;
    let fetching = async {
        let repository = Repository::open(store)?;
        let manifest = repository.resolve(version).await?;
        let mut found = Vec::new();
        for name in names {
            if manifest.files.contains_key(&name) {
                let bytes = repository.fetch(&manifest, &name).await?;
                found.push((name, bytes));
            }
        }
        Ok::<(Manifest, Vec<(String, Bytes)>), Error>((manifest, found))
    };
    let (manifest, found) = py
        .detach(|| runtime.block_on(fetching))
        .map_err(|error| refused(store, &error))?;
    let text =
        serde_json::to_string(&manifest).map_err(|error| CheckpointError::new_err(error.to_string()))?;
    let files = found
        .into_iter()
        .map(|(name, bytes)| (name, PyBytes::new(py, &bytes)));
    Ok((text, files.collect()))
}
