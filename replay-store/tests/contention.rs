//! Concurrent streams: each game is stored once and each batch is consistent while the window slides.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::common::{Served, append, is_stored, settings, stats, synthetic};
use proto::v1::{Purpose, SampleRequest};
use tokio_stream::StreamExt as _;

/// Number of leading values of a row that are indices into planes.
const INDICES: usize = 33;

/// Returns a game whose rows all identify it, so that a batch that mixes games is detected.
fn marked(number: u64) -> proto::v1::Game {
    let positions = 10 + number as usize % 30;
    let mut game = synthetic::game(number, positions);
    for (ply, row) in (0u64..).zip(game.rows.chunks_mut(38)) {
        // Every index into the planes is below 1600.
        row[..INDICES].fill(((number * 7919 + ply) % 1600) as u32);
    }
    game
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_appenders_and_four_samplers_get_consistent_results() {
    const APPENDERS: u64 = 8;
    const GAMES: u64 = 150;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path(), 5_000);
    // The cache holds only a part of the window, so that games are read from disk while others are retired.
    settings.cache_bytes = 200_000;
    let served = Served::start(settings).await;
    let is_over = Arc::new(AtomicBool::new(false));

    let appenders: Vec<_> = (0..APPENDERS)
        .map(|appender| {
            let mut client = served.client();
            tokio::spawn(async move {
                let mut stored = 0;
                for part in 0..5 {
                    let mut games: Vec<_> = (0..GAMES / 5)
                        .map(|at| marked(appender * GAMES + part * (GAMES / 5) + at))
                        .collect();
                    // The newest games are sent twice.
                    games.extend_from_within(games.len() - 5..);
                    let acks = append(&mut client, games).await;
                    assert!(acks.iter().all(|ack| ack.refused.is_empty()));
                    stored += acks.iter().filter(|ack| is_stored(ack)).count() as u64;
                }
                stored
            })
        })
        .collect();
    let samplers: Vec<_> = (0..4)
        .map(|seed| {
            let mut client = served.client();
            let is_over = Arc::clone(&is_over);
            tokio::spawn(async move {
                let mut batches = 0;
                let mut first_batch = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let request = SampleRequest {
                        batch_size: 100,
                        batches: 10,
                        seed,
                        first_batch,
                        min_positions: 200,
                        purpose: Purpose::Training.into(),
                        line: 0,
                        ..SampleRequest::default()
                    };
                    let mut stream = client.sample(request).await.unwrap().into_inner();
                    while let Some(batch) = stream.next().await {
                        let batch = batch.unwrap();
                        assert_eq!(batch.positions, 100);
                        assert_eq!(batch.rows.len(), 3800);
                        for (row, ply) in batch.rows.chunks(38).zip(&batch.plies) {
                            assert!(
                                row[..INDICES].iter().all(|value| value == &row[0]),
                                "half a row of another game"
                            );
                            assert!(*ply < 40);
                        }
                        assert!(batch.window_positions <= 5_040);
                        batches += 1;
                    }
                    first_batch += 10;
                }
                batches
            })
        })
        .collect();

    let mut stored = 0;
    for appender in appenders {
        stored += appender.await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    let mut batches = 0;
    for sampler in samplers {
        batches += sampler.await.unwrap();
    }
    assert_eq!(stored, APPENDERS * GAMES);
    let numbers = stats(&mut served.client()).await;
    assert_eq!(numbers.games_inserted, APPENDERS * GAMES);
    assert_eq!(numbers.duplicates, APPENDERS * 5 * 5);
    assert_eq!(numbers.positions_sampled, batches * 100);
    assert_eq!(numbers.damaged_games, 0);
    assert!(batches > 0);
    served.stop().await;
}
