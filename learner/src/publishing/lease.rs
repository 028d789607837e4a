//! Lets one learner at a time run in a folder, and one learner at a time publish to a model store.
//!
//! The folder's lock file contains the name under which this learner holds the store's lease, so that a learner that was
//! killed and restarted in its folder renews its lease at once. A learner with another folder, or with a copy of the first
//! one's folder, waits until the lease is released or expires.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, bail};
use checkpoints::{Lease, LeaseTimes, Repository};
use tokio_util::sync::CancellationToken;

use super::{is_transient, until_answered};
use crate::metrics::Metrics;

const LOCK: &str = "learner.lock";
/// Number of random hexadecimal digits at the beginning of a holder's name.
const NAME_DIGITS: usize = 32;
/// Longest wait for a store that does not answer while the process ends; after that the lease expires by itself.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// The learner's folder, locked by this process until the value is dropped.
#[derive(Debug)]
pub struct LearnerFolder {
    _lock: File,
    /// Name under which this folder's learner holds leases.
    pub holder: String,
}

impl LearnerFolder {
    /// Locks the folder, after creating it if it does not exist.
    ///
    /// # Errors
    /// Another process has locked the folder, or the file system failed.
    pub fn lock(folder: &Path) -> anyhow::Result<Self> {
        let open = || {
            fs::create_dir_all(folder)?;
            let mut options = File::options();
            let options = options.create(true).truncate(false).read(true).write(true);
            options.open(folder.join(LOCK))
        };
        let unusable = || format!("cannot use {}", folder.display());
        let mut file = open().with_context(unusable)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => bail!(
                "another learner runs in {}; give each its own `learner.folder`, or stop the other one",
                folder.display()
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(unusable),
            Ok(()) => {}
        }
        let holder = read_or_create_name(&mut file).with_context(unusable)?;
        Ok(Self { _lock: file, holder })
    }
}

/// Reads the holder's name from the lock file. A name ends with the lock file's inode number. If the file has no complete name, or
/// the inode of another file, a new name is written: two copies of a folder must not share a lease.
fn read_or_create_name(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let own = format!("-{}", file.metadata()?.ino());
    if let Ok(name) = String::from_utf8(bytes)
        && let Some(random) = name.strip_suffix(&own)
        && random.len() == NAME_DIGITS
        && random.bytes().all(|digit| digit.is_ascii_hexdigit())
    {
        return Ok(name);
    }
    let name = format!("{:0NAME_DIGITS$x}{own}", rand::random::<u128>());
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(name.as_bytes())?;
    file.sync_all()?;
    Ok(name)
}

/// Acquires the lease of the label `latest`. Waits while another learner holds the lease and while the store does not answer; returns
/// `None` if `shutdown` ends the wait.
///
/// # Errors
/// The store refuses, or it does not support leases.
pub async fn acquire(
    repository: &Repository,
    folder: &LearnerFolder,
    metrics: &Metrics,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<Lease>> {
    metrics.lease_token.set(0.0);
    let failure = "cannot acquire the lease of the model store";
    let acquired = tokio::select! {
        acquired = until_answered(failure, shutdown, move || async move {
            Ok(repository.lease(&folder.holder, LeaseTimes::default()).await?)
        }) => acquired,
        () = shutdown.cancelled() => return Ok(None),
    };
    match acquired {
        Err(error) if is_transient(&error) => Ok(None),
        acquired => {
            let lease = acquired?;
            metrics.lease_token.set(lease.token() as f64);
            Ok(Some(lease))
        }
    }
}

/// Releases the lease if the store answers within five seconds.
pub async fn release(lease: &Lease) {
    match tokio::time::timeout(RELEASE_TIMEOUT, lease.release()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(error = %service::chain(&error), "cannot release the lease; it will expire by itself");
        }
        Err(_) => tracing::warn!("the model store does not answer; the lease will expire by itself"),
    }
}
