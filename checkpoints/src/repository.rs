//! [`Repository`]: label, resolve, fetch, list.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::{
    Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt as _, path::Path as StorePath,
};
use serde::de::DeserializeOwned;

use crate::{
    Error, Manifest, Version, location,
    manifest::{self, Label, SCHEMA, now_ms},
    version::{check_name, sha256_hex},
};

pub(crate) const MANIFEST: &str = "manifest.json";
const VERSIONS: &str = "versions";
const LABELS: &str = "labels";
/// Largest manifest or label that is read.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// A store of checkpoints. Cloning shares the connection.
#[derive(Clone)]
pub struct Repository {
    pub(crate) store: Arc<dyn ObjectStore>,
    prefix: StorePath,
    pub(crate) folder: Option<PathBuf>,
}

impl Repository {
    /// Opens a store: a folder's path (made if it is not there), `file:///…`, `memory://`, or `s3://bucket/prefix` where
    /// object_store was built with its feature `aws`.
    ///
    /// # Errors
    /// [`Error::Location`] saying what is wrong with the address.
    pub fn open(store: &str) -> Result<Self, Error> {
        let opened = location::open(store)?;
        Ok(Self {
            store: opened.store,
            prefix: opened.prefix,
            folder: opened.folder,
        })
    }

    /// A repository below `prefix` of an object store that the caller has opened.
    pub fn with_store(store: Arc<dyn ObjectStore>, prefix: StorePath) -> Self {
        Self {
            store,
            prefix,
            folder: None,
        }
    }

    /// Points a label at a published version; readers see the old one or the new one.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such version, [`Error::Name`], [`Error::Store`].
    pub async fn set_label(&self, label: &str, version: &Version) -> Result<(), Error> {
        let path = self.label_path(label)?;
        self.manifest(version).await?;
        let label = Label {
            schema: SCHEMA,
            version: version.clone(),
            moved_at_ms: now_ms(),
        };
        let text = serde_json::to_vec(&label).map_err(|error| Error::Draft(error.to_string()))?;
        self.store.put(&path, text.into()).await?;
        Ok(())
    }

    /// The version that a label points at; `None` where there is no such label.
    ///
    /// # Errors
    /// [`Error::Schema`] or [`Error::Damaged`] for a label that cannot be read, [`Error::Name`], [`Error::Store`].
    pub async fn label(&self, label: &str) -> Result<Option<Version>, Error> {
        let path = self.label_path(label)?;
        let label: Option<Label> = self.read(&path, label).await?;
        Ok(label.map(|label| label.version))
    }

    /// Every label and the version it points at.
    ///
    /// # Errors
    /// As [`Repository::label`]; one damaged label fails the whole, so that nothing labelled can look unlabelled.
    pub async fn labels(&self) -> Result<BTreeMap<String, Version>, Error> {
        let listed = self
            .store
            .list_with_delimiter(Some(&self.prefix.clone().join(LABELS)))
            .await?;
        let mut labels = BTreeMap::new();
        for object in listed.objects {
            let name = object
                .location
                .filename()
                .and_then(|name| name.strip_suffix(".json"));
            let Some(name) = name.filter(|name| check_name("label", name).is_ok()) else {
                continue;
            };
            if let Some(version) = self.label(name).await? {
                labels.insert(name.to_owned(), version);
            }
        }
        Ok(labels)
    }

    /// The manifest of a version, or of the version that a label points at.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Schema`], [`Error::Damaged`], [`Error::Name`], [`Error::Store`].
    pub async fn resolve(&self, name: &str) -> Result<Manifest, Error> {
        if let Ok(version) = name.parse::<Version>() {
            return self.manifest(&version).await;
        }
        match self.label(name).await? {
            Some(version) => self.manifest(&version).await,
            None => Err(Error::NotFound {
                name: name.to_owned(),
            }),
        }
    }

    /// The manifest of a version.
    ///
    /// # Errors
    /// As [`Repository::resolve`].
    pub async fn manifest(&self, version: &Version) -> Result<Manifest, Error> {
        self.find_manifest(version).await?.ok_or_else(|| Error::NotFound {
            name: version.to_string(),
        })
    }

    /// Reads a file of a checkpoint whole and verifies it against the manifest.
    ///
    /// # Errors
    /// [`Error::Digest`] or [`Error::Damaged`] for bytes that are not those published; [`Error::NotFound`] where the
    /// manifest has no such file or it is gone (pruned); [`Error::Store`].
    pub async fn fetch(&self, manifest: &Manifest, file: &str) -> Result<Bytes, Error> {
        let name = format!("{}/{file}", manifest.version);
        let Some(entry) = manifest.files.get(file) else {
            return Err(Error::NotFound { name });
        };
        check_name("file name", file)?;
        let got = match self.store.get(&self.file_path(&manifest.version, file)).await {
            Ok(got) => got,
            Err(StoreError::NotFound { .. }) => return Err(Error::NotFound { name }),
            Err(error) => return Err(error.into()),
        };
        // Before reading: an object of another length need not fit into memory.
        if got.meta.size != entry.bytes {
            return Err(Error::Damaged {
                name,
                reason: format!("{} bytes, {} were published", got.meta.size, entry.bytes),
            });
        }
        let bytes = got.bytes().await?;
        let (found, bytes) = digest(bytes).await?;
        if found != entry.sha256 {
            return Err(Error::Digest {
                version: manifest.version.clone(),
                file: file.to_owned(),
                expected: entry.sha256.clone(),
                found,
            });
        }
        Ok(bytes)
    }

    /// Every published checkpoint, oldest step first. One that cannot be read (damaged, or of another schema) is left out
    /// with a warning; what an interrupted publish left is no checkpoint.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn list(&self) -> Result<Vec<Manifest>, Error> {
        let mut manifests = Vec::new();
        for version in self.version_folders().await? {
            match self.find_manifest(&version).await {
                Ok(manifest) => manifests.extend(manifest),
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => tracing::warn!(%version, %error, "left out a checkpoint that cannot be read"),
            }
        }
        manifests.sort_by(|left, right| age_order(left).cmp(&age_order(right)));
        Ok(manifests)
    }

    /// The published checkpoint with the highest step (the youngest of them), if there is any: what training resumes from.
    ///
    /// # Errors
    /// As [`Repository::resolve`]: a newest checkpoint that cannot be read is an error, so that nobody silently resumes from an older one.
    pub async fn newest(&self) -> Result<Option<Manifest>, Error> {
        let mut newest: Option<Manifest> = None;
        for version in self.version_folders().await?.into_iter().rev() {
            if newest.as_ref().is_some_and(|newest| version.step() < newest.step) {
                break;
            }
            let Some(manifest) = self.find_manifest(&version).await? else {
                continue;
            };
            if newest
                .as_ref()
                .is_none_or(|newest| age_order(newest) < age_order(&manifest))
            {
                newest = Some(manifest);
            }
        }
        Ok(newest)
    }

    /// Names that have a folder, visible or not, ascending.
    pub(crate) async fn version_folders(&self) -> Result<Vec<Version>, Error> {
        let listed = self
            .store
            .list_with_delimiter(Some(&self.prefix.clone().join(VERSIONS)))
            .await?;
        let mut versions: Vec<Version> = listed
            .common_prefixes
            .iter()
            .filter_map(|path| path.filename()?.parse().ok())
            .collect();
        versions.sort();
        Ok(versions)
    }

    /// Every object of a version, visible or not.
    pub(crate) async fn objects(&self, version: &Version) -> Result<Vec<ObjectMeta>, Error> {
        let folder = self.version_path(version);
        Ok(self.store.list(Some(&folder)).try_collect().await?)
    }

    pub(crate) async fn find_manifest(&self, version: &Version) -> Result<Option<Manifest>, Error> {
        let path = self.file_path(version, MANIFEST);
        let manifest: Option<Manifest> = self.read(&path, version.as_str()).await?;
        match manifest {
            Some(manifest) if manifest.version != *version => Err(Error::Damaged {
                name: version.to_string(),
                reason: format!("its manifest is that of {}", manifest.version),
            }),
            manifest => Ok(manifest),
        }
    }

    pub(crate) fn manifest_path(&self, version: &Version) -> StorePath {
        self.file_path(version, MANIFEST)
    }

    fn version_path(&self, version: &Version) -> StorePath {
        self.prefix.clone().join(VERSIONS).join(version.as_str())
    }

    pub(crate) fn file_path(&self, version: &Version, file: &str) -> StorePath {
        self.version_path(version).join(file)
    }

    fn label_path(&self, label: &str) -> Result<StorePath, Error> {
        check_name("label", label)?;
        Ok(self.prefix.clone().join(LABELS).join(format!("{label}.json")))
    }

    /// Reads a small JSON object; `None` where it is not there.
    async fn read<T: DeserializeOwned>(&self, path: &StorePath, name: &str) -> Result<Option<T>, Error> {
        let got = match self.store.get(path).await {
            Ok(got) => got,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if got.meta.size > MAX_TEXT_BYTES {
            return Err(Error::Damaged {
                name: name.to_owned(),
                reason: format!("{} bytes, {MAX_TEXT_BYTES} are possible", got.meta.size),
            });
        }
        manifest::parse(name, &got.bytes().await?).map(Some)
    }
}

impl fmt::Debug for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Repository({}, {})", self.store, self.prefix)
    }
}

/// Checkpoints in the order of training.
pub(crate) fn age_order(manifest: &Manifest) -> (u64, u64, &Version) {
    (manifest.step, manifest.created_at_ms, &manifest.version)
}

/// How long ago an object was written (0 where its clock is ahead of ours).
pub(crate) fn age(meta: &ObjectMeta) -> Duration {
    let written_at_ms = u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0);
    Duration::from_millis(now_ms().saturating_sub(written_at_ms))
}

/// The digest, computed where it holds nobody up.
pub(crate) async fn digest(bytes: Bytes) -> Result<(String, Bytes), Error> {
    tokio::task::spawn_blocking(move || (sha256_hex(&bytes), bytes))
        .await
        .map_err(|error| Error::Io(error.into()))
}
