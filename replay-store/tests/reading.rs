//! Tests of reading: a store that is open for reading changes nothing and reports damage, and a running store reports the number of games
//! that an export leaves out.

use proto::v1::{DeleteGamesRequest, ExportRequest, Game, GameSort, SampleRequest, StatsRequest};
use replay_store::{
    client::PrivateStore,
    error::OpenError,
    record::filter::Filter,
    settings::Settings,
    store::{GetError, IndexUse, Listing, Opening, SampleError, Store},
};
use tonic::Code;

use crate::common::{
    Served, append, close, damage_first_game, export, id, logs, only, open, put_all, settings, snapshot,
    synthetic,
};

const GAMES: u64 = 20;

/// Creates and closes a store with several volumes. Returns its games.
async fn filled(settings: &Settings) -> Vec<Game> {
    let games: Vec<Game> = (0..GAMES).map(|number| synthetic::game(number, 20)).collect();
    let store = open(settings);
    put_all(&store, &games).await;
    close(store);
    games
}

/// Damages the first game of the oldest volume, in a store that may be open.
fn damage(settings: &Settings) {
    damage_first_game(&logs(settings)[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_a_damaged_store_reports_the_damage_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1_000);
    let games = filled(&settings).await;
    damage(&settings);
    let before = snapshot(&settings.folder);

    for _ in 0..2 {
        let store = Store::open_to_read(settings.clone()).unwrap();
        let found = store.damage().clone();
        assert_eq!(found.losses.len(), 1);
        assert_eq!(found.to_string(), "1 acknowledged game cannot be read");
        let lost = found.losses[0].id.unwrap();
        for game in &games {
            match store.get(&id(game)) {
                Ok(found) => assert_eq!(&found, game),
                Err(error) => assert_eq!((error, id(game)), (GetError::Unknown, lost)),
            }
        }
        let exported = store.export((0, u64::MAX), 100, &Filter::default()).unwrap();
        assert_eq!((exported.games.len() as u64, exported.unreadable), (GAMES - 1, 0));
        let listing = Listing {
            sort: GameSort::Time,
            descending: true,
            limit: 100,
            after: None,
        };
        let page = store.page(&listing, &Filter::default());
        assert_eq!(page.games.len() as u64, GAMES - 1);
        let stats = store.stats();
        assert_eq!((stats.games, stats.unreadable_games), (GAMES - 1, 1));
        assert!(store.put(&synthetic::game(99, 20)).await.is_err());

        // Several processes may read at the same time, and none may write in the meantime.
        let second = Store::open_to_read(settings.clone()).unwrap();
        let error = Store::open(settings.clone()).unwrap_err();
        assert!(matches!(error, OpenError::InUse { .. }), "{error}");
        close(second);
        close(store);
    }
    assert_eq!(snapshot(&settings.folder), before);

    // A command that opens the store with `repairs: false` does not repair it either.
    let without_index = |repairs| Opening {
        repairs,
        index: IndexUse::Anew,
        ..Opening::of(&settings.folder)
    };
    let contents = || {
        let mut files = snapshot(&settings.folder);
        files.retain(|path, _| !path.starts_with(settings.folder.join("index")));
        files
    };
    let before = contents();
    let error = Store::open_with(settings.clone(), without_index(false)).unwrap_err();
    assert!(matches!(error, OpenError::Damaged(_)), "{error}");
    assert_eq!(contents(), before);
    let repaired = Store::open_with(settings.clone(), without_index(true)).unwrap();
    assert_eq!(repaired.losses().len(), 1);
    close(repaired);
    let store = Store::open_to_read(settings.clone()).unwrap();
    assert!(store.damage().is_none());
    assert_eq!(
        (store.stats().unreadable_games, store.stats().damaged_games),
        (0, 1)
    );
    close(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_open_for_reading_refuses_changes() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1_000);
    let games = filled(&settings).await;
    let store = Store::open_to_read(settings.clone()).unwrap();
    let private = PrivateStore::serve(store).await.unwrap();
    let mut client = private.client();
    let stats = client.stats(StatsRequest::default()).await.unwrap().into_inner();
    assert_eq!(stats.games, GAMES);
    assert!(!settings.folder.join("address").exists());
    let code = |status: tonic::Status| status.code();
    let stream = tokio_stream::iter(games.clone());
    assert_eq!(
        client.append(stream).await.map_err(code).err(),
        Some(Code::FailedPrecondition)
    );
    let sample = SampleRequest {
        batch_size: 5,
        batches: 1,
        ..SampleRequest::default()
    };
    assert_eq!(
        client.sample(sample).await.map_err(code).err(),
        Some(Code::FailedPrecondition)
    );
    let mut delete = DeleteGamesRequest {
        filter: only(&games[0]),
        dry_run: false,
    };
    let deleted = client.delete_games(delete.clone()).await;
    assert_eq!(deleted.map_err(code).err(), Some(Code::FailedPrecondition));
    delete.dry_run = true;
    assert_eq!(client.delete_games(delete).await.unwrap().into_inner().games, 1);
    drop(client);
    private.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_a_running_store_ends_with_the_number_of_unreadable_games() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1_000);
    let served = Served::start(settings.clone()).await;
    let mut client = served.client();
    let games: Vec<Game> = (0..GAMES).map(|number| synthetic::game(number, 20)).collect();
    append(&mut client, games).await;
    for expected in [0, 1] {
        let (mut games, mut unreadable) = (0, 0);
        for stored in export(&mut client, ExportRequest::default()).await {
            assert_eq!(unreadable, 0, "the number ends the stream");
            games += u64::from(stored.game.is_some());
            unreadable += stored.unreadable;
            assert!(stored.game.is_none() || stored.unreadable == 0);
        }
        assert_eq!((games, unreadable), (GAMES - expected, expected));
        if expected == 0 {
            damage(&settings);
        }
    }
    let stats = client.stats(StatsRequest::default()).await.unwrap().into_inner();
    assert_eq!((stats.unreadable_games, stats.damaged_games), (1, 1));
    drop(client);
    served.stop().await;
}

/// A list by sequence needs no index, so it is often the first access that reads a damaged game.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_a_running_store_reports_a_game_that_it_cannot_read() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1_000);
    let store = open(&settings);
    let games: Vec<Game> = (0..GAMES).map(|number| synthetic::game(number, 20)).collect();
    put_all(&store, &games).await;
    damage(&settings);
    assert_eq!(store.stats().unreadable_games, 0);
    let listed = store.list(0, 100, false, &Filter::default());
    assert_eq!(listed.len() as u64, GAMES - 1);
    assert_eq!(store.stats().unreadable_games, 1);
    close(store);
    // The index does not hide the loss from the next opening, which scans the volume.
    let opened = open(&settings);
    assert_eq!(opened.losses().len(), 1);
    close(opened);
}

#[test]
fn games_that_are_read_while_the_store_closes_are_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&settings(folder.path(), 1000));
    let game = synthetic::game(1, 20);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(store.put(&game)).unwrap();
    store.close().unwrap();
    let id = game.id.as_ref().try_into().unwrap();
    assert!(matches!(store.get(&id), Err(GetError::Damaged { .. })));
    assert!(matches!(store.batch(1, 0, 8), Err(SampleError::Failed(_))));
    assert_eq!(store.stats().damaged_games, 0);
}
