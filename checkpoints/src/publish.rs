//! Publishing: writes the files first and the manifest last, and never mixes the files of two publishers.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use object_store::{
    Error as StoreError, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode, PutResult,
    path::Path as StorePath,
};
use objects::MULTIPART_BYTES;

use crate::{
    Draft, Error, FileEntry, Lease, MODEL, Manifest, Repository, Version,
    manifest::{SCHEMA, now_ms},
    repository::{MANIFEST, age, digest},
    version::check_name,
};

/// Time after its last write during which a publisher without a manifest counts as alive.
pub(crate) const PUBLISH_GRACE: Duration = Duration::from_secs(120);

/// A file in the store, as it was when it was last read.
struct Written {
    path: StorePath,
    bytes: u64,
    e_tag: Option<String>,
}

impl Repository {
    /// Publishes a checkpoint: writes `files`, among them [`MODEL`], and then the manifest. No label moves.
    ///
    /// Publishing the same contents again (for example after a crash) succeeds and changes nothing. An interrupted publish
    /// leaves nothing that a reader sees.
    ///
    /// # Errors
    /// [`Error::Refused`] or [`Error::Name`] if the files do not make a checkpoint; [`Error::Refused`] or [`Error::Busy`]
    /// if the version's name is taken; [`Error::Store`].
    pub async fn publish(&self, draft: Draft, files: Vec<(&str, Bytes)>) -> Result<Version, Error> {
        self.publish_for(draft, files, None).await
    }

    pub(crate) async fn publish_for(
        &self,
        draft: Draft,
        files: Vec<(&str, Bytes)>,
        lease: Option<&Lease>,
    ) -> Result<Version, Error> {
        let entries = describe(&files).await?;
        let Some(model) = entries.get(MODEL) else {
            return Err(not_a_checkpoint(format!("{MODEL} is missing")));
        };
        let version = Version::new(draft.step, &model.sha256)?;
        if let Some(published) = self.find_manifest(&version).await? {
            return same_contents(&published, &entries).map(|()| version);
        }
        let mut written = Vec::with_capacity(files.len());
        for (name, bytes) in files {
            written.push(self.put_file(&version, name, bytes).await?);
        }
        // Another process may have replaced or removed a file in the meantime.
        for file in &written {
            let meta = self.store.head(&file.path).await?;
            if meta.size != file.bytes || (file.e_tag.is_some() && meta.e_tag != file.e_tag) {
                return Err(busy(&version, file.path.filename().unwrap_or_default()));
            }
        }
        let manifest = Manifest {
            schema: SCHEMA,
            version: version.clone(),
            draft,
            files: entries,
            token: lease.map_or(0, Lease::token),
            created_at_ms: now_ms(),
        };
        let text = serde_json::to_vec_pretty(&manifest).map_err(not_a_checkpoint)?;
        let path = self.file_path(&version, MANIFEST);
        if let Some(lease) = lease {
            lease.check().await?;
        }
        match self
            .store
            .put_opts(&path, text.into(), PutMode::Create.into())
            .await
        {
            Ok(_) => Ok(version),
            Err(StoreError::AlreadyExists { .. }) => {
                let published = self.manifest(&version).await?;
                same_contents(&published, &manifest.files).map(|()| version)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a damaged file of a published checkpoint again. `bytes` must be those that were published.
    ///
    /// # Errors
    /// [`Error::Refused`] if they are others, [`Error::Store`].
    pub async fn restore(&self, manifest: &Manifest, file: &str, bytes: Bytes) -> Result<(), Error> {
        let (found, bytes) = digest(bytes).await?;
        if manifest.files.get(file).is_none_or(|entry| entry.sha256 != found) {
            return Err(published_before(&manifest.version, file));
        }
        self.write(&self.file_path(&manifest.version, file), bytes)
            .await?;
        Ok(())
    }

    /// Writes one file of a version that is not visible yet, unless it exists with equal contents.
    async fn put_file(&self, version: &Version, name: &str, bytes: Bytes) -> Result<Written, Error> {
        let path = self.file_path(version, name);
        let length = bytes.len() as u64;
        let e_tag = match self.create(&path, &bytes).await {
            Ok(put) => put.e_tag,
            Err(StoreError::AlreadyExists { .. }) => {
                let found = self.store.get(&path).await?;
                let meta = found.meta.clone();
                let is_same = meta.size == length && found.bytes().await? == bytes;
                if is_same {
                    meta.e_tag
                } else {
                    self.may_replace(version, name, &meta).await?;
                    self.write(&path, bytes).await?.e_tag
                }
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Written {
            path,
            bytes: length,
            e_tag,
        })
    }

    /// Writes a file if it does not exist.
    async fn create(&self, path: &StorePath, bytes: &Bytes) -> Result<PutResult, StoreError> {
        if !self.is_large(bytes) {
            let mode = PutMode::Create.into();
            return self.store.put_opts(path, bytes.clone().into(), mode).await;
        }
        // Uploads in parts take no condition. A write by another process after this check is noticed before the manifest is
        // written.
        match self.store.head(path).await {
            Err(StoreError::NotFound { .. }) => self.write(path, bytes.clone()).await,
            Ok(_) => Err(StoreError::AlreadyExists {
                path: path.to_string(),
                source: "the file exists already".into(),
            }),
            Err(error) => Err(error),
        }
    }

    /// Writes a file and replaces an existing one.
    async fn write(&self, path: &StorePath, bytes: Bytes) -> Result<PutResult, StoreError> {
        let in_parts = self.is_large(&bytes);
        objects::write(self.store.as_ref(), path, bytes, in_parts).await
    }

    /// True if a file is uploaded in parts, so that over a network each request is short enough to be repeated.
    fn is_large(&self, bytes: &Bytes) -> bool {
        self.folder.is_none() && bytes.len() >= MULTIPART_BYTES
    }

    /// Checks that an existing file with other contents was left by a dead publisher.
    ///
    /// # Errors
    /// [`Error::Refused`] if the version is visible, [`Error::Busy`] if its publisher may be alive.
    async fn may_replace(&self, version: &Version, name: &str, meta: &ObjectMeta) -> Result<(), Error> {
        if self.find_manifest(version).await?.is_some() {
            return Err(published_before(version, name));
        }
        if age(meta) < PUBLISH_GRACE {
            return Err(busy(version, name));
        }
        tracing::warn!(%version, file = name, "replacing a file that an interrupted publish left");
        Ok(())
    }
}

/// Returns the error for a draft or files that do not make a checkpoint.
pub(crate) fn not_a_checkpoint(reason: impl std::fmt::Display) -> Error {
    Error::Refused(format!("not a checkpoint: {reason}"))
}

fn published_before(version: &Version, file: &str) -> Error {
    Error::Refused(format!(
        "version {version} was published before with other contents of {file}"
    ))
}

fn busy(version: &Version, file: &str) -> Error {
    Error::Busy {
        version: version.clone(),
        file: file.to_owned(),
        retry_seconds: PUBLISH_GRACE.as_secs(),
    }
}

async fn describe(files: &[(&str, Bytes)]) -> Result<BTreeMap<String, FileEntry>, Error> {
    let mut entries = BTreeMap::new();
    for (name, bytes) in files {
        check_name("file name", name)?;
        if *name == MANIFEST {
            return Err(not_a_checkpoint(format!(
                "{MANIFEST} is written by the repository"
            )));
        }
        let (sha256, bytes) = digest(bytes.clone()).await?;
        let entry = FileEntry {
            sha256,
            bytes: bytes.len() as u64,
        };
        if entries.insert((*name).to_owned(), entry).is_some() {
            return Err(not_a_checkpoint(format!("{name} occurs twice")));
        }
    }
    Ok(entries)
}

fn same_contents(published: &Manifest, files: &BTreeMap<String, FileEntry>) -> Result<(), Error> {
    let differing = files
        .keys()
        .chain(published.files.keys())
        .find(|name| files.get(*name) != published.files.get(*name));
    match differing {
        None => Ok(()),
        Some(file) => Err(published_before(&published.version, file)),
    }
}
