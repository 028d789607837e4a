//! Random clans and random play for the other tests.

use games::{
    Drawn, Game, Outcome,
    generator::{Clan, ClanPosition, Encoding, Example, Examples, GeneratorGame, Grid, Move, Problem},
};
use proptest::prelude::*;

pub use crate::shared::{drawer, legal};

/// Returns random numbers that choose moves (see [`grow`]).
pub fn choices(most: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 0..most)
}

/// Returns the moves of a clan that do not fail, found by trying all of them: imp, move, clan after it.
pub fn transformations(clan: &Clan) -> Vec<(usize, Move, Clan)> {
    let mut found = Vec::new();
    for imp in 0..clan.len() {
        for action in (2..38).map(Move) {
            if clan.mask(imp) >> action.0 & 1 == 1
                && let Some(after) = clan.after(imp, action)
            {
                found.push((imp, action, after));
            }
        }
    }
    found
}

/// Returns the clan that these choices lead to. Even numbers choose among the moves that change the tree, so that it
/// grows deep.
pub fn grow(choices: &[u32]) -> Clan {
    let mut clan = Clan::start();
    for &choice in choices {
        let mut moves = transformations(&clan);
        if choice & 1 == 0 {
            moves.retain(|(_, action, _)| action.0 < 21);
        }
        if !moves.is_empty() {
            clan = moves[choice as usize / 2 % moves.len()].2;
        }
    }
    clan
}

pub fn any_clan() -> impl Strategy<Value = Clan> {
    choices(40).prop_map(|choices| grow(&choices))
}

pub fn grid(rows: &[&[u8]]) -> Grid {
    Grid::from_rows(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>()).unwrap()
}

/// Returns different examples of these grids, in order.
pub fn examples_of(grids: [Grid; 3]) -> Vec<Example> {
    let [one, two, three] = grids;
    let pairs = [(one, two), (two, three), (three, one)];
    let mut examples = pairs.map(|(input, output)| Example { input, output }).to_vec();
    examples.sort_by_key(Example::packed);
    examples.dedup();
    examples
}

/// Returns positions of all kinds of problems. Most pairs have one to three examples.
pub fn any_position() -> impl Strategy<Value = ClanPosition> {
    let clans = [any_clan(), any_clan(), any_clan(), any_clan()];
    (clans, 0usize..7, any::<bool>()).prop_map(|([clan, one, two, three], kind, step_marked)| {
        let grids = [one, two, three].map(|clan| clan.render());
        let mut examples = examples_of(grids);
        examples.truncate(kind.saturating_sub(3));
        ClanPosition {
            clan,
            problem: match kind {
                0 => Problem::Free,
                1 => Problem::Draw(grids[0]),
                _ => Problem::Pair(grids[0], grids[2]),
            },
            examples: Examples::new(examples).unwrap(),
            step_marked: step_marked && kind != 1,
        }
    })
}

pub fn written(position: &ClanPosition) -> Vec<u32> {
    let mut row = Vec::new();
    position.write(&mut row);
    row
}

/// Returns the row of a state in canonical colours.
pub fn canonical_row(state: &GeneratorGame) -> Vec<u32> {
    let symmetry = state.canonical(&legal(state), &mut Vec::new()).unwrap();
    let mut row = Vec::new();
    state.write_row(Encoding::Examples, symmetry, &mut row);
    row
}

/// True if the known solution solves the problem.
pub fn solves(drawn: &Drawn<GeneratorGame>) -> bool {
    let mut state = drawn.start.clone();
    let is_played = drawn.solution.iter().all(|&action| state.play(action).is_ok());
    is_played && state.outcome() == Some(Outcome::Scored(1.0))
}

/// Returns the roles on the path from the root down to an imp.
pub fn path(clan: &Clan, imp: usize) -> Vec<u8> {
    let above = |&imp: &usize| (imp > 0).then(|| usize::from(clan.parents()[imp]));
    let imps = std::iter::successors(Some(imp), above);
    let mut path: Vec<u8> = imps.filter(|&imp| imp > 0).map(|imp| clan.roles()[imp]).collect();
    path.reverse();
    path
}

/// Image of each colour under a permutation.
pub type Colors = [u8; 10];

pub const SAME_COLORS: Colors = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

/// Draws a permutation of the colours 2 to 9.
pub fn draw_colors(draw: &mut impl FnMut(usize) -> usize) -> Colors {
    let mut colors = SAME_COLORS;
    for last in (3..10).rev() {
        colors.swap(last, 2 + draw(last - 1));
    }
    colors
}

pub fn recolored(colors: &Colors, grid: &Grid) -> Grid {
    let rows: Vec<Vec<u8>> = grid.rows();
    let image = |row: Vec<u8>| row.into_iter().map(|cell| colors[usize::from(cell)]).collect();
    Grid::from_rows(&rows.into_iter().map(image).collect::<Vec<_>>()).unwrap()
}

pub fn recolored_clan(colors: &Colors, clan: &Clan) -> Clan {
    let image = |imp: u32| match imp & 0xff {
        value @ 17..27 => imp - value + 17 + u32::from(colors[value as usize - 17]),
        _ => imp,
    };
    Clan::unpack(&clan.packed().map(image).collect::<Vec<_>>()).unwrap()
}
