//! Sources of models: the run's own store, other stores, and files that other programs made.

use std::path::PathBuf;

use bytes::Bytes;
use checkpoints::{LATEST, MODEL, Manifest, Repository, Version};
use games::RowLayout;

use crate::models::{library::LibraryError, names::Pointer};
use network::{
    session::Contract,
    sidecar::{self, Sidecar},
};

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
    Store(Repository, Box<Manifest>),
    Read(Bytes),
}

impl Found {
    /// Returns the publication time in seconds since the Unix epoch. NaN if it is not known.
    pub(crate) fn published_at(&self) -> f64 {
        match &self.place {
            Place::Store(_, manifest) => manifest.created_at_ms as f64 / 1000.0,
            Place::Read(_) => f64::NAN,
        }
    }

    /// Reads a manifest of a store.
    ///
    /// # Errors
    /// [`LibraryError::Unsuitable`] if its row layout cannot be read or it lists no model file.
    pub fn of(store: Repository, manifest: Manifest) -> Result<Self, LibraryError> {
        let unreadable = |reason: String| {
            LibraryError::Unsuitable(format!("the manifest's row layout cannot be read: {reason}"))
        };
        let layout: RowLayout = serde_json::from_value(manifest.draft.layout.clone())
            .map_err(|error| unreadable(error.to_string()))?;
        layout.check().map_err(|error| unreadable(error.to_string()))?;
        let version = manifest.version.clone();
        let Some(file) = manifest.files.get(MODEL) else {
            return Err(LibraryError::Unsuitable(format!("{version} has no {MODEL}")));
        };
        Ok(Self {
            version,
            step: manifest.draft.step,
            layout,
            contract: Contract::default(),
            bytes: file.bytes,
            place: Place::Store(store, Box::new(manifest)),
        })
    }

    fn read(described: Sidecar, bytes: Bytes) -> Result<Self, LibraryError> {
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

    /// Returns the model's file.
    ///
    /// # Errors
    /// [`LibraryError::Store`] if it cannot be read or differs from what was published.
    pub async fn fetch(&self) -> Result<Bytes, LibraryError> {
        match &self.place {
            Place::Store(store, manifest) => Ok(store.fetch(manifest, MODEL).await?),
            Place::Read(bytes) => Ok(bytes.clone()),
        }
    }
}

impl Source {
    /// Finds a model.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub async fn find(&self, pointer: &Pointer) -> Result<Found, LibraryError> {
        match self {
            Self::Store(store) => {
                let manifest = match pointer {
                    Pointer::Version(version) => store.manifest(version).await?,
                    Pointer::Label(label) => store.resolve(label).await?,
                };
                Found::of(store.clone(), manifest)
            }
            Self::File(description) => {
                let (described, bytes) = sidecar::read(description).await?;
                let found = Found::read(described, bytes)?;
                match pointer {
                    Pointer::Version(version) if *version != found.version => {
                        Err(checkpoints::Error::NotFound {
                            name: version.to_string(),
                        }
                        .into())
                    }
                    Pointer::Label(label) if label != LATEST => {
                        Err(checkpoints::Error::NotFound { name: label.clone() }.into())
                    }
                    _ => Ok(found),
                }
            }
        }
    }
}
