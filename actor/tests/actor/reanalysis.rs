//! An actor that poses the problems of stored games again, with a real replay store.

use std::{collections::HashSet, path::Path, sync::Arc, time::Duration};

use actor::{
    ActorError, GameId,
    play::{record, setup::Setup},
};
use config::RunConfig;
use games::{
    Action, Drawn, Game as _,
    generator::{Encoding, GeneratorGame, Move, Rules},
};
use proto::v1::{ExportRequest, Game, GetGameRequest};
use replay_store::{
    client::{self, Client},
    settings::Settings,
};
use tokio_util::sync::CancellationToken;

use crate::{config, evaluator_server::Server, in_time, process::Process, start_playing, store_server};

fn action(imp: usize, name: &str) -> Action {
    let made = (0..38).map(Move).find(|made| made.name() == name).unwrap();
    GeneratorGame::action(imp, made)
}

/// Returns the problem that these moves and a mark solve, with them as its solution.
fn problem(moves: &[(usize, &str)]) -> Drawn<GeneratorGame> {
    let mut state = GeneratorGame::start(&Rules::default(), None).unwrap();
    let mut solution: Vec<Action> = moves.iter().map(|&(imp, name)| action(imp, name)).collect();
    for &made in &solution {
        state.play(made).unwrap();
    }
    let start = serde_json::json!({ "target": state.render() }).to_string();
    solution.push(action(0, "MARK_COMPLETE"));
    Drawn {
        start: GeneratorGame::start(&Rules::default(), Some(&start)).unwrap(),
        solution,
    }
}

/// Two dots side by side, on a grid that is narrower and lower by these numbers. A line of length 2 needs one move less, and no move
/// can be left out.
fn two_dots(narrower: usize, lower: usize) -> Drawn<GeneratorGame> {
    let mut moves = vec![(1, "DEC"); narrower];
    moves.extend(vec![(2, "DEC"); lower]);
    moves.extend([(0, "APPEND_DOT"), (0, "APPEND_DOT"), (9, "MOVE_RIGHT")]);
    problem(&moves)
}

/// A dot beside the corner. The rules' lower bound does not tell that this is the shortest solution.
fn one_dot() -> Drawn<GeneratorGame> {
    problem(&[(0, "APPEND_DOT"), (4, "MOVE_RIGHT")])
}

/// Returns the number of moves of the shortest solution, by brute force.
fn shortest(start: &GeneratorGame) -> usize {
    let mut states = vec![start.clone()];
    for moves in 1.. {
        let mut next = Vec::new();
        for state in &states {
            let mut legal = Vec::new();
            state.legal_actions(&mut legal);
            for action in legal {
                let mut after = state.clone();
                after.play(action).unwrap();
                match after.outcome() {
                    Some(outcome) if outcome.value().get() > 0.0 => return moves,
                    Some(_) => {}
                    None => next.push(after),
                }
            }
        }
        states = next;
    }
    unreachable!()
}

/// Configuration of an actor that poses stored problems again whenever it can.
fn reanalysing(folder: &Path, server: &str, store: &str) -> RunConfig {
    let mut config = config(folder, server, store);
    config.game.name = GeneratorGame::NAME.into();
    config.search.visits = 1_200;
    config.search.leaves = 16;
    config.search.max_actions = 10;
    config.search.discount = 0.9;
    config.actor.games_per_thread = 2;
    config.actor.rows_per_request = 16;
    config.problems.reanalysis = 100;
    config
}

async fn generator_server() -> Process {
    let server = Server::good();
    *server.layout.lock() = GeneratorGame::layout(Encoding::Plain);
    Process::start(server.routes()).await
}

/// Serves a store in `folder` that holds these games. Returns its address and a client.
async fn stored(folder: &Path, config: &RunConfig, games: &[Drawn<GeneratorGame>]) -> (String, Client) {
    let setup = Setup::<GeneratorGame>::new(config, "earlier", 1).unwrap();
    let mut run = config.clone();
    run.replay.folder = folder.join("replay");
    let store = replay_store::store::Store::open(Settings::from_config(&run)).unwrap();
    for (number, game) in games.iter().enumerate() {
        let named = (number as u64, GameId([number as u8 + 1; 16]));
        let record = record::of_solution(game, "known-solution", named, &setup).unwrap();
        assert_eq!(
            store.put(&record).await.unwrap(),
            replay_store::store::append::Verdict::Stored
        );
    }
    tokio::task::block_in_place(|| store.close().unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = replay_store::serve(listener, Settings::from_config(&run), CancellationToken::new());
    tokio::spawn(serving);
    let client = client::connect(&address, &config.security).unwrap();
    (address, client)
}

async fn export(client: &mut Client, drawn_from: bool) -> Vec<Game> {
    let request = ExportRequest {
        drawn_from,
        ..ExportRequest::default()
    };
    let mut games = client.export(request).await.unwrap().into_inner();
    let mut all = Vec::new();
    while let Some(game) = games.message().await.unwrap() {
        all.extend(game.game);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shorter_solution_replaces_a_stored_one_and_no_other_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let is_held_out = |drawn: &Drawn<GeneratorGame>| drawn.start.problem().is_held_out();
    let (long, short) = (two_dots(0, 0), one_dot());
    let mut others = (0..36).map(|number| two_dots(number / 6, number % 6));
    let held_out = others.find(is_held_out).unwrap();
    assert!(!is_held_out(&long) && !is_held_out(&short));
    assert_eq!((long.solution.len(), shortest(&long.start)), (4, 3));
    assert_eq!((short.solution.len(), shortest(&short.start)), (3, 3));

    let server = generator_server().await;
    let spool = folder.path().join("spool");
    std::fs::create_dir(&spool).unwrap();
    let mut config = reanalysing(&spool, &server.address(), "");
    let (address, mut client) = stored(folder.path(), &config, &[long.clone(), short, held_out]).await;
    config.replay.address = address;
    // The games that the actor adds are few, so that it reads the stored ones often.
    (config.problems.known_solutions, config.problems.hindsight) = (0.0, false);
    let actor = start_playing::<GeneratorGame>(config);
    let metrics = Arc::clone(&actor.metrics);
    let replaces_long = |game: &Game| game.replaces.as_ref() == [1; 16];
    in_time(async {
        while metrics.games_reanalysed.get() < 20
            || !export(&mut client, false).await.iter().any(replaces_long)
        {
            assert!(!actor.actor.is_finished(), "the actor has ended");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    actor.stop().await;

    // The actor's own games may become shorter too.
    let games = export(&mut client, false).await;
    let (mut replaced, mut saved) = (0, 0);
    for game in games.iter().filter(|game| game.provenance == "reanalysis") {
        let before = games.iter().find(|before| before.id == game.replaces).unwrap();
        assert_eq!(game.start, before.start);
        assert!(before.id.as_ref() != [2; 16] && before.id.as_ref() != [3; 16]);
        let mut state = GeneratorGame::start(&Rules::default(), Some(&game.start)).unwrap();
        for &action in &game.actions {
            state.play(action).unwrap();
        }
        assert_eq!((state.ending(), game.score), (Some("solved"), 1.0));
        assert!(!state.problem().is_held_out());
        if replaces_long(game) {
            assert_eq!(game.actions.len(), 3);
            assert!((game.root_values[0] - 0.9f32.powi(3)).abs() < 1e-6);
        }
        replaced += 1;
        assert!(game.actions.len() < before.actions.len());
        saved += (before.actions.len() - game.actions.len()) as u64;
    }
    assert_eq!(
        (metrics.solutions_replaced.get(), metrics.moves_saved.get()),
        (replaced, saved)
    );

    // The longer one is kept, and no batch is drawn from it.
    let drawn_from: HashSet<Vec<u8>> = export(&mut client, true)
        .await
        .iter()
        .map(|game| game.id.to_vec())
        .collect();
    assert!(!drawn_from.contains(&vec![1; 16]) && drawn_from.contains(&vec![2; 16]));
    let request = GetGameRequest {
        id: vec![1; 16].into(),
    };
    let kept = client.get_game(request).await.unwrap().into_inner();
    assert_eq!(kept.actions, long.solution);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actor_whose_store_cannot_be_reached_plays_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = generator_server().await;
    // Nothing listens on this port any more.
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let mut config = reanalysing(folder.path(), &server.address(), &address);
    config.search.visits = 8;
    let actor = start_playing::<GeneratorGame>(config);
    actor.until(|| actor.metrics.games.get() >= 10).await;
    assert_eq!(actor.metrics.games_reanalysed.get(), 0);
    actor.stop().await;
}

/// The store in memory shows nobody its games, as a store does to a token without the right.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_show_its_games_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let server = generator_server().await;
    let store = Process::start(store_server::Store::good().routes()).await;
    let config = reanalysing(folder.path(), &server.address(), &store.address());
    let error = in_time(start_playing::<GeneratorGame>(config).end()).await;
    assert!(matches!(error, ActorError::Reader(_)), "{error}");
    assert!(error.to_string().contains("problems.reanalysis"), "{error}");
}
