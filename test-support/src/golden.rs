//! Golden folders: files of each release, which every later build reads. They are in `tests/golden/<release>/` of a crate.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Returns the release of this build: the first two numbers of its version.
fn release() -> &'static str {
    let version = env!("CARGO_PKG_VERSION");
    version.rsplit_once('.').map_or(version, |(release, _)| release)
}

/// Returns `part` of the golden folder of this release, e.g. `spool`. `crate_folder` is `CARGO_MANIFEST_DIR`.
pub fn own_golden(crate_folder: &str, part: &str) -> PathBuf {
    let releases = Path::new(crate_folder).join("tests/golden");
    releases.join(release()).join(part)
}

/// Returns [`own_golden`], where nothing is any more, so that it can be written.
pub fn new_golden(crate_folder: &str, part: &str) -> PathBuf {
    let path = own_golden(crate_folder, part);
    let _ = fs::remove_dir_all(&path);
    path
}

/// Returns `part` of the golden folders of all releases that have it.
///
/// # Panics
/// If this release has none.
pub fn all_golden(crate_folder: &str, part: &str) -> Vec<PathBuf> {
    let golden = Path::new(crate_folder).join("tests/golden");
    let releases = fs::read_dir(&golden).expect("the crate has golden folders");
    let parts = releases.map(|release| release.expect("it can be listed").path().join(part));
    let found: Vec<PathBuf> = parts.filter(|path| path.exists()).collect();
    let own = own_golden(crate_folder, part);
    assert!(found.contains(&own), "{} is missing", own.display());
    found
}

/// Copies a folder with everything in it.
///
/// # Panics
/// If the file system fails.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the folder can be listed") {
        let path = entry.expect("the folder can be listed").path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        match path.is_dir() {
            true => copy_folder(&path, &target),
            false => drop(fs::copy(&path, target).expect("a file can be copied")),
        }
    }
}

/// Returns all files of a folder and their contents; folders have none. Files named `lock` are left out.
///
/// # Panics
/// If the file system fails.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            files.append(&mut snapshot(&path));
            files.insert(path, Vec::new());
        } else if path.file_name().is_some_and(|name| name != "lock") {
            let bytes = fs::read(&path).expect("a file can be read");
            files.insert(path, bytes);
        }
    }
    files
}
