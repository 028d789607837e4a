//! Rows and policies in permuted colours, for training.

use games::{
    Game, Symmetry,
    generator::{GeneratorGame, Grid, Move, Position, Problem},
};
use proptest::prelude::*;

use crate::play::{any_clan, transformations};

fn read(row: &[u32]) -> Position {
    Position::read(row).unwrap()
}

fn written(position: &Position) -> Vec<u32> {
    let mut row = Vec::new();
    position.write(&mut row);
    row
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn moves_of_a_recoloured_row_have_the_recoloured_result(clan in any_clan(), other in any_clan(), number: prop::sample::Index, is_pair: bool, choice: prop::sample::Index) {
        let symmetries = GeneratorGame::row_symmetries(());
        let target = clan.render();
        let problem = if is_pair { Problem::Pair(target, other.render()) } else { Problem::Draw(target) };
        let position = Position { clan, problem, step_marked: is_pair };
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
        let expected = turned(&written(&Position { clan: *after, ..position.clone() }));
        prop_assert_eq!(changed.clan.after(imp, counterpart), Some(expected.clan));
    }
}
