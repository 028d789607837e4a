//! Archived volumes: each game is archived once and completely, and no volume is removed before it is archived.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use proto::v1::{DeleteGamesRequest, Game, GameFilter};
use replay_store::{
    exchange::archive::Reader, exchange::archive_store::ArchiveStore, settings::Settings, store::Store,
    store::append::Verdict,
};

#[cfg(feature = "s3")]
use crate::server;
use crate::{
    common::{Served, append, close, damage_first_game, is_stored, logs, open, put_all, settings, synthetic},
    restart::volumes,
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

/// Returns the first sequence number of the newest volume.
fn newest_volume(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder.join("replay/volumes")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.map(|name| name.parse().unwrap()).max().unwrap()
}

/// Returns the first sequence numbers of the existing volumes that are recorded as archived.
fn recorded(folder: &Path) -> Vec<u64> {
    let text = fs::read(folder.join("replay/archived.json")).unwrap_or_else(|_| b"{}".to_vec());
    let record: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let volumes = record["volumes"].as_array().into_iter().flatten();
    let volumes = volumes.map(|first| first.as_u64().unwrap());
    volumes
        .filter(|first| folder.join(format!("replay/volumes/{first:020}")).exists())
        .collect()
}

/// Returns the number of sealed volumes on the disk that are not archived.
fn behind(folder: &Path) -> usize {
    (volumes(folder) - 1).saturating_sub(recorded(folder).len())
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_archived_before_they_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("archive");
    let settings = with_archive(folder.path(), 2_000, &place);
    let archive_store = ArchiveStore::open(&settings.archive).unwrap();
    let all = games(0, 300);
    let store = open(&settings);
    // The game is deleted before its volume is sealed, so that it is never archived.
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
        max_disk_bytes: 4 << 20,
        ..with_archive(folder.path(), 1_000, &place)
    };
    let served = Served::start(settings.clone()).await;
    // A file replaces the folder, so that writes to the archive fail.
    fs::remove_dir(&place).unwrap();
    fs::write(&place, "in the way").unwrap();
    let mut client = served.client();
    let mut sent = 0;
    let mut stored = Vec::new();
    let refusal = loop {
        let acks = append(&mut client, games(sent, sent + 20)).await;
        sent += 20;
        // A short game may fit after a longer one was refused.
        stored.extend(acks.iter().filter(|ack| is_stored(ack)).map(|ack| ack.id.clone()));
        if let Some(refused) = acks.into_iter().find(|ack| !is_stored(ack)) {
            break refused;
        }
    };
    assert!(refusal.retry, "{refusal:?}");
    let said = &refusal.refused;
    assert!(
        said.contains("replay.max_disk_mib") && said.contains("archive"),
        "{said}"
    );
    assert!(volumes(folder.path()) > 12, "none was removed");

    // The game is the last one before the newest volume. It is deleted after its volume was sealed and before it was archived. The first
    // game has sequence number 1.
    let newest = newest_volume(folder.path()) as usize;
    let (gone, before) = (&stored[newest - 2], &stored[newest - 3]);
    let filter = GameFilter {
        ids: vec![gone.clone()],
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
    let is_archived = async |id: &[u8]| archived(&archive_store).await.contains_key(id);
    until(async || is_archived(before).await).await;
    assert!(is_archived(&stored[0]).await && !is_archived(gone).await);
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
    // The file is long enough for an upload in parts.
    let bytes: Vec<u8> = (0..40u32 << 18).flat_map(u32::to_le_bytes).collect();
    line.cut_after(20 << 20);
    cut.put("store", 1, 9, bytes.clone().into()).await.unwrap_err();
    assert!(line.is_cut());
    assert_eq!(straight.list().await.unwrap(), []);
    line.repair();
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
    fs::remove_file(folder.path().join("replay/archived.json")).unwrap();
    let store = open(&settings);
    until(async || behind(folder.path()) == 0).await;
    close(store);
    assert_eq!(archive_store.list().await.unwrap(), files);
    assert_eq!(archived(&archive_store).await, kept);
}

/// In this test, a game of a sealed volume is damaged before the volume is archived.
#[tokio::test(flavor = "multi_thread")]
async fn a_volume_with_a_damaged_game_stays_until_the_loss_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("archive");
    let settings = with_archive(folder.path(), 1_000, &place);
    let store = open(&settings);
    // A file in the place of the folder makes writes to the archive fail.
    fs::remove_dir(&place).unwrap();
    fs::write(&place, "in the way").unwrap();
    put_all(&store, &games(0, 60)).await;
    let volume = fs::read_dir(settings.folder.join("volumes"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .min()
        .unwrap();
    damage_first_game(&logs(&settings)[0]);
    // A volume that was packed before the damage could otherwise be written now.
    until(async || store.stats().unreadable_games == 1).await;
    fs::remove_file(&place).unwrap();

    // All other volumes are archived, and all games of this one have left the window.
    put_all(&store, &games(60, 150)).await;
    until(async || behind(folder.path()) == 1).await;
    assert!(volume.exists() && !recorded(folder.path()).contains(&1));
    assert_eq!(store.stats().unreadable_games, 1);
    close(store);
    let store = open(&settings);
    assert_eq!(store.losses().len(), 1);
    until(async || !volume.exists()).await;
    close(store);
    let archive_store = ArchiveStore::open(&settings.archive).unwrap();
    let kept = archived(&archive_store).await;
    let missing = games(0, 100)
        .iter()
        .filter(|game| !kept.contains_key(game.id.as_ref()))
        .count();
    assert_eq!(missing, 1);
}

/// A restored backup of a store, or a copy in use, has the archive of the first store.
#[tokio::test(flavor = "multi_thread")]
async fn a_copied_store_replaces_no_archive_of_the_first_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("archive");
    let first = with_archive(&folder.path().join("first"), 2_000, &place);
    let copy = with_archive(&folder.path().join("copy"), 2_000, &place);
    let store = open(&first);
    put_all(&store, &games(0, 5)).await;
    close(store);
    crate::common::copy_folder(&first.folder, &copy.folder);
    // All games have equal lengths, so that volumes have equal sequence numbers.
    let grown = |number: u64| -> Vec<Game> { (0..60).map(|at| synthetic::game(number + at, 20)).collect() };
    for (settings, number, at) in [(&first, 1_000, "first"), (&copy, 2_000, "copy")] {
        let store = open(settings);
        // Games are stored one at a time, so that volumes have equal numbers of games.
        for game in grown(number) {
            assert_eq!(store.put(&game).await.unwrap(), Verdict::Stored);
        }
        until(async || behind(&folder.path().join(at)) == 0).await;
        close(store);
    }
    let archive_store = ArchiveStore::open(place.to_str().unwrap()).unwrap();
    let mut found = std::collections::BTreeSet::new();
    for path in archive_store.list().await.unwrap() {
        let bytes = archive_store.get(&path).await.unwrap();
        found.extend(
            Reader::new(bytes.as_ref())
                .unwrap()
                .map(|game| game.unwrap().id.to_vec()),
        );
    }
    for number in [1_000, 2_000] {
        let sealed = &grown(number)[..40];
        assert!(
            sealed.iter().all(|game| found.contains(game.id.as_ref())),
            "{number}"
        );
    }
}
