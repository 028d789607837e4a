//! The position "Oops": one for all moves that fail. The specification's rules offer such moves, the strict ones do not.

use games::{
    Game, Outcome, Symmetry,
    generator::{Clan, Cycles, Encoding, EpisodeEnd, GeneratorGame, Grid, Illegal, Move, Problem, Rules},
};
use proptest::prelude::*;

use super::play::{any_clan, legal, transformations};

fn row(state: &GeneratorGame) -> Vec<u32> {
    let mut row = Vec::new();
    state.write_row(Encoding::Plain, Symmetry::IDENTITY, &mut row);
    row
}

/// Returns the Oops of a start clan without a problem, by a mark.
fn first_oops() -> GeneratorGame {
    let mut state = GeneratorGame::posed(&Rules::oops(), Problem::Draw(Grid::ABSENT));
    state.play(GeneratorGame::action(0, Move::MARK_COMPLETE)).unwrap();
    state
}

#[test]
fn the_default_rules_are_strict_and_those_of_the_specification_can_be_set() {
    assert_eq!(Rules::default().illegal, Illegal::Strict);
    let read: Rules = serde_json::from_str(r#"{"illegal":"oops"}"#).unwrap();
    assert_eq!(read, Rules::oops());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// State, render, hash, row, text and value of an Oops tell nothing of the clan, the problem, the step or the move before.
    #[test]
    fn every_failed_move_leads_to_one_position(
        clan in any_clan(), first in any_clan(), second in any_clan(), kind in 0u8..4, cycles: bool,
    ) {
        let rules = Rules {
            cycles: if cycles { Cycles::Allow } else { Cycles::Forbid },
            ..Rules::oops()
        };
        let problem = match kind {
            0 => Problem::Draw(first.render()),
            _ => Problem::Pair(first.render(), second.render()),
        };
        let mut state = GeneratorGame::from_clan(&rules, problem, clan);
        if kind == 3 {
            let text = state.position().replacen('{', "{\"marked\":true,", 1);
            state = GeneratorGame::start(&rules, Some(&text)).unwrap();
        }
        let mut failed = 0;
        for action in legal(&state) {
            let mut after = state.clone();
            after.play(action).unwrap();
            if after.end() != Some(EpisodeEnd::Oops) {
                continue;
            }
            failed += 1;
            let oops = first_oops();
            prop_assert_eq!(&after, &oops);
            prop_assert_eq!(after.render(), Grid::ABSENT);
            prop_assert_eq!(after.key(), oops.key());
            prop_assert_ne!(after.key(), state.key());
            prop_assert_eq!(row(&after), row(&oops));
            prop_assert_eq!(after.position(), oops.position());
            prop_assert_eq!((after.clan(), after.step_marked(), after.plies()), (&Clan::start(), false, 0));
            prop_assert_eq!(after.outcome(), Some(Outcome::Scored(0.0)));
            prop_assert!(legal(&after).is_empty());
            prop_assert_ne!(&after, &state);
        }
        prop_assert!(failed > 0);
    }

    /// The specification's rules offer what kind and role of an imp allow, and a move fails there if and only if the strict rules do
    /// not offer it. Marks are offered by both.
    #[test]
    fn strict_rules_leave_out_the_moves_that_fail(clan in any_clan(), target in any_clan()) {
        let problem = Problem::Draw(target.render());
        let open = GeneratorGame::from_clan(&Rules::oops(), problem.clone(), clan);
        let strict = GeneratorGame::from_clan(&Rules::default(), problem, clan);
        let offered = legal(&strict);
        let masked: u32 = (0..clan.len()).map(|imp| clan.mask(imp).count_ones()).sum();
        prop_assert_eq!(legal(&open).len(), masked as usize);
        // Exchanging equal shapes leads back to the same clan.
        let fitting = transformations(&clan).into_iter().filter(|(_, _, after)| *after != clan);
        prop_assert_eq!(offered.len(), fitting.count() + 2);
        for action in legal(&open) {
            let mut after = open.clone();
            after.play(action).unwrap();
            let is_mark = action < 2;
            prop_assert!(is_mark || (after.end() == Some(EpisodeEnd::Oops)) != offered.contains(&action));
            prop_assert_eq!(strict.clone().play(action).is_ok(), offered.contains(&action));
        }
    }
}

#[test]
fn an_oops_is_read_from_its_text() {
    let oops = first_oops();
    let again = GeneratorGame::start(&Rules::default(), Some(&oops.position())).unwrap();
    assert_eq!((&again, again.end()), (&oops, Some(EpisodeEnd::Oops)));
    let mut other = again.clone();
    assert!(other.play(GeneratorGame::action(0, Move::MARK_COMPLETE)).is_err());
    other.clone_from(&GeneratorGame::posed(&Rules::default(), Problem::Free));
    assert_ne!(other, oops);
}
