//! Properties of every clan: packing, rendering, moves and their inverses, the strict mask.

use games::{
    Game, Symmetry,
    generator::{
        Clan, ClanPosition, Cycles, Encoding, GeneratorGame, Grid, Illegal, Move, Problem, Rules, grammar,
    },
};
use proptest::prelude::*;

use super::play::{any_clan, choices, grow, legal, transformations};

/// Returns the imp and move that undo a move of `imp`. `None` if no single move does.
fn undo(clan: &Clan, imp: usize, action: Move) -> Option<(usize, Move)> {
    let back = match action.name() {
        "INC" => 20,
        "DEC" => 19,
        "MOVE_LEFT" => 22,
        "MOVE_RIGHT" => 21,
        "MOVE_UP" => 24,
        "MOVE_DOWN" => 23,
        "DIR_CW" => 36,
        "DIR_CCW" => 35,
        "SWAP_WITH_NEXT" => 10,
        "WRAP_GROUP" | "WRAP_ROTATION" => 14,
        "DOT_TO_LINE" => 17,
        "DOT_TO_RECT" => 18,
        "APPEND_DOT" | "APPEND_LINE" | "APPEND_RECT" => return Some((clan.end(imp), Move(8))),
        "INSERT_DOT_AFTER" | "INSERT_LINE_AFTER" | "INSERT_RECT_AFTER" | "DUPLICATE_AFTER" => {
            return Some((clan.end(imp), Move(8)));
        }
        name => {
            let value = clan.values()[imp];
            return name
                .starts_with("SET_COLOR")
                .then(|| (imp, Move(25 + (value - 17))));
        }
    };
    Some((imp, Move(back)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn packed_clans_are_read_as_they_were_written(clan in any_clan()) {
        let packed: Vec<u32> = clan.packed().collect();
        prop_assert_eq!(Clan::unpack(&packed).unwrap(), clan);
        prop_assert!(clan.depths()[..clan.len()].iter().all(|&depth| depth <= 6));
    }

    /// One bit of a packed clan is changed, or its end is missing.
    #[test]
    fn a_damaged_clan_is_refused_or_a_valid_clan(
        clan in any_clan(), at: prop::sample::Index, bit in 0u32..24, cut: prop::sample::Index,
    ) {
        let mut packed: Vec<u32> = clan.packed().collect();
        let place = at.index(packed.len());
        packed[place] ^= 1 << bit;
        if let Ok(other) = Clan::unpack(&packed) {
            prop_assert_eq!(other.packed().collect::<Vec<_>>(), packed.clone());
            let _ = (other.render(), transformations(&other).len());
        }
        packed.truncate(cut.index(packed.len()));
        // Whole shapes may be missing at the end of the Generator's list.
        if let Ok(other) = Clan::unpack(&packed) {
            prop_assert_eq!(other.packed().collect::<Vec<_>>(), packed);
        }
    }

    #[test]
    fn no_numbers_make_unpack_or_read_panic(numbers in prop::collection::vec(prop_oneof![0u32..64, any::<u32>()], 0..200)) {
        let _ = Clan::unpack(&numbers);
        let _ = ClanPosition::read(&numbers);
    }

    #[test]
    fn the_inverse_of_a_move_restores_clan_and_render(clan in any_clan(), choice: prop::sample::Index) {
        let moves = transformations(&clan);
        let (imp, action, after) = moves[choice.index(moves.len())];
        if let Some((imp, back)) = undo(&clan, imp, action) {
            let again = after.after(imp, back);
            prop_assert_eq!(again, Some(clan), "{} then {}", action.name(), back.name());
            prop_assert_eq!(again.unwrap().render(), clan.render());
        }
        // These moves never change the render.
        if ["WRAP_GROUP", "DUPLICATE_AFTER", "DOT_TO_LINE", "DOT_TO_RECT", "LINE_TO_DOT", "RECT_TO_DOT", "GROUP_WITH_NEXT"]
            .contains(&action.name())
        {
            prop_assert_eq!(after.render(), clan.render(), "{}", action.name());
        }
        // The result follows the grammar.
        let packed: Vec<u32> = after.packed().collect();
        prop_assert_eq!(Clan::unpack(&packed).unwrap(), after);
    }

    #[test]
    fn equal_clans_have_equal_hashes_and_different_clans_different_ones(one in any_clan(), other in any_clan()) {
        prop_assert_eq!(one.hash() == other.hash(), one == other);
    }

    /// The strict mask has the moves that do not fail when each is tried, and do not lead back.
    #[test]
    fn the_strict_mask_agrees_with_trying_every_move(choices in choices(30), cycles: bool) {
        let rules = Rules {
            cycles: if cycles { Cycles::Allow } else { Cycles::Forbid },
            ..Rules::default()
        };
        let mut state = GeneratorGame::posed(&rules, Problem::Free);
        let mut path = vec![*state.clan()];
        for choice in choices {
            let expected: Vec<u32> = [0, 1]
                .into_iter()
                .chain(
                    transformations(state.clan())
                        .into_iter()
                        .filter(|(_, _, after)| cycles || !path.contains(after))
                        .map(|(imp, action, _)| GeneratorGame::action(imp, action)),
                )
                .collect();
            let offered = legal(&state);
            prop_assert_eq!(&offered, &expected);
            let moves = &expected[2..];
            if moves.is_empty() {
                break;
            }
            let small: Vec<u32> = moves.iter().copied().filter(|action| action % 38 < 21).collect();
            let from = if choice & 1 == 0 && !small.is_empty() { &small } else { moves };
            state.play(from[choice as usize / 2 % from.len()]).unwrap();
            path.push(*state.clan());
        }
    }

    /// Calls all methods of states after any actions, legal or not.
    #[test]
    fn any_actions_leave_a_valid_state(choices in choices(20), odd in prop::collection::vec(any::<u32>(), 0..40), oops: bool) {
        let rules = Rules {
            illegal: if oops { Illegal::Oops } else { Illegal::Strict },
            move_limit: 30,
            ..Rules::default()
        };
        let mut state = GeneratorGame::from_clan(&rules, Problem::Draw(Grid::from_rows(&[vec![3, 4]]).unwrap()), grow(&choices));
        for &action in &odd {
            let before = state.clone();
            match state.play(action % 4000) {
                Ok(()) => prop_assert!(legal(&before).contains(&(action % 4000))),
                Err(_) => prop_assert_eq!(&state, &before),
            }
            let mut row = Vec::new();
            state.write_row(Encoding::Plain, Symmetry::IDENTITY, &mut row);
            GeneratorGame::layout(Encoding::Plain).validate(&row).unwrap();
            prop_assert_eq!(state.outcome().is_some(), legal(&state).is_empty());
            let again = GeneratorGame::start(&rules, Some(&state.position())).unwrap();
            prop_assert_eq!(again.position(), state.position());
        }
        for &action in &odd {
            state.play_legal(action);
            let _ = (state.outcome(), state.position(), legal(&state).len(), state.least_actions_left());
        }
    }
}

#[test]
fn the_limits_of_size_and_depth_are_reached_and_kept() {
    let mut clan = Clan::start();
    let mut full = false;
    let choices: Vec<u32> = (0..400)
        .map(|number: u32| number.wrapping_mul(2_654_435_761) % 4_000_037 * 2)
        .collect();
    for &choice in &choices {
        let moves: Vec<_> = transformations(&clan)
            .into_iter()
            .filter(|(_, _, after)| after.len() >= clan.len())
            .collect();
        clan = moves[choice as usize / 2 % moves.len()].2;
        full |= clan.len() > 90;
    }
    assert!(full, "{} imps", clan.len());
    assert_eq!(clan.depths()[..clan.len()].iter().max(), Some(&6));
    assert_eq!(grammar::MAX_IMPS, 96);
}
