//! Sources of models: the run's own store, other stores, and files that other programs made.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use bytes::Bytes;
use checkpoints::{LATEST, MODEL, Manifest, Repository, Version};
use games::RowLayout;

use crate::models::names::Pointer;
use network::{
    session::Contract,
    sidecar::{self, Sidecar, SidecarError},
};

/// Number of tries to read a checkpoint from a failing store.
const TRIES: u32 = 6;
/// Pause before the second try. Each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(250);

/// Error: a model cannot be read from its source.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The store does not have the model, or cannot be read.
    #[error(transparent)]
    Store(#[from] checkpoints::Error),
    /// The manifest's layout cannot be parsed.
    #[error("the manifest's row layout cannot be read: {0}")]
    Layout(String),
    /// The checkpoint has no model file.
    #[error("{version} has no {MODEL}")]
    NoFile {
        /// The version.
        version: Version,
    },
    /// The description beside the file is invalid.
    #[error(transparent)]
    Sidecar(#[from] SidecarError),
    /// The file holds another version.
    #[error("{file} has the version {has} only")]
    OtherVersion {
        /// The file.
        file: PathBuf,
        /// Version of its content.
        has: Version,
    },
}

impl SourceError {
    /// True if no such model exists, rather than one that cannot be used.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self,
            Self::Store(checkpoints::Error::NotFound { .. } | checkpoints::Error::Name(_))
                | Self::OtherVersion { .. }
        )
    }

    /// True if a retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_transient())
    }
}

/// A place that models are read from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A model repository.
    Store(Repository),
    /// A file that another program made, by the path of its description.
    File(PathBuf),
}

/// A model that was found but not fetched yet.
#[derive(Clone, Debug)]
pub struct Found {
    /// Version of the model.
    pub version: Version,
    /// Training step.
    pub step: u64,
    /// Layout of its rows.
    pub layout: RowLayout,
    /// Names of its inputs and outputs.
    pub contract: Contract,
    /// Length of its file, in bytes.
    pub bytes: u64,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Store(Box<Manifest>),
    Read(Bytes),
}

impl Found {
    /// Returns the publication time in seconds since the Unix epoch. NaN if it is not known.
    pub(crate) fn published_at(&self) -> f64 {
        match &self.place {
            Place::Store(manifest) => manifest.created_at_ms as f64 / 1000.0,
            Place::Read(_) => f64::NAN,
        }
    }

    /// Reads a store's manifest.
    ///
    /// # Errors
    /// [`SourceError::Layout`], [`SourceError::NoFile`].
    pub fn of(manifest: Manifest) -> Result<Self, SourceError> {
        let layout: RowLayout = serde_json::from_value(manifest.draft.layout.clone())
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
            step: manifest.draft.step,
            layout,
            contract: Contract::default(),
            bytes: file.bytes,
            place: Place::Store(Box::new(manifest)),
        })
    }

    fn read(described: Sidecar, bytes: Bytes) -> Result<Self, SourceError> {
        let digest = checkpoints::version::sha256_hex(&bytes);
        // The description is part of the version, because it changes the answers.
        let identity = described.contract.identity(&digest, &described.layout);
        Ok(Self {
            version: Version::new(0, &identity).map_err(checkpoints::Error::from)?,
            step: 0,
            layout: described.layout,
            contract: described.contract,
            bytes: bytes.len() as u64,
            place: Place::Read(bytes),
        })
    }
}

impl Source {
    /// Finds a model.
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

    /// Reads a model's file. Transient failures of the store are retried for some seconds.
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
                    tracing::warn!(version = %manifest.version, error = %service::chain(&error), "cannot read the checkpoint; trying again");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                done => return Ok(done?),
            }
        }
        Ok(store.fetch(manifest, MODEL).await?)
    }

    /// Returns all labels with their versions.
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
