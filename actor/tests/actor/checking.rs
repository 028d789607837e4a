//! Verification of records: a genuine record passes, every alteration is found, and repeated searches give the recorded decisions.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use actor::check::{
    rules,
    search::{Followed, follow},
};
use config::PolicyTarget;
use games::{Game as _, connect_four::ConnectFour};
use network::{PositionBatch, Predictions};
use prost::bytes::Bytes;
use proto::v1::{Decisions, Game};
use search::{Reuse, Root};

use crate::{
    evaluator_server::{Server, answer},
    playing::first_games,
};

/// Returns the evaluations of a version of the test's inference server, without the server.
fn evaluate(version: &str, batch: &PositionBatch, predictions: &mut Predictions) {
    let layout = ConnectFour::layout(Default::default());
    let request = batch.to_request(0..batch.len(), layout.row_len());
    let reply = answer(&request, &layout, version.into());
    predictions.values.extend(reply.values);
    proto::priors::decode(&reply.priors, batch.legal().len(), &mut predictions.priors).unwrap();
}

fn followed(game: &Game) -> Followed {
    let versions = &game.model_versions;
    follow::<ConnectFour>(game, |model, batch, predictions| {
        evaluate(&versions[model], batch, predictions);
        Ok(())
    })
    .unwrap()
}

fn fields(game: &Game) -> Vec<&'static str> {
    let problems = rules::check::<ConnectFour>(game);
    problems.iter().map(|problem| problem.field).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_searches_give_the_recorded_decisions() {
    for (root, reuse, leaves, solver) in [
        (Root::Puct, Reuse::Gray, 3, false),
        (Root::Puct, Reuse::Keep, 4, false),
        (Root::Puct, Reuse::Drop, 1, false),
        (Root::Puct, Reuse::Gray, 3, true),
        (Root::Puct, Reuse::Keep, 1, true),
        (Root::Gumbel, Reuse::Gray, 3, false),
        (Root::Gumbel, Reuse::Keep, 1, false),
        (Root::Gumbel, Reuse::Drop, 4, true),
        (Root::Gumbel, Reuse::Gray, 1, true),
    ] {
        let (games, _) = first_games(8, &Server::good(), |config| {
            config.search.root = root;
            config.learner.policy_target = PolicyTarget::CompletedQ;
            config.search.reuse = reuse;
            config.search.leaves = leaves;
            config.search.solver = solver;
            config.search.stop_when_solved = solver;
            config.search.exact_leaves = solver;
            config.actor.threads = 2;
        })
        .await;
        for game in games.values() {
            assert_eq!(fields(game), [] as [&str; 0]);
            let plies = game.actions.len();
            let followed = followed(game);
            assert_eq!(followed.positions, plies, "{followed:?}");
            assert_eq!((followed.value_difference, &followed.difference), (0.0, &None));
            // Provenance that the check and the deletion by provenance need.
            assert_eq!(game.model_providers, ["hash"]);
            assert!(
                game.build.starts_with("0.") && game.build.contains('+'),
                "{}",
                game.build
            );
            assert_eq!(game.policy_surprises.len(), plies);
            assert!(game.policy_surprises.iter().any(|&surprise| surprise > 0.0));
            assert!(game.tree_bytes > 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn games_after_random_actions_are_repeated_from_their_start() {
    let (games, _) = first_games(24, &Server::good(), |config| {
        config.actor.random_plies = 24;
        config.search.solver = true;
        config.search.stop_when_solved = true;
        config.search.exact_leaves = true;
    })
    .await;
    let starts: BTreeSet<&str> = games.values().map(|game| game.start.as_str()).collect();
    assert!(starts.contains("") && starts.len() > 8, "{starts:?}");
    for game in games.values() {
        assert_eq!(fields(game), [] as [&str; 0]);
        let followed = followed(game);
        assert_eq!(followed.positions, game.actions.len(), "{followed:?}");
    }
    let mut moved = games
        .values()
        .find(|game| !game.start.is_empty())
        .unwrap()
        .clone();
    moved.start = String::new();
    assert_ne!(fields(&moved), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_altered_field_is_found() {
    let (games, _) = first_games(1, &Server::good(), |_| ()).await;
    let game = &games[&0];
    let altered = |change: &dyn Fn(&mut Game)| {
        let mut game = game.clone();
        change(&mut game);
        game
    };
    let told = |change: &dyn Fn(&mut Game)| fields(&altered(change));
    assert!(told(&|game| game.rows[3] ^= 1).contains(&"rows"));
    assert!(told(&|game| game.actions[2] = game.actions[0]).contains(&"actions"));
    assert!(told(&|game| game.actions.swap(0, 2)).contains(&"actions"));
    assert!(
        told(&|game| {
            let mut movers = game.movers.to_vec();
            movers[1] = 0;
            game.movers = Bytes::from(movers);
        })
        .contains(&"movers")
    );
    assert!(told(&|game| game.visits[0] += 100).contains(&"visits"));
    assert!(told(&|game| game.visit_actions[0] = 77).contains(&"visit_actions"));
    assert!(told(&|game| game.result = game.result % 3 + 1).contains(&"result"));
    assert!(told(&|game| game.score -= 0.5).contains(&"score"));
    assert!(told(&|game| game.ending = "boredom".into()).contains(&"ending"));
    // Another seed soon draws another move.
    assert!(told(&|game| game.run_seed += 1).contains(&"actions"));
    let told_of = |change: &dyn Fn(&mut Decisions)| told(&|game| change(game.decisions.as_mut().unwrap()));
    assert!(told_of(&|found| found.unvisited_actions[0] = 77).contains(&"decisions.unvisited_actions"));
    assert!(told_of(&|found| found.played[1] += 1).contains(&"decisions.played"));
    assert_eq!(told(&|game| game.id = Bytes::new()), ["id"]);
    assert_eq!(told(&|game| game.rules_json = "{".into()), ["rules_json"]);

    // The rules do not show these alterations, but a repeated search does: a moved visit, another root value, other settings.
    let differs = |change: &dyn Fn(&mut Game)| followed(&altered(change)).difference.unwrap().field;
    assert_eq!(
        differs(&|game| {
            let at = game.visits.iter().position(|&visits| visits > 1).unwrap();
            game.visits[at] -= 1;
        }),
        "visits"
    );
    assert_eq!(differs(&|game| game.root_values[1] += 0.001), "root_values");
    assert_eq!(differs(&|game| game.root_values[1] = f32::NAN), "root_values");
    // The upper byte of a number has its sign and its exponent.
    let alter = |column: &mut Bytes| {
        let mut bytes = column.to_vec();
        bytes[1] ^= 0x84;
        *column = bytes.into();
    };
    type Change<'a> = &'a dyn Fn(&mut Decisions);
    let changes: [(&str, Change<'_>); 5] = [
        ("decisions.kinds", &|found| {
            let mut kinds = found.kinds.to_vec();
            kinds[0] = 2;
            found.kinds = kinds.into();
        }),
        ("decisions.visited_priors", &|found| {
            alter(&mut found.visited_priors)
        }),
        ("decisions.unvisited_priors", &|found| {
            alter(&mut found.unvisited_priors)
        }),
        ("decisions.values", &|found| alter(&mut found.values)),
        ("decisions.evaluations", &|found| alter(&mut found.evaluations)),
    ];
    for (field, change) in changes {
        assert_eq!(differs(&|game| change(game.decisions.as_mut().unwrap())), field);
    }
    let other = |game: &mut Game| game.search_json = game.search_json.replace("1.25", "1.5");
    assert!(["visits", "root_values"].contains(&differs(&other)));
    // A wrong number of evaluations, or another model for one of them.
    assert_eq!(
        differs(&|game| *game.evaluation_counts.last_mut().unwrap() -= 1),
        "evaluation_counts"
    );
    let other = |game: &mut Game| {
        game.model_versions.push("second".into());
        game.evaluation_models.insert(0, 1);
        game.evaluation_counts.insert(0, 1);
        game.evaluation_counts[1] -= 1;
    };
    assert!(["visits", "root_values"].contains(&differs(&other)));
}

/// The choice of a Gumbel root is checked without the network: other draws, visits or values choose another action in some game.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_altered_game_of_a_gumbel_root_is_found_by_the_rules() {
    let (games, _) = first_games(40, &Server::good(), |config| {
        config.actor.random_plies = 36;
        config.search.root = Root::Gumbel;
        config.learner.policy_target = PolicyTarget::CompletedQ;
    })
    .await;
    let is_found = |change: &dyn Fn(&mut Game)| {
        games.values().any(|game| {
            let mut game = game.clone();
            change(&mut game);
            fields(&game).contains(&"actions")
        })
    };
    assert!(
        games
            .values()
            .all(|game| game.search_json.contains(r#""root":"gumbel""#))
    );
    assert!(!is_found(&|_| ()));
    assert!(is_found(&|game| game.run_seed += 1));
    assert!(is_found(&|game| game.visits.reverse()));
    let with_search = |text: &str, other: &str| {
        is_found(&|game| {
            assert!(game.search_json.contains(text), "{}", game.search_json);
            game.search_json = game.search_json.replace(text, other);
        })
    };
    assert!(with_search(r#""q_scale":0.3"#, r#""q_scale":900.0"#));
    assert!(with_search(r#""noise_fraction":0.25"#, r#""noise_fraction":0.0"#));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_searches_of_games_across_several_models_are_repeated_whole() {
    let server = Server::good();
    // The model changes all the time, also between the leaves of one search.
    let changing = tokio::spawn({
        let server = Arc::clone(&server);
        async move {
            for number in 2.. {
                let seen = server.requests.load(Ordering::SeqCst);
                while server.requests.load(Ordering::SeqCst) < seen + 15 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                *server.version.lock() = format!("model {number}");
            }
        }
    });
    let (games, _) = first_games(30, &server, |config| {
        config.search.leaves = 4;
        config.actor.threads = 2;
        config.actor.requests_in_flight = 4;
        config.actor.rows_per_request = 3;
    })
    .await;
    changing.abort();
    let mut most_models = 0;
    for game in games.values() {
        let plies = game.actions.len();
        let followed = followed(game);
        assert_eq!((followed.positions, &followed.difference), (plies, &None));
        assert_eq!(followed.value_difference, 0.0);
        let totals = game.totals.unwrap();
        let evaluations = totals.fresh_evaluations + totals.cache_hits + totals.duplicates_in_flight;
        assert_eq!(
            game.evaluation_counts
                .iter()
                .map(|&count| u64::from(count))
                .sum::<u64>(),
            evaluations
        );
        most_models = most_models.max(game.model_versions.len());
    }
    assert!(most_models > 2, "games are played with several models");
}
