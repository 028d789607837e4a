//! The gRPC service: replies, refusals and the ends of streams for each call.

use std::collections::BTreeMap;

use crate::common::{
    Served, append, export, games, is_stored, list, only, sample, settings, stats, synthetic,
};
use proto::{
    decisions::Decision,
    v1::{
        Batch, DeleteGamesRequest, ExportRequest, Game, GameFilter, GetGameRequest, KnownGamesRequest,
        ListGamesRequest, Purpose, SampleRequest, StatsRequest, replay_store_client::ReplayStoreClient,
    },
};
use replay_store::window::held_out::HeldOut;
use replay_store::{settings::Settings, window::uses_bound::Bounds};
use tokio_stream::{iter, wrappers::ReceiverStream};
use tonic::{Code, transport::Endpoint};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

fn request(batch_size: u32, batches: u32, seed: u64) -> SampleRequest {
    SampleRequest {
        batch_size,
        batches,
        seed,
        ..SampleRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn games_are_stored_once_and_read_unchanged() {
    let (_folder, served, mut client) = Served::new(100_000).await;
    let games = games(40);
    let acks = append(&mut client, games.clone()).await;
    assert!(acks.iter().all(is_stored));
    let mut ids: Vec<_> = acks.iter().map(|ack| ack.id.clone()).collect();
    ids.sort();
    let mut expected: Vec<_> = games.iter().map(|game| game.id.clone()).collect();
    expected.sort();
    assert_eq!(ids, expected);

    // Games that are sent again, or twice in one stream, are duplicates.
    let again = append(&mut client, [&games[..5], &games[..5]].concat()).await;
    assert!(again.iter().all(|ack| ack.duplicate && ack.refused.is_empty()));
    let new = synthetic::game(1000, 25);
    let twice = append(&mut client, vec![new.clone(), new.clone()]).await;
    assert_eq!(twice.iter().filter(|ack| ack.duplicate).count(), 1);

    let numbers = stats(&mut client).await;
    let positions: usize = games.iter().map(|game| game.actions.len()).sum::<usize>() + 25;
    assert_eq!(numbers.games, 41);
    assert_eq!(numbers.games_inserted, 41);
    assert_eq!(numbers.positions_inserted, positions as u64);
    assert_eq!(numbers.window_positions, positions as u64);
    assert_eq!(numbers.duplicates, 11);
    assert_eq!((numbers.oldest_sequence, numbers.newest_sequence), (1, 41));
    assert!(numbers.stored_bytes > 0 && numbers.disk_bytes >= numbers.stored_bytes);

    for game in &games {
        let request = GetGameRequest { id: game.id.clone() };
        assert_eq!(&client.get_game(request).await.unwrap().into_inner(), game);
    }
    let unknown = GetGameRequest {
        id: vec![9; 16].into(),
    };
    assert_eq!(client.get_game(unknown).await.unwrap_err().code(), Code::NotFound);
    let malformed = GetGameRequest {
        id: vec![9; 3].into(),
    };
    assert_eq!(
        client.get_game(malformed).await.unwrap_err().code(),
        Code::InvalidArgument
    );

    let part = ExportRequest {
        from_sequence: 3,
        to_sequence: 39,
        ..ExportRequest::default()
    };
    let exported = export(&mut client, part).await;
    assert!(exported.iter().map(|stored| stored.sequence).eq(3..=39));
    for stored in exported {
        assert!(games.contains(&stored.game.unwrap()));
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn held_out_games_are_drawn_for_validation_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path(), 100_000);
    let measuring = |purpose: Purpose| SampleRequest {
        purpose: purpose.into(),
        ..request(64, 20, 1)
    };
    let games = games(60);
    for share in [0.0, 0.25, 0.25] {
        settings.held_out = HeldOut::new(share);
        let served = Served::start(settings.clone()).await;
        let mut client = served.client();
        if share == 0.0 {
            let batches = sample(&mut client, measuring(Purpose::HeldOut)).await;
            assert!(batches.is_empty(), "nothing is held out");
            served.stop().await;
            continue;
        }
        // The second time all of them are duplicates.
        append(&mut client, games.clone()).await;
        let is_held = |game: &Game| settings.held_out.contains(&game.id.as_ref().try_into().unwrap());
        let count = |held| -> u64 {
            let games = games.iter().filter(|game| is_held(game) == held);
            games.map(|game| game.actions.len() as u64).sum()
        };
        assert!(count(true) > 0);
        let before = stats(&mut client).await;
        assert_eq!((before.games, before.window_positions), (60, count(false)));
        assert_eq!(
            (before.positions_inserted, before.held_out_positions),
            (count(false), count(true))
        );
        let mut held = BTreeMap::new();
        for game in &games {
            let request = ListGamesRequest {
                limit: 1,
                filter: only(game),
                ..ListGamesRequest::default()
            };
            let listed = list(&mut client, request).await;
            held.insert(listed[0].sequence, is_held(game));
        }
        let asked = [
            (Purpose::Training, false),
            (Purpose::HeldOut, true),
            (Purpose::Trained, false),
        ];
        for (purpose, expected) in asked {
            let batches = sample(&mut client, measuring(purpose)).await;
            assert_eq!(batches.len(), 20);
            for batch in &batches {
                assert_eq!(batch.positions, 64);
                assert!(
                    batch
                        .game_sequences
                        .iter()
                        .all(|sequence| held[sequence] == expected)
                );
            }
        }
        let sampled = stats(&mut client).await.positions_sampled - before.positions_sampled;
        assert_eq!(sampled, 20 * 64, "what a network is measured by is not counted");
        served.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged_in_both_directions() {
    let (_folder, served, mut client) = Served::new(100_000).await;
    let games = games(10);
    append(&mut client, games.clone()).await;
    for newest_first in [false, true] {
        let mut after_sequence = 0;
        let mut seen = Vec::new();
        loop {
            let request = ListGamesRequest {
                after_sequence,
                limit: 4,
                newest_first,
                filter: None,
                ..ListGamesRequest::default()
            };
            let page = list(&mut client, request).await;
            let Some(last) = page.last() else { break };
            after_sequence = last.sequence;
            for summary in &page {
                let game = games.iter().find(|game| game.id == summary.id).unwrap();
                assert_eq!(summary.positions as usize, game.actions.len());
                assert_eq!(summary.result, game.result);
                assert_eq!(summary.ending, game.ending);
                assert_eq!(summary.actor, game.actor);
                assert_eq!(summary.model_versions, game.model_versions);
                assert_eq!(summary.finished_at_ms, game.finished_at_ms);
            }
            seen.extend(page.into_iter().map(|summary| summary.sequence));
        }
        let mut expected: Vec<u64> = (1..=10).collect();
        if newest_first {
            expected.reverse();
        }
        assert_eq!(seen, expected);
    }
    let unbounded = ListGamesRequest::default();
    assert_eq!(
        client.list_games(unbounded).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_the_field_and_other_games_are_stored() {
    let (_folder, served, mut client) = Served::new(100_000).await;
    // In earlier builds, the first game fixed the row length of the store, even if it was refused.
    let mut bad = synthetic::game(100, 10);
    bad.rows = vec![4_000_000_000; 10 * 7];
    let acks = append(&mut client, vec![bad]).await;
    assert!(
        !acks[0].retry && acks[0].refused.starts_with("rows: "),
        "{acks:?}"
    );
    let mut sent = games(6);
    sent[1].root_values[3] = f32::NAN;
    sent[2].game = "chess".into();
    sent[3].id = vec![1, 2, 3].into();
    sent[4].rows.pop();
    let acks: BTreeMap<_, _> = append(&mut client, sent.clone())
        .await
        .into_iter()
        .map(|ack| (ack.id.clone(), ack))
        .collect();
    for (game, field) in sent.iter().zip(["", "root_values", "game", "id", "rows", ""]) {
        let ack = &acks[&game.id];
        assert!(!ack.retry && ack.refused.starts_with(field), "{ack:?}");
        assert_eq!(ack.refused.is_empty(), field.is_empty());
    }
    let mut short = synthetic::game(70, 20);
    short.rows.truncate(20 * 37);
    let acks = append(&mut client, vec![short]).await;
    assert_eq!(
        acks[0].refused,
        "rows: 740 values, 20 rows of 38 values are expected"
    );
    assert_eq!(stats(&mut client).await.games, 2);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_contain_positions_of_the_games_and_depend_only_on_the_seed() {
    let (_folder, served, mut client) = Served::new(100_000).await;
    let mut games = games(12);
    for game in games.iter_mut().step_by(2) {
        *game = synthetic::with_decisions(game.clone());
    }
    // One stream, so that the games are numbered in this order.
    for game in &games {
        append(&mut client, vec![game.clone()]).await;
    }
    let mut draw = async |request| sample(&mut client, request).await;
    let batches = draw(request(50, 6, 7)).await;
    assert_eq!(
        batches.iter().map(|batch| batch.number).collect::<Vec<_>>(),
        (0..6).collect::<Vec<_>>()
    );
    let later = SampleRequest {
        first_batch: 4,
        ..request(50, 2, 7)
    };
    assert_eq!(draw(later).await[..], batches[4..]);
    assert_ne!(draw(request(50, 1, 8)).await[0].rows, batches[0].rows);
    for batch in &batches {
        check(batch, &games);
    }
    assert_eq!(batches[0].positions_inserted, batches[0].window_positions);

    let searched = SampleRequest {
        decisions: true,
        ..request(50, 6, 7)
    };
    for (plain, more) in batches.iter().zip(draw(searched).await) {
        check_decisions(&more, &games);
        let without = Batch {
            decisions: None,
            ..more
        };
        assert_eq!(without, *plain);
    }

    let numbers = stats(&mut client).await;
    assert_eq!(numbers.positions_sampled, 50 * (6 + 6 + 2 + 1));
    for bad in [request(0, 1, 1), request(100_000, 1, 1), request(5, 0, 1)] {
        assert_eq!(
            client.sample(bad).await.unwrap_err().code(),
            Code::InvalidArgument
        );
    }
    let never = SampleRequest {
        min_positions: 100_001,
        ..request(5, 1, 1)
    };
    assert_eq!(
        client.sample(never).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    served.stop().await;
}

/// Checks that each position equals the one at its sequence number and ply. Game n has sequence number n + 1.
fn check(batch: &Batch, games: &[Game]) {
    let (mut row_at, mut visit_at) = (0, 0);
    assert_eq!(batch.game_sequences.len(), batch.positions as usize);
    for at in 0..batch.positions as usize {
        let game = &games[batch.game_sequences[at] as usize - 1];
        let ply = batch.plies[at] as usize;
        assert_eq!(batch.rows[row_at..row_at + 38], game.rows[ply * 38..][..38]);
        row_at += 38;
        let before: u32 = game.visit_counts[..ply].iter().sum();
        let count = game.visit_counts[ply] as usize;
        assert_eq!(batch.visit_counts[at] as usize, count);
        assert_eq!(
            batch.visit_actions[visit_at..visit_at + count],
            game.visit_actions[before as usize..][..count]
        );
        assert_eq!(
            batch.visits[visit_at..visit_at + count],
            game.visits[before as usize..][..count]
        );
        visit_at += count;
        // The games were cut off, so that they have no other result.
        assert_eq!(batch.results[at], game.root_values[ply]);
        assert_eq!(batch.root_values[at], game.root_values[ply]);
    }
    assert_eq!((batch.rows.len(), batch.visits.len()), (row_at, visit_at));
    assert_eq!((batch.game.as_str(), batch.options), ("paco-sako", 1));
}

/// Checks the search results of a batch. Every other game is one of an earlier release, which has no search results.
fn check_decisions(batch: &Batch, games: &[Game]) {
    let mut visit_at = 0;
    assert_eq!(batch.decision_columns().unwrap().len(), batch.positions as usize);
    for (at, found) in batch.decision_columns().unwrap().enumerate() {
        let game = &games[batch.game_sequences[at] as usize - 1];
        let ply = batch.plies[at] as usize;
        match game.decision_columns().unwrap() {
            Some(mut recorded) => {
                let expected = recorded.nth(ply).unwrap();
                assert_eq!(
                    found,
                    Decision {
                        played: None,
                        ..expected
                    }
                );
            }
            None => assert!(!found.is_recorded() && found.unvisited.is_empty()),
        }
        visit_at += batch.visit_counts[at] as usize;
    }
    assert_eq!(batch.visits.len(), visit_at);
}

#[tokio::test(flavor = "multi_thread")]
async fn sampling_waits_for_enough_positions() {
    let (_folder, served, mut client) = Served::new(1_000).await;
    append(&mut client, vec![synthetic::game(1, 99)]).await;
    let request = SampleRequest {
        min_positions: 100,
        ..request(10, 1, 1)
    };
    let mut given_up = client.sample(request).await.unwrap().into_inner();
    let mut waiting = client.sample(request).await.unwrap().into_inner();
    // A call that a client cancels does not affect the store.
    let limit = std::time::Duration::from_millis(100);
    assert!(tokio::time::timeout(limit, given_up.message()).await.is_err());
    drop(given_up);
    append(&mut client, vec![synthetic::game(2, 1)]).await;
    let batch = waiting.message().await.unwrap().unwrap();
    assert_eq!((batch.positions, batch.window_positions), (10, 100));
    assert!(waiting.message().await.unwrap().is_none());
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_all_streams_and_loses_no_acknowledged_game() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1_000);
    let served = Served::start(settings.clone()).await;
    let mut client = served.client();
    let request = SampleRequest {
        min_positions: 1_000,
        ..request(10, 1, 1)
    };
    let mut sampling = client.sample(request).await.unwrap().into_inner();
    let (sender, games) = tokio::sync::mpsc::channel(4);
    let mut acks = client
        .append(ReceiverStream::new(games))
        .await
        .unwrap()
        .into_inner();
    sender.send(synthetic::game(1, 30)).await.unwrap();
    assert!(is_stored(&acks.message().await.unwrap().unwrap()));
    served.shutdown.cancel();
    assert_eq!(acks.message().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(sampling.message().await.unwrap_err().code(), Code::Unavailable);
    served.ended.await.unwrap().unwrap();

    let served = Served::start(settings).await;
    assert_eq!(stats(&mut served.client()).await.games, 1);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_served_and_long_messages_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(settings(folder.path(), 1_000)).await;
    let channel = service::connect::channel(&served.address.to_string()).unwrap();
    let mut health = HealthClient::new(channel.clone());
    for service in ["", "minuet.v1.ReplayStore"] {
        let request = HealthCheckRequest {
            service: service.into(),
        };
        let status = health.check(request).await.unwrap().into_inner().status();
        assert_eq!(
            status,
            tonic_health::pb::health_check_response::ServingStatus::Serving
        );
    }
    // A message beyond the limit ends its own stream only.
    let mut client = ReplayStoreClient::new(channel);
    let huge = Game {
        rules_json: "x".repeat(17 << 20),
        ..synthetic::game(1, 5)
    };
    let mut acks = client.append(iter([huge])).await.unwrap().into_inner();
    assert!(acks.message().await.is_err() || acks.message().await.unwrap().is_none());
    assert!(is_stored(
        &append(&mut client, vec![synthetic::game(2, 5)]).await[0]
    ));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_many_empty_ids_are_refused_before_they_are_unpacked() {
    let (_folder, served, mut client) = Served::new(100_000).await;
    // An empty id takes two bytes on the wire and 32 in memory.
    let empty = |count| vec![Vec::new().into(); count];
    let cases = [
        (8_400_000, Code::OutOfRange, "at most"),
        (1_000_000, Code::InvalidArgument, "unpacked"),
    ];
    for (count, code, reason) in cases {
        let ids = empty(count);
        let known = client.known_games(KnownGamesRequest { ids: ids.clone() }).await;
        let filter = Some(GameFilter {
            ids,
            ..GameFilter::default()
        });
        let listed = client
            .list_games(ListGamesRequest {
                limit: 1,
                filter: filter.clone(),
                ..ListGamesRequest::default()
            })
            .await;
        let deleted = client
            .delete_games(DeleteGamesRequest {
                filter,
                dry_run: true,
            })
            .await;
        for refused in [known.map(drop), listed.map(drop), deleted.map(drop)] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code(), code, "{refused:?}");
            assert!(refused.message().contains(reason), "{refused:?}");
        }
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_games_cannot_be_read_or_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 100_000);
    let served = Served::start(settings.clone()).await;
    let mut client = served.client();
    let mut games = games(60);
    for (number, game) in games.iter_mut().enumerate() {
        game.actor = format!("actor-{}", number % 3);
        if number % 10 == 0 {
            game.model_versions[1] = "000000000777-00000000".into();
        }
    }
    for group in games.chunks(7) {
        append(&mut client, group.to_vec()).await;
    }
    let before = stats(&mut client).await;
    let bad = |game: &Game| game.model_versions[1].starts_with("000000000777") && game.actor == "actor-1";
    let filter = GameFilter {
        model_versions: vec!["000000000777-00000000".into()],
        actors: vec!["actor-1".into()],
        ..GameFilter::default()
    };
    let delete = |filter: Option<GameFilter>, dry_run| DeleteGamesRequest { filter, dry_run };
    for everything in [None, Some(GameFilter::default())] {
        let error = client.delete_games(delete(everything, false)).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
    let dry = client
        .delete_games(delete(Some(filter.clone()), true))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(stats(&mut client).await.games, before.games);
    let deleted = client
        .delete_games(delete(Some(filter.clone()), false))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(deleted, dry);
    let gone: Vec<&Game> = games.iter().filter(|game| bad(game)).collect();
    assert!(!gone.is_empty() && deleted.games == gone.len() as u64);
    let positions: usize = gone.iter().map(|game| game.actions.len()).sum();
    assert_eq!(deleted.positions, positions as u64);
    served.stop().await;

    // A deleted game does not return after a restart or when its actor sends it again.
    let served = Served::start(settings).await;
    let mut client = served.client();
    let after = stats(&mut client).await;
    assert_eq!(after.games, before.games - deleted.games);
    assert_eq!(
        after.window_positions,
        before.window_positions - deleted.positions
    );
    assert_eq!(
        (after.games_inserted, after.damaged_games),
        (before.games_inserted, 0)
    );
    for game in gone {
        let request = GetGameRequest { id: game.id.clone() };
        assert_eq!(client.get_game(request).await.unwrap_err().code(), Code::NotFound);
        assert!(append(&mut client, vec![game.clone()]).await[0].duplicate);
    }
    let newest = |filter| ListGamesRequest {
        limit: 1000,
        newest_first: true,
        filter,
        ..ListGamesRequest::default()
    };
    assert_eq!(list(&mut client, newest(Some(filter))).await, []);
    let listed = list(&mut client, newest(only(&games[2]))).await;
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].id, listed[0].build.as_str()), (&games[2].id, "0.1.0"));
    assert_eq!(sample(&mut client, request(500, 1, 1)).await[0].positions, 500);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn known_games_include_deleted_games() {
    let (_folder, served, mut client) = Served::new(100_000).await;
    let games = games(12);
    append(&mut client, games[..10].to_vec()).await;
    let delete = DeleteGamesRequest {
        filter: only(&games[3]),
        dry_run: false,
    };
    client.delete_games(delete).await.unwrap();
    // The reply has the known ids in the order of the request.
    let ids = |numbers: &[usize]| -> Vec<_> {
        let numbers = numbers.iter();
        numbers.map(|&number| games[number].id.clone()).collect()
    };
    let request = KnownGamesRequest {
        ids: ids(&[11, 3, 9, 0, 10]),
    };
    let known = client.known_games(request).await.unwrap().into_inner().ids;
    assert_eq!(known, ids(&[3, 9, 0]));
    for (ids, says) in [
        (vec![vec![1; 15].into()], "15 bytes, 16 expected"),
        (vec![games[0].id.clone(); 65_537], "at most 65536"),
    ] {
        let refused = client.known_games(KnownGamesRequest { ids }).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains(says), "{refused}");
    }
    served.stop().await;
}

/// Games are sent back while the learner is behind. Then a client reports that it waits for positions, and the store accepts games
/// regardless of `min_uses`.
#[tokio::test(flavor = "multi_thread")]
async fn games_are_accepted_while_a_client_awaits_positions() {
    let page = metrics_exporter_prometheus::PrometheusBuilder::new()
        .install_recorder()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        bounds: Bounds {
            min_uses: 1.0,
            max_uses: 0.0,
            slack: 30,
        },
        ..settings(folder.path(), 100_000)
    };
    let served = Served::start(settings).await;
    let mut client = served.client();
    let games = games(20);
    // No position is sampled, so these games exceed the slack.
    append(&mut client, games[..3].to_vec()).await;
    let held = append(&mut client, games[3..4].to_vec()).await;
    assert!(
        held[0].retry && held[0].refused.contains("the learner is behind"),
        "{held:?}"
    );
    // A game that is held back is not a refusal, which would cause an alert.
    let page = page.render();
    assert!(page.contains("minuet_replay_games_held_total 1\n"), "{page}");
    assert!(!page.contains("reason=\"held\""), "{page}");
    let waiting = tokio::spawn({
        let mut client = served.client();
        async move {
            loop {
                let request = StatsRequest {
                    awaits_positions: true,
                };
                client.stats(request).await.unwrap();
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    });
    let acks = append(&mut client, games).await;
    assert!(acks.iter().all(|ack| ack.refused.is_empty()), "{acks:?}");
    waiting.abort();
    served.stop().await;
}

/// A client whose window is closed reads no reply, and may have only so many open.
#[tokio::test(flavor = "multi_thread")]
async fn streams_that_nobody_reads_are_limited_and_hold_up_no_other_client() {
    let (_folder, served, mut client) = Served::new(100_000).await;
    append(&mut client, games(40)).await;
    let endpoint = Endpoint::new(format!("http://{}", served.address)).unwrap();
    let narrow = endpoint.initial_stream_window_size(1).connect().await.unwrap();
    let mut unread = ReplayStoreClient::new(narrow);
    let mut streams = Vec::new();
    let refused = loop {
        let opened = match streams.len() % 2 {
            0 => unread.sample(request(4096, 1000, 1)).await.map(kept),
            _ => unread.export(ExportRequest::default()).await.map(kept),
        };
        match opened {
            Ok(stream) => streams.push(stream),
            Err(status) => break status,
        }
    };
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(streams.len(), 32);
    let batches = sample(&mut client, request(64, 20, 2)).await;
    assert_eq!(batches.len(), 20);
    assert_eq!(export(&mut client, ExportRequest::default()).await.len(), 40);
    stats(&mut client).await;
    drop(streams);
    served.stop().await;
}

/// Keeps a stream open without its type.
fn kept<T: Send + 'static>(reply: tonic::Response<T>) -> Box<dyn std::any::Any + Send> {
    Box::new(reply.into_inner())
}
