//! Rows and policies in permuted colours: for training, and in the canonical colours of a search.

use games::{
    Action, Game, Symmetry,
    generator::{Clan, ClanPosition, Encoding, Examples, GeneratorGame, Grid, Move, Problem, Rules},
};
use proptest::prelude::*;

use super::play::{
    Colors, SAME_COLORS, any_clan, draw_colors, drawer, legal, recolored, recolored_clan, transformations,
    written,
};

fn read(row: &[u32]) -> ClanPosition {
    ClanPosition::read(row).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn moves_of_a_recoloured_row_have_the_recoloured_result(clan in any_clan(), other in any_clan(), number: prop::sample::Index, is_pair: bool, choice: prop::sample::Index) {
        let symmetries = GeneratorGame::row_symmetries(Encoding::Plain);
        let target = clan.render();
        let problem = if is_pair { Problem::Pair(target, other.render()) } else { Problem::Draw(target) };
        let position = ClanPosition { clan, problem, examples: Examples::NONE, step_marked: is_pair };
        let row = written(&position);
        prop_assert_eq!(symmetries.count(&row), 255);
        let symmetry = Symmetry(number.index(255) as u8);
        let turned = |row: &[u32]| {
            let mut row = row.to_vec();
            symmetries.turn_row(symmetry, &mut row);
            read(&row)
        };
        let changed = turned(&row);
        // The clan still draws the target, and only colours that new shapes do not have were changed.
        prop_assert_eq!(changed.problem.target(), Some(&changed.clan.render()));
        prop_assert_eq!(changed.clan.roles(), position.clan.roles());
        let fresh = |grid: &Grid| grid.cells().map(|cell| if cell < 2 || cell == 10 { cell } else { 2 });
        prop_assert_eq!(fresh(&changed.clan.render()), fresh(&target));
        prop_assert!(symmetry != Symmetry::IDENTITY || changed == position);

        let moves = transformations(&position.clan);
        let (imp, action, after) = &moves[choice.index(moves.len())];
        let entry = symmetries.turn_action(symmetry, GeneratorGame::action(*imp, *action));
        let (imp, counterpart): (usize, Move) = GeneratorGame::imp_and_move(entry);
        let expected = turned(&written(&ClanPosition { clan: *after, ..position.clone() }));
        prop_assert_eq!(changed.clan.after(imp, counterpart), Some(expected.clan));
    }
}

fn in_colors(colors: &Colors, clan: &Clan, problem: &Problem) -> GeneratorGame {
    let grid = |grid: &Grid| recolored(colors, grid);
    let problem = match problem {
        Problem::Free => Problem::Free,
        Problem::Draw(target) => Problem::Draw(grid(target)),
        Problem::Pair(first, second) => Problem::Pair(grid(first), grid(second)),
    };
    GeneratorGame::from_clan(&Rules::default(), problem, recolored_clan(colors, clan))
}

/// Returns the canonical row of a state, its legal actions in canonical order, and their policy entries.
fn canonical(state: &GeneratorGame) -> (Vec<u32>, Vec<Action>, Vec<u32>) {
    let (legal, mut order, mut row) = (legal(state), vec![77], Vec::new());
    let symmetry = state.canonical(&legal, &mut order).unwrap();
    assert!(state.allows(symmetry) && order.len() == legal.len() + 1);
    state.write_row(Encoding::Plain, symmetry, &mut row);
    let ordered: Vec<Action> = order[1..].iter().map(|&place| legal[place as usize]).collect();
    let entries = ordered
        .iter()
        .map(|&action| state.policy_index(Encoding::Plain, symmetry, action));
    let entries = entries.collect();
    (row, ordered, entries)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn all_permutations_of_a_position_have_one_canonical_row(clan in any_clan(), other in any_clan(), kind in 0..3, seed: u64) {
        let problem = match kind {
            0 => Problem::Free,
            1 => Problem::Draw(other.render()),
            _ => Problem::Pair(other.render(), clan.render()),
        };
        let (row, _, entries) = canonical(&in_colors(&SAME_COLORS, &clan, &problem));
        prop_assert!(entries.is_sorted());
        let mut draw = drawer(seed);
        for _ in 0..20 {
            let changed = in_colors(&draw_colors(&mut draw), &clan, &problem);
            let (changed_row, actions, changed_entries) = canonical(&changed);
            prop_assert_eq!(&changed_row, &row);
            prop_assert_eq!(&changed_entries, &entries);
            // An action leads to the same position as its entry does in the canonical colours.
            let read = read(&row);
            let representative = GeneratorGame::from_clan(&Rules::default(), read.problem, read.clan);
            for (&action, &entry) in actions.iter().zip(&entries) {
                let (mut after, mut expected) = (changed.clone(), representative.clone());
                after.play(action).unwrap();
                expected.play(entry).unwrap();
                prop_assert_eq!(after.outcome(), expected.outcome());
                if after.outcome().is_none() {
                    prop_assert_eq!(canonical(&after).0, canonical(&expected).0);
                }
            }
        }
    }
}
