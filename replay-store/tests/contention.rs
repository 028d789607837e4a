//! Concurrent streams: each game is stored once and each batch is consistent while the window slides.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::common::{Served, append, is_stored, settings, stats, synthetic};
use proto::v1::{Purpose, SampleRequest};
use tokio_stream::StreamExt as _;

/// Returns a game with one visited action in each position, whose visits name the game and the position.
fn marked(number: u64) -> proto::v1::Game {
    let positions = 10 + number as usize % 30;
    let mut game = synthetic::game(number, positions);
    let marked = (0..).zip(game.policy_columns().unwrap());
    (game.visit_actions, game.visits) = marked
        .map(|(ply, (actions, _))| (actions[0], mark(number, ply)))
        .unzip();
    game.visit_counts.fill(1);
    game
}

fn mark(number: u64, ply: u32) -> u32 {
    100 * (number as u32 + 1) + ply
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
    let all: Arc<Vec<_>> = Arc::new((0..APPENDERS * GAMES).map(marked).collect());

    let appenders: Vec<_> = (0..APPENDERS)
        .map(|appender| {
            let mut client = served.client();
            let all = Arc::clone(&all);
            tokio::spawn(async move {
                let mut stored = 0;
                for part in 0..5 {
                    let first = (appender * GAMES + part * (GAMES / 5)) as usize;
                    let mut games = all[first..first + GAMES as usize / 5].to_vec();
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
            let (is_over, games) = (Arc::clone(&is_over), Arc::clone(&all));
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
                        assert_eq!((batch.rows.len(), batch.visits.len()), (3800, 100));
                        for ((row, &ply), &visits) in
                            batch.rows.chunks(38).zip(&batch.plies).zip(&batch.visits)
                        {
                            let number = u64::from(visits / 100 - 1);
                            assert_eq!(visits, mark(number, ply));
                            let game = &games[number as usize];
                            let at = ply as usize * 38;
                            assert_eq!(row, &game.rows[at..at + 38], "a row of another position");
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
