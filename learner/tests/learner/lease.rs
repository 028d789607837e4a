//! The learner's folder admits one process at a time and keeps the holder's name.

use std::fs;

use learner::publishing::lease::{FolderError, LearnerFolder};

const LOCK: &str = "learner.lock";

#[test]
fn a_folder_admits_one_learner_and_keeps_its_name() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("learner");
    let first = LearnerFolder::lock(&folder).unwrap();
    let name = first.holder().to_owned();
    assert!(matches!(LearnerFolder::lock(&folder), Err(FolderError::Taken(_))));
    drop(first);
    assert_eq!(LearnerFolder::lock(&folder).unwrap().holder(), name);

    let copy = home.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(folder.join(LOCK), copy.join(LOCK)).unwrap();
    assert_ne!(LearnerFolder::lock(&copy).unwrap().holder(), name);

    fs::write(folder.join(LOCK), &name[..7]).unwrap();
    let torn = LearnerFolder::lock(&folder).unwrap();
    assert!(torn.holder().len() > 32 && torn.holder() != name);
}
