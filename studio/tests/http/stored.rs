//! Stored games of Connect Four for the tests.

use std::path::Path;

use games::{Game as _, Player, Symmetry, connect_four::ConnectFour};
use launcher::run::folder::RunFolder;
use proto::v1::{Game, GameResult};
use replay_store::{
    settings::Settings,
    store::{Store, append::Verdict},
};

/// Version of the network in the games.
pub const MODEL: &str = "000000000050-8c1f0e2d";

/// A game with these columns, cut off after them unless it is over, with ten visits of the played column and five of another.
pub fn game(number: u8, columns: &[u32]) -> Game {
    let mut state = ConnectFour::start(&Default::default(), None).unwrap();
    let mut game = Game {
        id: vec![number; 16].into(),
        game: "connect-four".into(),
        options: 1,
        rules_json: serde_json::to_string(&<ConnectFour as games::Game>::Rules::default()).unwrap(),
        actions: columns.to_vec(),
        model_versions: vec![MODEL.into()],
        model_of_position: vec![0; columns.len()],
        run_seed: 1,
        game_number: number.into(),
        search_json: r#"{"visits":15,"exploration":1.25,"first_play":"parent","leaves":4,"noise_fraction":0.25,"noise_total_alpha":10.83,"random_symmetry":true,"reuse":"gray","discount":1.0,"temperature":[{"until_action":40,"temperature":1.0}],"max_actions":600}"#.into(),
        actor: "actor-1".into(),
        build: "0.1.0".into(),
        finished_at_ms: 1_795_255_200_000 + u64::from(number) * 60_000,
        ..Game::default()
    };
    let mut movers = Vec::new();
    for &column in columns {
        movers.push(state.to_move().index() as u8);
        state.write_row(Default::default(), Symmetry::IDENTITY, &mut game.rows);
        game.visit_counts.push(2);
        game.visit_actions.extend([column, (column + 1) % 7]);
        game.visits.extend([10, 5]);
        game.root_values.push(if state.to_move() == Player::First {
            0.5
        } else {
            -0.5
        });
        state.play(column).unwrap();
    }
    game.movers = movers.into();
    game.ending = state.ending().unwrap_or(proto::endings::MAX_ACTIONS).into();
    game.score = state.outcome().map_or(0.0, |outcome| outcome.value().get());
    game.result = match game.score {
        score if score > 0.0 => GameResult::FirstWon,
        score if score < 0.0 => GameResult::SecondWon,
        _ => GameResult::Draw,
    }
    .into();
    game
}

/// Creates a stopped run in `folder` with three games: of seven, eight and seven moves. The second player wins the second.
pub async fn run(folder: &Path) {
    let settings = Settings::from_config(
        &RunFolder::open(folder, Some("connect-four"), &[])
            .unwrap()
            .load(&[])
            .unwrap(),
    );
    let store = Store::open(settings).unwrap();
    for game in [
        game(1, &[3, 0, 3, 0, 3, 0, 3]),
        game(2, &[0, 1, 0, 1, 0, 1, 2, 1]),
        game(3, &[0, 1, 0, 1, 0, 1, 0]),
    ] {
        assert_eq!(store.put(&game).await.unwrap(), Verdict::Stored);
    }
    tokio::task::spawn_blocking(move || store.close())
        .await
        .unwrap()
        .unwrap();
}
