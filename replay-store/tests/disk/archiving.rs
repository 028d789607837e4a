//! Read errors of the disk while sealed volumes are archived: nothing is left out, and nothing is removed before it is archived.

use std::time::Duration;

use replay_store::{
    exchange::{archive::Reader, archive_store::ArchiveStore},
    log::files::Files as _,
    settings::Settings,
    store::{Store, append::Verdict},
};

use crate::{
    game, opening, runtime, settings,
    simulated::{Fault, Simulated},
};

const GAMES: u64 = 120;

#[test]
fn games_that_cannot_be_read_for_a_while_are_archived_later() {
    let archive = tempfile::tempdir().unwrap();
    let settings = Settings {
        archive: archive.path().to_str().unwrap().into(),
        ..settings()
    };
    let disk = Simulated::default();
    disk.inject(Fault::None);
    let store = Store::open_with(settings.clone(), opening(&disk)).unwrap();
    disk.fail_reads(true);
    let runtime = runtime();
    for number in 0..GAMES {
        assert_eq!(
            runtime.block_on(store.put(&game(number))).unwrap(),
            Verdict::Stored
        );
    }
    while disk.failed_reads() < 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let record = settings.folder.join("archived.json");
    assert!(!disk.exists(&record), "what was left out is not archived");
    assert_eq!(store.stats().unreadable_games, 0);
    let sealed = disk.list(&settings.folder.join("volumes")).unwrap().len() - 1;
    assert!(sealed > 8);
    disk.fail_reads(false);

    let archive_store = ArchiveStore::open(&settings.archive).unwrap();
    let listed = || runtime.block_on(archive_store.list()).unwrap();
    while listed().len() < sealed {
        std::thread::sleep(Duration::from_millis(10));
    }
    store.close().unwrap();
    let mut archived = 0;
    for path in listed() {
        let bytes = runtime.block_on(archive_store.get(&path)).unwrap();
        for found in Reader::new(bytes.as_ref()).unwrap() {
            assert_eq!(found.unwrap(), game(archived), "no game is left out");
            archived += 1;
        }
    }
    assert!(archived > GAMES - 20, "{archived}");
}
