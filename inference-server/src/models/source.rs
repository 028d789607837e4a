//! Where models are: the run's own store, other stores, and single files made elsewhere.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use bytes::Bytes;
use checkpoints::{LATEST, MODEL, Manifest, Repository, Version};
use games::RowLayout;

use crate::models::names::Pointer;
use network::{
    session::Contract,
    sidecar::{self, Sidecar, SidecarError},
};

/// Tries at reading a checkpoint from a store that fails.
const TRIES: u32 = 6;
/// Pause before the second try; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(250);

/// A model that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The store has none, or cannot be read.
    #[error(transparent)]
    Store(#[from] checkpoints::Error),
    /// The manifest's layout means nothing here.
    #[error("the manifest's row layout cannot be read: {0}")]
    Layout(String),
    /// A checkpoint without a model.
    #[error("{version} has no {MODEL}")]
    NoFile {
        /// The version.
        version: Version,
    },
    /// The description of a model made elsewhere.
    #[error(transparent)]
    Sidecar(#[from] SidecarError),
    /// A file has one version: what it holds now.
    #[error("{file} has the version {has} only")]
    OtherVersion {
        /// The file.
        file: PathBuf,
        /// What it holds.
        has: Version,
    },
}

impl SourceError {
    /// Whether there is no such model, rather than one that cannot be used.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self,
            Self::Store(checkpoints::Error::NotFound { .. } | checkpoints::Error::Name { .. })
                | Self::OtherVersion { .. }
        )
    }

    /// Whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_transient())
    }
}

/// Where models are.
#[derive(Clone, Debug)]
pub enum Source {
    /// A model repository.
    Store(Repository),
    /// A model made elsewhere: the description beside its file.
    File(PathBuf),
}

/// A model that was found, before it is fetched.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its version.
    pub version: Version,
    /// Training step.
    pub step: u64,
    /// What its rows mean.
    pub layout: RowLayout,
    /// What its inputs and outputs are called.
    pub contract: Contract,
    /// Length of its file.
    pub bytes: u64,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Store(Box<Manifest>),
    Read(Bytes),
}

impl Found {
    /// When it was published, in seconds since the Unix epoch; NaN where nobody wrote that down.
    pub(crate) fn published_at(&self) -> f64 {
        match &self.place {
            Place::Store(manifest) => manifest.created_at_ms as f64 / 1000.0,
            Place::Read(_) => f64::NAN,
        }
    }

    /// From a store's manifest.
    ///
    /// # Errors
    /// [`SourceError::Layout`], [`SourceError::NoFile`].
    pub fn of(manifest: Manifest) -> Result<Self, SourceError> {
        let layout: RowLayout = serde_json::from_value(manifest.layout.clone())
            .map_err(|error| SourceError::Layout(error.to_string()))?;
        layout
            .check()
            .map_err(|error| SourceError::Layout(error.to_string()))?;
        let version = manifest.version.clone();
        let file = manifest.files.get(MODEL).ok_or_else(|| SourceError::NoFile {
            version: version.clone(),
        })?;
        Ok(Self {
            version,
            step: manifest.step,
            layout,
            contract: Contract::default(),
            bytes: file.bytes,
            place: Place::Store(Box::new(manifest)),
        })
    }

    fn read(described: Sidecar, bytes: Bytes) -> Result<Self, SourceError> {
        let digest = checkpoints::version::sha256_hex(&bytes);
        // The description is a part of the version: another one gives other answers.
        let identity = described.contract.identity(&digest, &described.layout);
        Ok(Self {
            version: Version::new(0, &identity)?,
            step: 0,
            layout: described.layout,
            contract: described.contract,
            bytes: bytes.len() as u64,
            place: Place::Read(bytes),
        })
    }
}

impl Source {
    /// Looks a model up.
    ///
    /// # Errors
    /// [`SourceError`]; see [`SourceError::is_not_found`].
    pub async fn find(&self, pointer: &Pointer) -> Result<Found, SourceError> {
        match self {
            Self::Store(store) => {
                let manifest = match pointer {
                    Pointer::Version(version) => store.manifest(version).await?,
                    Pointer::Label(label) => store.resolve(label).await?,
                };
                Found::of(manifest)
            }
            Self::File(description) => {
                let (described, bytes) = sidecar::read(description).await?;
                let found = Found::read(described, bytes)?;
                match pointer {
                    Pointer::Version(version) if *version != found.version => {
                        Err(SourceError::OtherVersion {
                            file: description.clone(),
                            has: found.version,
                        })
                    }
                    Pointer::Label(label) if label != LATEST => {
                        Err(checkpoints::Error::NotFound { name: label.clone() }.into())
                    }
                    _ => Ok(found),
                }
            }
        }
    }

    /// Reads a model's file; a store that fails is asked again for some seconds.
    ///
    /// # Errors
    /// [`SourceError`].
    pub async fn fetch(&self, found: &Found) -> Result<Bytes, SourceError> {
        let (store, manifest) = match (self, &found.place) {
            (_, Place::Read(bytes)) => return Ok(bytes.clone()),
            (Self::Store(store), Place::Store(manifest)) => (store, manifest),
            (Self::File(_), Place::Store(manifest)) => {
                return Err(SourceError::NoFile {
                    version: manifest.version.clone(),
                });
            }
        };
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            match store.fetch(manifest, MODEL).await {
                Err(error) if error.is_transient() => {
                    tracing::warn!(version = %manifest.version, %error, "cannot read the checkpoint; trying again");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                done => return Ok(done?),
            }
        }
        Ok(store.fetch(manifest, MODEL).await?)
    }

    /// Every label and the version it points at.
    ///
    /// # Errors
    /// [`SourceError`].
    pub async fn labels(&self) -> Result<BTreeMap<String, Version>, SourceError> {
        match self {
            Self::Store(store) => Ok(store.labels().await?),
            Self::File(_) => {
                let found = self.find(&Pointer::Label(LATEST.into())).await?;
                Ok(BTreeMap::from([(LATEST.into(), found.version)]))
            }
        }
    }
}
