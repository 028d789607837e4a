//! A learner that resumes requests batches that it was given before: it gets equal positions while their games are stored.

use proto::v1::{Batch, DeleteGamesRequest, ExportRequest, Game, Redraw, SampleRequest};

use crate::common::{Client, Served, append, export, is_stored, only, sample, settings, stats, synthetic};

const LINE: u64 = 5;

fn request(line: u64, first_batch: u64, batches: u32) -> SampleRequest {
    SampleRequest {
        batch_size: 40,
        batches,
        seed: 3,
        first_batch,
        line,
        ..SampleRequest::default()
    }
}

/// Returns the batches without the fields that depend on when a batch was drawn.
fn positions(batches: &[Batch]) -> Vec<Batch> {
    let without = |batch: &Batch| Batch {
        positions_inserted: 0,
        window_positions: 0,
        redraw: 0,
        ..batch.clone()
    };
    batches.iter().map(without).collect()
}

fn redraws(batches: &[Batch]) -> Vec<Redraw> {
    batches.iter().map(Batch::redraw).collect()
}

fn games(from: u64, to: u64) -> Vec<Game> {
    (from..to).map(|number| synthetic::game(number, 20)).collect()
}

async fn put(client: &mut Client, games: Vec<Game>) {
    assert!(append(client, games).await.iter().all(is_stored));
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_given_again_while_games_keep_coming() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 100_000);
    let served = Served::start(settings.clone()).await;
    let mut client = served.client();
    put(&mut client, games(0, 30)).await;
    let first = sample(&mut client, request(LINE, 10, 8)).await;
    assert_eq!(redraws(&first), [Redraw::None; 8]);
    let counted = stats(&mut client).await.positions_sampled;
    assert_eq!(counted, 8 * 40);

    put(&mut client, games(30, 60)).await;
    // A learner was killed after its checkpoint at batch 12.
    let again = sample(&mut client, request(LINE, 12, 8)).await;
    assert_eq!(redraws(&again[..6]), [Redraw::Same; 6]);
    assert_eq!(redraws(&again[6..]), [Redraw::None; 2]);
    assert_eq!(positions(&again[..6]), positions(&first[2..]));
    assert_eq!(stats(&mut client).await.positions_sampled, counted + 2 * 40);
    assert_eq!(again[0].positions_inserted, 60 * 20);
    // Without a line, and in another line, the batch is drawn from the present window.
    for line in [0, LINE + 1] {
        let other = sample(&mut client, request(line, 10, 8)).await;
        assert_eq!(redraws(&other), [Redraw::None; 8]);
        assert_ne!(positions(&other), positions(&first));
    }
    drop(client);
    served.stop().await;

    let served = Served::start(settings).await;
    let mut client = served.client();
    put(&mut client, games(60, 70)).await;
    let third = sample(&mut client, request(LINE, 10, 10)).await;
    assert_eq!(redraws(&third), [Redraw::Same; 10]);
    assert_eq!(positions(&third[..2]), positions(&first[..2]));
    assert_eq!(positions(&third[2..]), positions(&again));
    drop(client);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_games_are_gone_is_drawn_anew_and_marked() {
    let (_folder, served, mut client) = Served::new(100_000).await;
    put(&mut client, games(0, 30)).await;
    let first = sample(&mut client, request(LINE, 0, 1)).await;
    let gone = first[0].game_sequences[0];
    let one = ExportRequest {
        from_sequence: gone,
        to_sequence: gone,
        ..ExportRequest::default()
    };
    let found = export(&mut client, one).await;
    let delete = DeleteGamesRequest {
        filter: only(found[0].game.as_ref().unwrap()),
        dry_run: false,
    };
    assert_eq!(client.delete_games(delete).await.unwrap().into_inner().games, 1);
    let counted = stats(&mut client).await.positions_sampled;
    let other = sample(&mut client, request(LINE, 0, 1)).await;
    assert_eq!(redraws(&other), [Redraw::Other]);
    assert!(!other[0].game_sequences.contains(&gone));
    assert_eq!(stats(&mut client).await.positions_sampled, counted + 40);
    // From now on the new batch is remembered.
    put(&mut client, games(30, 40)).await;
    let again = sample(&mut client, request(LINE, 0, 1)).await;
    assert_eq!(redraws(&again), [Redraw::Same]);
    assert_eq!(positions(&again), positions(&other));
    // A batch of another size cannot have the same positions.
    let larger = SampleRequest {
        batch_size: 41,
        ..request(LINE, 0, 1)
    };
    assert_eq!(redraws(&sample(&mut client, larger).await), [Redraw::Other]);
    drop(client);
    served.stop().await;
}
