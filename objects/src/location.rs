//! From a folder or a URL to an object store.
//!
//! A folder is written with `fsync` of every file and of its folder before a put returns, so that what was put
//! survives a power loss as far as the disk keeps its own promises. Remote stores promise as much by themselves.

use std::{fs, path::PathBuf, sync::Arc};

use object_store::{ObjectStore, local::LocalFileSystem, memory::InMemory, path::Path as StorePath};
use url::Url;

/// An address that means nothing here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot open `{location}`: {reason}")]
pub struct LocationError {
    /// The folder or URL as it was given.
    pub location: String,
    /// What is wrong with it.
    pub reason: String,
}

/// An opened store.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// Everything lies below this.
    pub prefix: StorePath,
    /// The folder, where the store is one.
    pub folder: Option<PathBuf>,
}

/// Opens `location`: a folder's path (made if it is not there), `file://…`, `memory://` or `s3://bucket/prefix`. The last
/// takes credentials, region and endpoint from the AWS_* ones of `variables`, and needs the feature `s3`.
///
/// # Errors
/// [`LocationError`]. Nothing is asked of a remote store yet.
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
    match url.scheme() {
        "file" => {
            let folder = url
                .to_file_path()
                .map_err(|()| fault("a file URL has the form file:///absolute/path".into()))?;
            open_folder(folder).map_err(fault)
        }
        "s3" | "s3a" => {
            let (store, prefix) = open_s3(&url, variables).map_err(fault)?;
            Ok(Opened {
                store,
                prefix,
                folder: None,
            })
        }
        "memory" => Ok(Opened {
            store: Arc::new(InMemory::new()),
            prefix: StorePath::from_url_path(url.path()).map_err(|error| fault(error.to_string()))?,
            folder: None,
        }),
        scheme => Err(fault(format!(
            "`{scheme}` is not known; a folder, file://, memory:// or s3:// is"
        ))),
    }
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
            "nothing is asked of the store yet"
        );
    }

    #[test]
    fn what_cannot_be_opened_says_why() {
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
