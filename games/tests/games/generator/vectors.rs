//! Cases of the reference implementation: 60 clans from random walks.

use games::{
    Game, Outcome,
    generator::{Clan, EpisodeEnd, GeneratorGame, Grid, Move, Problem, Rules},
};
use serde::Deserialize;

use super::play::path;
use crate::shared::records;

#[derive(Deserialize)]
struct Case {
    id: u32,
    packed: Vec<u32>,
    render: Vec<Vec<u8>>,
    imp: usize,
    path: Vec<u8>,
    imp_render: Vec<Vec<u8>>,
    n_masked_moves: usize,
    steps: Vec<(usize, u8, Option<Vec<u32>>)>,
}

const CASES: &str = "generator/clans.jsonl.gz";

fn rows(grid: Grid) -> Vec<Vec<u8>> {
    grid.into()
}

#[test]
fn renders_views_and_moves_agree_with_the_reference() {
    let cases: Vec<Case> = records(CASES);
    assert_eq!(cases.len(), 60);
    let (mut steps, mut oopses) = (0, 0);
    for case in &cases {
        let clan = Clan::unpack(&case.packed).unwrap();
        assert_eq!(clan.packed().collect::<Vec<_>>(), case.packed);
        assert_eq!(rows(clan.render()), case.render, "clan {}", case.id);
        assert_eq!(path(&clan, case.imp), case.path, "clan {}", case.id);
        assert_eq!(rows(clan.imp_view(case.imp)), case.imp_render, "clan {}", case.id);
        let masked: u32 = (0..clan.len()).map(|imp| clan.mask(imp).count_ones()).sum();
        assert_eq!(masked as usize, case.n_masked_moves, "clan {}", case.id);
        for (imp, action, result) in &case.steps {
            steps += 1;
            oopses += usize::from(result.is_none());
            let after = clan.after(*imp, Move(*action));
            let packed = after.map(|clan| clan.packed().collect::<Vec<_>>());
            assert_eq!(
                &packed,
                result,
                "clan {}, imp {imp}, {}",
                case.id,
                Move(*action).name()
            );
        }
    }
    assert!(steps > 2000 && oopses > 300, "{steps} {oopses}");
}

/// The recorded moves, played by the game under the original rules.
#[test]
fn the_game_plays_the_recorded_steps() {
    let rules = Rules::compatibility();
    for case in records::<Case>(CASES) {
        let clan = Clan::unpack(&case.packed).unwrap();
        let state = GeneratorGame::from_clan(&rules, Problem::Free, clan);
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        assert_eq!(legal.len(), case.n_masked_moves);
        for (imp, action, result) in &case.steps {
            let mut state = state.clone();
            let action = GeneratorGame::action(*imp, Move(*action));
            assert!(legal.contains(&action));
            state.play(action).unwrap();
            match result {
                Some(packed) => assert_eq!(&state.clan().packed().collect::<Vec<_>>(), packed),
                None => {
                    assert_eq!(state.end(), Some(EpisodeEnd::Oops));
                    assert_eq!(state.outcome(), Some(Outcome::Scored(0.0)));
                }
            }
        }
    }
}
