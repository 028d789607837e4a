//! [`Repository`]: labels, resolving, fetching, listing.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::{
    Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt as _, path::Path as StorePath,
};
use serde::de::DeserializeOwned;

use crate::{
    Error, LATEST, Manifest, Version,
    manifest::{self, Label, SCHEMA, now_ms},
    prune::Memory,
    publish::not_a_checkpoint,
    version::{check_name, sha256_hex},
};

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const VERSIONS: &str = "versions";
const LABELS: &str = "labels";
/// Attempts to move a label against other writers before the call fails.
const MAX_SWAPS: u32 = 32;

/// A store of checkpoints. Clones share the connection and the manifests that pruning has read.
#[derive(Clone)]
pub struct Repository {
    pub(crate) store: Arc<dyn ObjectStore>,
    prefix: StorePath,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) memory: Arc<Memory>,
}

impl Repository {
    /// Opens a store: a folder's path (created if missing), `file:///…`, `memory:///` or `s3://bucket/prefix` (feature
    /// `s3`).
    ///
    /// For `s3://`, credentials come from the environment variables that the AWS SDKs read (AWS_ACCESS_KEY_ID, …).
    /// AWS_REGION, AWS_ENDPOINT and AWS_ALLOW_HTTP may also be given in the URL:
    /// `s3://bucket/prefix?endpoint=http://host:9000&allow_http=true`. No request is sent to the store yet.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason.
    pub fn open(store: &str) -> Result<Self, Error> {
        Self::open_with(store, objects::environment())
    }

    /// Opens a store as [`Repository::open`] does, with `variables` in place of the environment.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason.
    pub fn open_with(
        store: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Error> {
        let opened = objects::open(store, variables)?;
        Ok(Self {
            store: opened.store,
            prefix: opened.prefix,
            folder: opened.folder,
            memory: Arc::default(),
        })
    }

    /// Makes a repository below `prefix` of an object store that the caller has opened.
    pub fn with_store(store: Arc<dyn ObjectStore>, prefix: StorePath) -> Self {
        Self {
            store,
            prefix,
            folder: None,
            memory: Arc::default(),
        }
    }

    /// Points a label at a published version, regardless of the label's lease. A reader sees the old version or the new
    /// one.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such version, [`Error::Name`], [`Error::Schema`], [`Error::Refused`],
    /// [`Error::Store`].
    pub async fn set_label(&self, label: &str, version: &Version) -> Result<(), Error> {
        self.move_label(label, None, Some(version), None).await.map(drop)
    }

    /// Points a label at a published version if it still points at `from` (`None`: nowhere), regardless of the label's
    /// lease. Returns true if the label points at `to` afterwards. Repeating the call after a lost reply gives the same
    /// result.
    ///
    /// # Errors
    /// Those of [`Repository::set_label`].
    pub async fn swap_label(&self, label: &str, from: Option<&Version>, to: &Version) -> Result<bool, Error> {
        self.move_label(label, Some(from), Some(to), None).await
    }

    /// Points a label at a version (`None`: the present one) and sets its token (`None`: the present one). If `from` is given and
    /// the label points neither there nor at `version`, leaves the label unchanged and returns false.
    ///
    /// # Errors
    /// Those of [`Repository::set_label`], and [`Error::Fenced`] if the label has a higher token.
    pub(crate) async fn move_label(
        &self,
        label: &str,
        from: Option<Option<&Version>>,
        version: Option<&Version>,
        token: Option<u64>,
    ) -> Result<bool, Error> {
        let path = self.label_path(label)?;
        if let Some(version) = version {
            self.manifest(version).await?;
        }
        for _ in 0..MAX_SWAPS {
            let seen = self.look(&path).await?;
            let read = seen
                .as_ref()
                .map(|seen| manifest::parse::<Label>(&format!("labels/{label}.json"), &seen.bytes));
            let present = match read.transpose() {
                Err(error @ Error::Damaged { .. }) if version.is_some() => {
                    tracing::warn!(%error, "overwriting a damaged label");
                    None
                }
                read => read?,
            };
            let is_there = present.is_some();
            let (at, found) = present.map_or((None, 0), |present| (present.version, present.token));
            if from.is_some_and(|from| from != at.as_ref()) && at.as_ref() != version {
                return Ok(false);
            }
            if let Some(token) = token.filter(|&token| token < found) {
                return Err(Error::Fenced { token, found });
            }
            let moved = Label {
                schema: SCHEMA,
                version: version.or(at.as_ref()).cloned(),
                token: token.unwrap_or(found),
                moved_at_ms: now_ms(),
            };
            // This is also true after a write that succeeded although its reply was lost.
            if is_there && moved.version == at && moved.token == found {
                return Ok(true);
            }
            let text = serde_json::to_vec(&moved).map_err(not_a_checkpoint)?;
            if self.swap(&path, seen.as_ref(), text).await? {
                return Ok(true);
            }
        }
        let reason = format!("other processes move the label `{label}` all the time");
        Err(std::io::Error::new(std::io::ErrorKind::WouldBlock, reason).into())
    }

    /// Returns the contents of a label; `None` if there is no such label.
    pub(crate) async fn read_label(&self, label: &str) -> Result<Option<Label>, Error> {
        self.read(&self.label_path(label)?, &format!("labels/{label}.json"))
            .await
    }

    /// Returns the version that a label points at; `None` if there is no such label.
    ///
    /// # Errors
    /// [`Error::Schema`] or [`Error::Damaged`] if the label cannot be read, [`Error::Name`], [`Error::Store`].
    pub async fn label(&self, label: &str) -> Result<Option<Version>, Error> {
        Ok(self.read_label(label).await?.and_then(|label| label.version))
    }

    /// Returns every label and the version that it points at.
    ///
    /// # Errors
    /// Those of [`Repository::label`]. One damaged label fails the whole call, so that a labelled version never seems to
    /// have no label.
    pub async fn labels(&self) -> Result<BTreeMap<String, Version>, Error> {
        let mut labels = BTreeMap::new();
        for name in self.label_names().await? {
            if let Some(version) = self.label(&name).await? {
                labels.insert(name, version);
            }
        }
        Ok(labels)
    }

    /// Lists the names of all labels, also of damaged ones.
    pub(crate) async fn label_names(&self) -> Result<Vec<String>, Error> {
        let listed = self.store.list_with_delimiter(Some(&self.below(LABELS))).await?;
        let names = listed
            .objects
            .iter()
            .filter_map(|object| object.location.filename()?.strip_suffix(".json"));
        let names = names.filter(|name| check_name("label", name).is_ok());
        Ok(names.map(str::to_owned).collect())
    }

    /// Returns the manifest of a version, given by name or by a label that points at it.
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

    /// Returns the manifest of a version.
    ///
    /// # Errors
    /// Those of [`Repository::resolve`].
    pub async fn manifest(&self, version: &Version) -> Result<Manifest, Error> {
        self.find_manifest(version).await?.ok_or_else(|| Error::NotFound {
            name: version.to_string(),
        })
    }

    /// Reads a whole file of a checkpoint and verifies it against the manifest.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes differ from those published; [`Error::NotFound`] if the
    /// manifest has no such file or the file was pruned; [`Error::Store`].
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
        // The length is compared before reading, because an object of another length may not fit into memory.
        if got.meta.size != entry.bytes {
            return Err(Error::Damaged {
                name,
                reason: format!("found {} bytes, published were {}", got.meta.size, entry.bytes),
            });
        }
        let bytes = got.bytes().await?;
        let (found, bytes) = digest(bytes).await?;
        if found != entry.sha256 {
            return Err(Error::Damaged {
                name,
                reason: format!("its sha-256 is {found}, {} was published", entry.sha256),
            });
        }
        Ok(bytes)
    }

    /// Lists the published checkpoints in the order of training. A checkpoint that cannot be read
    /// (damaged, or of another schema) is left out with a warning. Interrupted publishes are not listed.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn list(&self) -> Result<Vec<Manifest>, Error> {
        let mut manifests = Vec::new();
        for version in self.version_folders().await? {
            match self.find_manifest(&version).await {
                Ok(manifest) => manifests.extend(manifest),
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => tracing::warn!(%version, %error, "skipping a checkpoint that cannot be read"),
            }
        }
        manifests.sort_by(|left, right| age_order(left).cmp(&age_order(right)));
        Ok(manifests)
    }

    /// Finds the checkpoint from which training resumes: the one of the last publisher with the highest step (of
    /// several, the youngest). A checkpoint that a publisher made visible after it had lost its lease does not count.
    ///
    /// # Errors
    /// Those of [`Repository::resolve`]. It is an error if the newest checkpoint cannot be read, so that training never
    /// resumes silently from an older one.
    pub async fn newest(&self) -> Result<Option<Manifest>, Error> {
        // A publisher continues from the label's step or a later one, so no checkpoint below that step is newer.
        let labelled = self.label(LATEST).await?.map(|version| version.step());
        let mut newest: Option<Manifest> = None;
        for version in self.version_folders().await?.into_iter().rev() {
            let found = newest.as_ref().map(|newest| newest.draft.step);
            if found.is_some_and(|found| version.step() < found.min(labelled.unwrap_or(0))) {
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

    /// Lists the versions that have a folder, visible or not, in ascending order.
    pub(crate) async fn version_folders(&self) -> Result<Vec<Version>, Error> {
        let listed = self
            .store
            .list_with_delimiter(Some(&self.below(VERSIONS)))
            .await?;
        let mut versions: Vec<Version> = listed
            .common_prefixes
            .iter()
            .filter_map(|path| path.filename()?.parse().ok())
            .collect();
        versions.sort();
        Ok(versions)
    }

    /// Lists every object of a version, visible or not.
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
                reason: format!("the manifest belongs to {}", manifest.version),
            }),
            manifest => Ok(manifest),
        }
    }

    fn version_path(&self, version: &Version) -> StorePath {
        self.below(VERSIONS).join(version.as_str())
    }

    pub(crate) fn below(&self, folder: &'static str) -> StorePath {
        self.prefix.clone().join(folder)
    }

    pub(crate) fn file_path(&self, version: &Version, file: &str) -> StorePath {
        self.version_path(version).join(file)
    }

    pub(crate) fn label_path(&self, label: &str) -> Result<StorePath, Error> {
        check_name("label", label)?;
        Ok(self.below(LABELS).join(format!("{label}.json")))
    }

    /// Reads a small JSON object; `None` if there is none.
    async fn read<T: DeserializeOwned>(&self, path: &StorePath, name: &str) -> Result<Option<T>, Error> {
        match self.look(path).await? {
            Some(seen) => manifest::parse(name, &seen.bytes).map(Some),
            None => Ok(None),
        }
    }
}

impl fmt::Debug for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Repository({}, {})", self.store, self.prefix)
    }
}

/// Returns the sort key for the order of training: the checkpoints of a later publisher are newer than those of all earlier publishers.
pub(crate) fn age_order(manifest: &Manifest) -> (u64, u64, u64, &Version) {
    (
        manifest.token,
        manifest.draft.step,
        manifest.created_at_ms,
        &manifest.version,
    )
}

/// Returns the time since an object was written; 0 if the store's clock is ahead of this machine's.
pub(crate) fn age(meta: &ObjectMeta) -> Duration {
    let written_at_ms = u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0);
    Duration::from_millis(now_ms().saturating_sub(written_at_ms))
}

/// Computes the SHA-256 of `bytes` on a blocking thread, and returns both.
pub(crate) async fn digest(bytes: Bytes) -> Result<(String, Bytes), Error> {
    tokio::task::spawn_blocking(move || (sha256_hex(&bytes), bytes))
        .await
        .map_err(|error| Error::Io(error.into()))
}
