//! A learner's folder: one process, one name.

use std::fs;

use learner::tenure::{Folder, FolderError};

const LOCK: &str = "learner.lock";

#[test]
fn a_folder_has_one_learner_and_keeps_its_name() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("learner");
    let first = Folder::take(&folder).unwrap();
    let name = first.holder().to_owned();
    assert!(matches!(Folder::take(&folder), Err(FolderError::Taken(_))));
    drop(first);
    assert_eq!(Folder::take(&folder).unwrap().holder(), name);

    let copy = home.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(folder.join(LOCK), copy.join(LOCK)).unwrap();
    assert_ne!(Folder::take(&copy).unwrap().holder(), name);

    fs::write(folder.join(LOCK), &name[..7]).unwrap();
    let torn = Folder::take(&folder).unwrap();
    assert!(torn.holder().len() > 32 && torn.holder() != name);
}
