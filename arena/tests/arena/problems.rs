//! Matches in the generator game: both players try the same held-out problems, and results are counted by kind and level.

use std::collections::BTreeMap;

use arena::{
    matches::{ClassStanding, Standing, notation, openings, record},
    players::{NetworkOptions, Networks},
};
use games::{
    Game as _,
    erased::Typed,
    generator::{EpisodeEnd, GeneratorGame, Problem, Rules},
    registry,
};

use super::playing::Match;

/// Rules under which every other problem is a pair.
fn rules() -> Rules {
    Rules {
        pairs: 50,
        move_limit: 24,
        ..Rules::default()
    }
}

/// Number of problems: two of each kind and level.
const PROBLEMS: u64 = 12;

#[test]
fn both_players_get_the_same_held_out_problems_and_a_search_solves_more_than_random_moves() {
    let home = tempfile::tempdir().unwrap();
    let game = registry::find(GeneratorGame::NAME).unwrap();
    let rules_in_json = serde_json::to_value(rules()).unwrap();
    let variant = &*game.variant(&rules_in_json, None).unwrap();
    let problems = openings::usual(variant, 1, 8, PROBLEMS).unwrap();
    let mut classes: BTreeMap<(String, u32), u64> = BTreeMap::new();
    for opening in &problems {
        let class = opening.problem.clone().unwrap();
        let start = GeneratorGame::start(&rules(), opening.start.as_deref()).unwrap();
        assert!(start.problem().is_held_out() && opening.actions.is_empty());
        assert_eq!(class.kind == "pair", matches!(start.problem(), Problem::Pair(..)));
        *classes.entry((class.kind, class.level)).or_default() += 1;
    }
    let kinds = ["draw", "pair"];
    let expected: BTreeMap<(String, u32), u64> = GeneratorGame::COMPARED_LEVELS
        .iter()
        .flat_map(|&level| kinds.map(|kind| ((kind.to_owned(), level), 2)))
        .collect();
    assert_eq!(classes, expected);

    // Problems that a uniform search solves.
    let mut easy = openings::usual(variant, 1, 8, 2 * PROBLEMS).unwrap();
    easy.retain(|opening| {
        opening
            .problem
            .as_ref()
            .is_some_and(|class| class.kind == "draw" && class.level == 2)
    });
    let count = easy.len() as u64;
    assert_eq!(count, 4);
    let played = Match::from_openings(
        variant,
        &["uct,visits=10000", "random"],
        easy,
        &mut Networks::new(NetworkOptions::default()),
    );
    let records = played.play(&home.path().join("match"), 1, 24);
    assert_eq!(records.len() as u64, 2 * count);
    let mut solved = [0; 2];
    for record in &records {
        let end = record.replay(variant).unwrap();
        let end = &Typed::<GeneratorGame>::find(&*end).unwrap().state;
        let is_solved = end.end() == Some(EpisodeEnd::Solved);
        assert_eq!(record.result == record::Result::First, is_solved);
        // Only the player whose game it is searches.
        assert!(record.players[0] == 1 || record.visits[0] > 0);
        assert_eq!(record.visits[1], 0);
        solved[record.players[0]] += u64::from(is_solved);
    }
    assert!(solved[0] > solved[1], "{solved:?}");

    let folder = played.folder(&home.path().join("match")).unwrap();
    let standing = Standing::of(played.plan(), folder.records(), None);
    let pairing = &standing.pairings[0];
    let all = ClassStanding::sum(&pairing.problems).unwrap();
    assert_eq!((all.problems, all.solved), (count, solved));
    assert_eq!(pairing.problems.len(), 1);
    // A pair's score is 1 if only the first player solves the problem, 0 if only the second does.
    let score = 0.5 + (solved[0] as f64 - solved[1] as f64) / (2 * count) as f64;
    assert!((pairing.estimate.unwrap().score - score).abs() < 1e-9);
    notation::write(&folder, played.plan()).unwrap();
}
