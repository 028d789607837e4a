//! Archived volumes: each game is archived once and completely, and no volume is removed before it is archived.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use proto::v1::{DeleteGamesRequest, Game, GameFilter};
use replay_store::{
    exchange::archive::Reader, exchange::archive_store::ArchiveStore, settings::Settings, store::Store,
};

#[cfg(feature = "s3")]
use crate::server;
use crate::{
    common::{Served, append, is_stored, open, settings, synthetic},
    restart::{close, put_all, volumes},
};

/// Maximum time to wait for an expected event, on a slow machine too.
const FOR_EVER: Duration = Duration::from_secs(120);

async fn until(what: impl AsyncFn() -> bool) {
    let waiting = async {
        while !what().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(FOR_EVER, waiting)
        .await
        .expect("it does not come");
}

fn with_archive(folder: &Path, window: u64, archive: &Path) -> Settings {
    Settings {
        archive: archive.to_str().unwrap().into(),
        ..settings(folder, window)
    }
}

fn games(from: u64, to: u64) -> Vec<Game> {
    (from..to)
        .map(|number| synthetic::game(number, 15 + number as usize % 20))
        .collect()
}

/// Returns the games of all archives by id, and checks that none occurs twice.
async fn archived(archive_store: &ArchiveStore) -> BTreeMap<Vec<u8>, Game> {
    let mut found = BTreeMap::new();
    for path in archive_store.list().await.unwrap() {
        let bytes = archive_store.get(&path).await.unwrap();
        for game in Reader::new(bytes.as_ref()).unwrap() {
            let game = game.unwrap();
            let before = found.insert(game.id.to_vec(), game);
            assert!(before.is_none(), "a game is archived twice");
        }
    }
    found
}

/// Returns the number of sealed volumes on the disk that are not archived.
fn behind(folder: &Path) -> usize {
    let markers = fs::read_dir(folder.join("replay/archived")).map_or(0, Iterator::count);
    (volumes(folder) - 1).saturating_sub(markers)
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_archived_before_they_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("archive");
    let settings = with_archive(folder.path(), 2_000, &place);
    let archive_store = ArchiveStore::open(&settings.archive).unwrap();
    let all = games(0, 300);
    let store = open(&settings);
    // Deleted before its volume is sealed, so that it is never archived.
    put_all(&store, &all[..1]).await;
    let (deleted, _) = *store.find(&by_id(&all[0])).first().unwrap();
    store.delete(vec![deleted]).await.unwrap();
    put_all(&store, &all[1..]).await;
    until(async || behind(folder.path()) == 0).await;
    let here = store.list(0, 1000, false, &replay_store::record::filter::Filter::default());
    let kept = archived(&archive_store).await;
    for game in &all {
        let is_deleted = game.id == all[0].id;
        match kept.get(game.id.as_ref()) {
            Some(found) => assert_eq!(found, game),
            None => assert!(is_deleted || here.iter().any(|listed| listed.id == game.id)),
        }
    }
    assert!(!kept.contains_key(all[0].id.as_ref()));
    // Most games have left the window and exist only in the archive.
    assert!(
        kept.len() > 250 && here.len() < 150,
        "{} and {}",
        kept.len(),
        here.len()
    );
    close(store);

    // Archived volumes are not written again when the store is reopened.
    let before = archive_store.list().await.unwrap();
    let first = place.join(before[0].as_ref());
    fs::write(&first, "touched").unwrap();
    let store = open(&settings);
    put_all(&store, &games(300, 400)).await;
    until(async || behind(folder.path()) == 0).await;
    assert_eq!(fs::read(&first).unwrap(), b"touched");
    let after = archive_store.list().await.unwrap();
    assert!(after.len() > before.len() && after.starts_with(&before));
    close(store);

    // A new archive gets all volumes that still exist.
    let other = folder.path().join("other");
    let store = open(&with_archive(folder.path(), 2_000, &other));
    let archive_store = ArchiveStore::open(other.to_str().unwrap()).unwrap();
    let sealed = volumes(folder.path()) - 1;
    until(async || archive_store.list().await.unwrap().len() == sealed).await;
    close(store);
}

fn by_id(game: &Game) -> replay_store::record::filter::Filter {
    let filter = GameFilter {
        ids: vec![game.id.clone()],
        ..GameFilter::default()
    };
    replay_store::record::filter::Filter::new(Some(filter)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_reachable_archive_volumes_stay_and_games_are_refused_when_the_disk_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("archive");
    let settings = Settings {
        max_disk_bytes: 600 << 10,
        ..with_archive(folder.path(), 1_000, &place)
    };
    let served = Served::start(settings.clone()).await;
    // A file replaces the folder, so that writes to the archive fail.
    fs::remove_dir(&place).unwrap();
    fs::write(&place, "in the way").unwrap();
    let mut client = served.client();
    let mut sent = 0;
    let refusal = loop {
        let acks = append(&mut client, games(sent, sent + 20)).await;
        sent += acks.iter().take_while(|ack| is_stored(ack)).count() as u64;
        if let Some(refused) = acks.iter().find(|ack| !is_stored(ack)) {
            break refused.clone();
        }
    };
    assert!(refusal.retry, "{refusal:?}");
    let said = &refusal.refused;
    assert!(
        said.contains("replay.max_disk_mib") && said.contains("archive"),
        "{said}"
    );
    assert!(volumes(folder.path()) > 12, "none was removed");

    // Deleted after its volume was sealed but before it was archived.
    let (gone, next) = (sent - 15, sent - 14);
    let filter = GameFilter {
        ids: vec![games(gone, next)[0].id.clone()],
        ..GameFilter::default()
    };
    let request = DeleteGamesRequest {
        filter: Some(filter),
        dry_run: false,
    };
    let deleted = client.delete_games(request).await.unwrap().into_inner();
    assert_eq!(deleted.games, 1);

    // The archive is reachable again: it gets all other games, retired volumes are removed, and games are accepted.
    fs::remove_file(&place).unwrap();
    until(async || volumes(folder.path()) <= 12).await;
    let archive_store = ArchiveStore::open(&settings.archive).unwrap();
    until(async || {
        let acks = append(&mut served.client(), games(sent, sent + 1)).await;
        is_stored(&acks[0]) || acks[0].duplicate
    })
    .await;
    let is_archived = async |number| {
        let id = games(number, number + 1)[0].id.clone();
        archived(&archive_store).await.contains_key(id.as_ref())
    };
    until(async || is_archived(next).await).await;
    assert!(is_archived(0).await && !is_archived(gone).await);
    served.stop().await;
}

#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_upload_leaves_no_partial_archive() {
    let Some(port) = server::shared() else { return };
    let line = server::Line::to(port).await;
    let archive_store = |port: u16| {
        let url = format!(
            "s3://{}/games?endpoint=http://127.0.0.1:{port}&allow_http=true",
            server::BUCKET
        );
        ArchiveStore::open_with(&url, server::credentials()).unwrap()
    };
    let (cut, straight) = (archive_store(line.port), archive_store(port));
    // Long enough for an upload in parts.
    let bytes: Vec<u8> = (0..40u32 << 18).flat_map(u32::to_le_bytes).collect();
    line.cut_after(20 << 20);
    cut.put("store", 1, 9, bytes.clone().into()).await.unwrap_err();
    assert!(line.is_cut());
    assert_eq!(straight.list().await.unwrap(), []);
    line.mend();
    cut.put("store", 1, 9, bytes.clone().into()).await.unwrap();
    let found = straight.list().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(straight.get(&found[0]).await.unwrap(), bytes);
}

/// A store that is killed after it archived a volume, and before it recorded this, archives the volume again.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_archive_record_causes_a_second_upload_of_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("archive");
    let settings = with_archive(folder.path(), 2_000, &place);
    let archive_store = ArchiveStore::open(&settings.archive).unwrap();
    let store: Store = open(&settings);
    put_all(&store, &games(0, 60)).await;
    until(async || behind(folder.path()) == 0).await;
    close(store);
    let (files, kept) = (
        archive_store.list().await.unwrap(),
        archived(&archive_store).await,
    );
    fs::remove_dir_all(folder.path().join("replay/archived")).unwrap();
    let store = open(&settings);
    until(async || behind(folder.path()) == 0).await;
    close(store);
    assert_eq!(archive_store.list().await.unwrap(), files);
    assert_eq!(archived(&archive_store).await, kept);
}
