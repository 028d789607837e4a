//! The right to train and publish: one learner in a folder, and one of all that share a model store.
//!
//! The folder keeps the name under which this learner holds the store's lease, so that one that was killed and started
//! again goes on at once; a learner with another folder, a copy of the first one's included, waits until the lease is
//! given back or expires.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use checkpoints::{Lease, LeaseTimes, Repository};
use service::backoff::Backoff;
use tokio_util::sync::CancellationToken;

const LOCK: &str = "learner.lock";
/// Hexadecimal digits at a name's beginning, drawn once.
const NAME_DIGITS: usize = 32;
/// A store that does not answer while the process ends is not waited for: the lease expires by itself.
const RELEASE_PATIENCE: Duration = Duration::from_secs(5);

/// A learner's folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Two processes, one folder.
    #[error("another learner runs in {0}; give each its own `learner.folder`, or stop the other one")]
    Taken(PathBuf),
    /// The file system failed.
    #[error("cannot use {folder}: {source}")]
    Io {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The learner's folder, taken by this process for as long as this lives.
#[derive(Debug)]
pub struct Folder {
    _lock: File,
    holder: String,
}

impl Folder {
    /// Takes the folder, which is made if it is not there.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn take(folder: &Path) -> Result<Self, FolderError> {
        let fault = |source| FolderError::Io {
            folder: folder.to_owned(),
            source,
        };
        fs::create_dir_all(folder).map_err(fault)?;
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(folder.join(LOCK))
            .map_err(fault)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FolderError::Taken(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(fault(error)),
        }
        let holder = name_in(&mut file).map_err(fault)?;
        Ok(Self { _lock: file, holder })
    }

    /// The name under which this folder's learner holds leases.
    pub fn holder(&self) -> &str {
        &self.holder
    }
}

/// The name in the lock file, which ends with the file's own number (inode); a new one where there is none, half of one, or that of
/// another file: two copies of a folder must not take each other's lease.
fn name_in(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let own = format!("-{}", file.metadata()?.ino());
    if let Ok(name) = String::from_utf8(bytes)
        && let Some(drawn) = name.strip_suffix(&own)
        && drawn.len() == NAME_DIGITS
        && drawn.bytes().all(|digit| digit.is_ascii_hexdigit())
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

/// Waits for the lease of the line's label, also while the store is away; `None` where `shutdown` ends that.
///
/// # Errors
/// Where the store cannot keep two learners apart, or refuses.
pub async fn lease(
    repository: &Repository,
    line: &str,
    folder: &Folder,
    shutdown: &CancellationToken,
) -> Result<Option<Lease>, checkpoints::Error> {
    metrics::gauge!("minuet_learner_lease_token").set(0.0);
    let mut backoff = Backoff::for_connections();
    loop {
        let taken = tokio::select! {
            taken = repository.lease(line, folder.holder(), LeaseTimes::default()) => taken,
            () = shutdown.cancelled() => return Ok(None),
        };
        match taken {
            Ok(lease) => {
                metrics::gauge!("minuet_learner_lease_token").set(lease.token() as f64);
                return Ok(Some(lease));
            }
            Err(error) if error.is_transient() => {
                if (backoff.attempts() + 1).is_power_of_two() {
                    tracing::warn!(%error, "cannot take the lease of the model store; trying again");
                }
                if !backoff.wait(shutdown).await {
                    return Ok(None);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Gives the lease back, if the store answers soon.
pub async fn release(lease: &Lease) {
    match tokio::time::timeout(RELEASE_PATIENCE, lease.release()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot give the lease back; it expires"),
        Err(_) => tracing::warn!("the model store does not answer; the lease expires"),
    }
}
