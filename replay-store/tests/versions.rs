//! A folder that a newer build wrote is refused and left unchanged.

use std::fs;

use durable::frame;
use replay_store::{error::OpenError, settings::Settings, store::Store};

use crate::common::{close, id, logs, open, put_all, settings, snapshot, synthetic};

/// Opens the store, which must refuse the folder because of the file `named`, and change nothing. The index is not part of the
/// comparison, because it is derived from the log.
fn is_refused(settings: &Settings, named: &str) {
    let contents = || {
        let mut files = snapshot(&settings.folder);
        files.retain(|path, _| !path.starts_with(settings.folder.join("index")));
        files
    };
    let before = contents();
    let error = Store::open(settings.clone()).unwrap_err();
    let OpenError::Newer { path, .. } = &error else {
        panic!("{named}: {error}")
    };
    assert!(path.starts_with(settings.folder.join(named)), "{named}: {error}");
    assert!(error.to_string().contains("a newer one"), "{error}");
    assert_eq!(contents(), before, "{named}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_folder_is_refused_and_left_unchanged() {
    for with_index in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path(), 400);
        let games: Vec<_> = (0..30).map(|number| synthetic::game(number, 10)).collect();
        let store = open(&settings);
        put_all(&store, &games).await;
        store.batch(1, 1, 10).unwrap();
        close(store);
        if !with_index {
            fs::remove_dir_all(settings.folder.join("index")).unwrap();
        }

        let mut newer = Vec::new();
        frame::append(b'Q', &[b"unknown"], &mut newer);
        for (named, file, at_end) in [
            ("ledger", settings.folder.join("ledger"), false),
            ("volumes", logs(&settings).pop().unwrap(), true),
            (
                "drawn",
                settings.folder.join("drawn/0000000000000001.batches"),
                true,
            ),
        ] {
            let whole = fs::read(&file).ok();
            let mut bytes = whole.clone().unwrap_or_default();
            match at_end {
                true => bytes.extend_from_slice(&newer),
                false => bytes[..newer.len()].copy_from_slice(&newer),
            }
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &bytes).unwrap();
            is_refused(&settings, named);
            match whole {
                Some(whole) => fs::write(&file, whole).unwrap(),
                None => fs::remove_dir_all(file.parent().unwrap()).unwrap(),
            }
        }
        let identity = settings.folder.join("store.json");
        let whole = fs::read_to_string(&identity).unwrap();
        fs::write(&identity, whole.replace("\"version\": 1", "\"version\": 2")).unwrap();
        is_refused(&settings, "store.json");
        fs::write(&identity, whole).unwrap();

        let store = open(&settings);
        assert_eq!(store.losses(), []);
        for game in &games {
            assert_eq!(store.get(&id(game)).as_ref(), Ok(game));
        }
        close(store);
    }
}
