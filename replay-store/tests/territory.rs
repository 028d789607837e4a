//! Owners of squares at the end of games: stored, and sent with each position of a batch from the view of the player to act.

use std::collections::BTreeMap;

use proto::v1::Game;
use replay_store::settings::Settings;

use crate::common::{close, id, open, put_all, settings, synthetic};

#[tokio::test(flavor = "multi_thread")]
async fn batches_tell_the_owners_of_the_squares() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        game: "go:3".into(),
        options: 0,
        ..settings(folder.path(), 100_000)
    };
    let mut games: Vec<Game> = (0..12).map(synthetic::go).collect();
    // A game that did not end by its rules.
    (games[3].territory, games[3].territory_score) = Default::default();
    let store = open(&settings);
    put_all(&store, &games).await;
    close(store);
    let store = open(&settings);
    for game in &games {
        assert_eq!(store.get(&id(game)).as_ref(), Ok(game));
    }

    let batch = store.batch(1, 0, 400).unwrap();
    let places: BTreeMap<u32, usize> = batch.territory_positions.iter().copied().zip(0..).collect();
    assert_eq!(batch.territories.len(), 9 * places.len());
    assert_eq!(batch.territory_scores.len(), places.len());
    let drawn = batch.game_sequences.iter().zip(&batch.plies);
    for (place, (&sequence, &ply)) in (0..).zip(drawn) {
        let game = &games[sequence as usize - 1];
        let sign = if game.movers[ply as usize] == 1 { -1 } else { 1 };
        assert_eq!(batch.results[place as usize], f32::from(sign) * game.score);
        let Some(&at) = places.get(&place) else {
            assert!(game.territory.is_empty());
            continue;
        };
        for (sent, owner) in batch.territories[9 * at..].iter().zip(&game.territory) {
            assert_eq!(sent.cast_signed(), sign * owner.cast_signed());
        }
        assert_eq!(batch.territory_scores[at], f32::from(sign) * game.territory_score);
    }
    assert!(places.len() < 400, "some positions have no territory");
    close(store);
}
