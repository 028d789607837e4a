//! Problems drawn from the grammar: what they reach that random walks do not, and that nothing changes without
//! them.

use games::{
    Drawn, Game,
    generator::{GeneratorGame, Grid, Rules},
};

use crate::shared::{drawer, fnv1a64};

fn rules(drawings: u8, pairs: u8) -> Rules {
    Rules {
        drawings,
        pairs,
        ..Rules::default()
    }
}

/// Number of cells of the longest diagonal of one colour on a grid whose other cells have another one, which must be one colour too.
fn diagonal(grid: &Grid) -> usize {
    let rows = grid.rows();
    let at = |x: i32, y: i32| -> Option<u8> {
        let row = rows.get(usize::try_from(y).ok()?)?;
        row.get(usize::try_from(x).ok()?).copied()
    };
    let length = |x: i32, y: i32, dx: i32| {
        let own = at(x, y);
        let same = (1..9)
            .take_while(|step| at(x + step * dx, y + step) == own)
            .count();
        1 + same
    };
    let cells = || (0..8).flat_map(|y| (0..8).map(move |x| (x, y)));
    let count = |color: u8| cells().filter(|&(x, y)| at(x, y) == Some(color)).count();
    let all = cells().filter(|&(x, y)| at(x, y).is_some()).count();
    let lengths = cells().filter_map(|(x, y)| {
        let color = at(x, y)?;
        let other = cells().find_map(|(x, y)| at(x, y).filter(|&other| other != color))?;
        let longest = length(x, y, 1).max(length(x, y, -1));
        (count(color) == longest && count(color) + count(other) == all).then_some(longest)
    });
    lengths.max().unwrap_or(0)
}

/// Counts of what 500 problems of level 16 show: the widths of the grids, and single diagonals of three cells or more.
fn reached(drawings: u8) -> ([usize; 9], usize) {
    let mut draw = drawer(13);
    let (mut widths, mut diagonals) = ([0; 9], 0);
    for _ in 0..500 {
        let drawn = GeneratorGame::draw_start(&rules(drawings, 0), 16, &mut draw).unwrap();
        let grid = drawn.start.problem().target().unwrap();
        widths[grid.size().0] += 1;
        diagonals += usize::from(diagonal(grid) >= 3);
    }
    (widths, diagonals)
}

#[test]
fn drawings_reach_what_random_walks_hardly_reach() {
    let (walked, walked_diagonals) = reached(0);
    let (drawn, diagonals) = reached(100);
    assert!(walked[1..5].iter().all(|&count| count == 0), "{walked:?}");
    assert!(drawn[1..].iter().all(|&count| count >= 10), "{drawn:?}");
    assert!(
        diagonals >= 5 && diagonals > 2 * walked_diagonals,
        "{walked_diagonals}, {diagonals}"
    );
}

/// Only drawings have grids of fewer than five columns, as the test before shows.
#[test]
fn the_share_of_drawings_is_that_of_the_rules() {
    let mut draw = drawer(14);
    let small = |drawn: &Drawn<GeneratorGame>| {
        let grid = drawn.start.problem().target().unwrap();
        grid.size().0 < 5
    };
    let mut count = |drawings| {
        let drawn = (0..600).map(|_| GeneratorGame::draw_start(&rules(drawings, 0), 16, &mut draw).unwrap());
        drawn.filter(small).count()
    };
    let (half, all) = (count(50), count(100));
    assert!((35 * all..65 * all).contains(&(100 * half)), "{half} of {all}");
    let fault = GeneratorGame::start(&rules(101, 0), None).unwrap_err();
    assert!(fault.to_string().contains("drawings"), "{fault}");
}

/// FNV-1a over the texts of held-out problems of all kinds and levels, computed before there were drawings.
#[test]
fn problems_of_rules_without_drawings_stay_what_they_were() {
    let mut draw = drawer(15);
    let mut texts = String::new();
    for (pairs, tasks) in [(0, 0), (100, 0), (0, 100), (40, 20)] {
        let rules = Rules {
            pairs,
            tasks,
            ..Rules::default()
        };
        for level in [2, 4, 8, 16] {
            for drawn in [
                GeneratorGame::draw_held_out(&rules, level, &mut draw).unwrap(),
                GeneratorGame::draw_start(&rules, level, &mut draw).unwrap(),
            ] {
                texts += &format!("{}{:?}", drawn.start.position(), drawn.solution);
            }
        }
    }
    assert_eq!(fnv1a64(texts.bytes()), 6_905_580_402_613_944_914);
}
