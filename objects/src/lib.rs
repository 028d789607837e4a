//! Object stores by address: a folder, the process's memory, or a bucket with S3's interface; and writing of objects of any length.
//!
//! In a folder, a put returns after `fsync` of the file and of its folder, so that the object survives a power loss if the disk writes
//! synced data as it reports. Remote stores give the same guarantee by themselves.
//!
//! A kind of store that the crate `object_store` has needs its feature in `Cargo.toml` and a line in the documentation of the address;
//! [`open`] passes the address and the variables on.
//!
//! ```
//! use object_store::{ObjectStoreExt as _, path::Path};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let opened = objects::open(&folder.path().to_string_lossy(), [])?;
//! let path = Path::from("games/1");
//! objects::write(opened.store.as_ref(), &path, "a game".into(), false).await?;
//! assert_eq!(opened.store.get(&path).await?.bytes().await?, "a game");
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "s3")]
mod s3;

use std::{fs, path::PathBuf, sync::Arc};

use bytes::Bytes;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutResult, WriteMultipart, local::LocalFileSystem,
    path::Path as StorePath,
};
use url::Url;

/// Error: an address cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot open `{location}`: {reason}")]
pub struct LocationError {
    /// Folder or URL as given.
    pub location: String,
    /// Reason.
    pub reason: String,
}

/// An opened store.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// Path in the store below which all objects lie.
    pub prefix: StorePath,
    /// Folder of a store in the file system; `None` for other stores.
    pub folder: Option<PathBuf>,
}

/// Returns the variables of this process's environment, for [`open`]. A variable that is not Unicode is left out, because no option has
/// such a name or value.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Opens `location`: a folder's path (created if missing), `file:///…`, `memory:///` or `s3://bucket/prefix`. An `s3://`
/// location needs the feature `s3`, and takes credentials, region and endpoint from those of `variables` that begin with AWS_.
///
/// No request is sent to a remote store yet.
///
/// # Errors
/// [`LocationError`] with the reason.
///
/// ```
/// assert!(objects::open("memory:///", []).is_ok());
/// let error = objects::open("ftp://host/models", []).unwrap_err();
/// assert_eq!(error.location, "ftp://host/models");
/// ```
pub fn open(
    location: &str,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Opened, LocationError> {
    let fault = |reason: String| LocationError {
        location: location.to_owned(),
        reason,
    };
    if !location.contains("://") {
        return open_folder(PathBuf::from(location)).map_err(fault);
    }
    let url = Url::parse(location).map_err(|error| fault(error.to_string()))?;
    let found = match url.scheme() {
        "file" => {
            let folder = url
                .to_file_path()
                .map_err(|()| fault("a file URL has the form file:///absolute/path".into()))?;
            return open_folder(folder).map_err(fault);
        }
        "s3" | "s3a" => open_s3(&url, variables),
        // Every other kind that `object_store` was built with.
        _ => match object_store::parse_url_opts(&url, variables) {
            Ok((store, prefix)) => Ok((store.into(), prefix)),
            Err(error) => Err(format!("{error}; expected a folder, file://, memory:// or s3://")),
        },
    };
    let (store, prefix) = found.map_err(fault)?;
    Ok(Opened {
        store,
        prefix,
        folder: None,
    })
}

#[cfg(feature = "s3")]
use crate::s3::open as open_s3;

#[cfg(not(feature = "s3"))]
fn open_s3(
    _: &Url,
    _: impl IntoIterator<Item = (String, String)>,
) -> Result<(Arc<dyn ObjectStore>, StorePath), String> {
    Err("this program was built without S3 support; build it with `make build FEATURES=s3` (cargo: --features s3)".into())
}

fn open_folder(folder: PathBuf) -> Result<Opened, String> {
    if folder.as_os_str().is_empty() {
        return Err("the path is empty".into());
    }
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let store = LocalFileSystem::new_with_prefix(&folder)
        .map_err(|error| error.to_string())?
        .with_fsync(true);
    Ok(Opened {
        store: Arc::new(store),
        prefix: StorePath::default(),
        folder: Some(folder),
    })
}

/// Length in bytes from which an object should travel in parts.
pub const MULTIPART_BYTES: usize = 32 << 20;
/// Length of every part but the last, in bytes. S3 demands at least 5 MiB, and accepts 10,000 parts.
pub const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 4;

/// Writes an object and replaces an existing one, by one request or in parts. A reader sees the old object or the whole new
/// one.
///
/// # Errors
/// The store's error; the old object is unchanged then.
pub async fn write(
    store: &dyn ObjectStore,
    path: &StorePath,
    bytes: Bytes,
    in_parts: bool,
) -> Result<PutResult, Error> {
    if !in_parts {
        return store.put(path, bytes.into()).await;
    }
    let upload = store.put_multipart(path).await?;
    let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
    for part in 0..bytes.len().div_ceil(PART_BYTES) {
        if let Err(error) = upload.wait_for_capacity(PARTS_AT_ONCE).await {
            // Parts of a failed upload take space in the store until its rules remove them.
            let _ = upload.abort().await;
            return Err(error);
        }
        let begin = part * PART_BYTES;
        upload.put(bytes.slice(begin..(begin + PART_BYTES).min(bytes.len())));
    }
    upload.finish().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(location: &str) -> Result<Opened, LocationError> {
        super::open(location, [])
    }

    #[test]
    fn folders_and_file_urls_open() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b c");
        let by_path = open(folder.to_str().unwrap()).unwrap();
        assert_eq!(by_path.folder.as_deref(), Some(folder.as_path()));
        let url = Url::from_file_path(&folder).unwrap();
        assert_eq!(open(url.as_str()).unwrap().folder, Some(folder));
        assert!(open("memory:///").is_ok());
        assert_eq!(
            open("s3://bucket/x").is_ok(),
            cfg!(feature = "s3"),
            "no request is sent to the store yet"
        );
    }

    #[test]
    fn a_location_that_cannot_be_opened_is_named_with_a_reason() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "x").unwrap();
        for location in [
            "",
            "ftp://host/x",
            "file://host/x",
            "s3://bucket/x?key=1",
            "s3:///x",
            file.to_str().unwrap(),
        ] {
            let refused = open(location).unwrap_err();
            assert_eq!(refused.location, location);
            assert!(!refused.reason.is_empty(), "{location}");
        }
    }
}
