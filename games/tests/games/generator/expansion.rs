//! Arrays of the network, compared with the clans they were made from.

use std::collections::HashSet;

use games::generator::{
    Clan, ClanPosition, Example, Grid,
    expansion::{ClanBatch, EMBEDDING_ROWS, Expander, GRIDS},
    grammar::{MAX_DEPTH, PATH_ENDED, ROLES},
    grid::CELLS,
    problem::MAX_EXAMPLES,
};
use proptest::prelude::*;

use super::play::{any_position, path};

/// One clan of a batch.
struct InBatch<'a> {
    batch: &'a ClanBatch,
    clan: &'a Clan,
    /// Place of the clan's root in the batch.
    first: usize,
}

impl InBatch<'_> {
    /// Returns the row of an imp's sept in the table.
    fn row(&self, imp: usize) -> i32 {
        self.batch.sept[self.first + imp]
    }

    fn children(&self, imp: usize) -> impl Iterator<Item = usize> {
        let parents = self.clan.parents();
        (1..self.clan.len()).filter(move |&child| usize::from(parents[child]) == imp)
    }

    /// Returns the ancestors of an imp, its parent first.
    fn ancestors(&self, imp: usize) -> impl Iterator<Item = usize> {
        let parents = self.clan.parents();
        std::iter::successors(Some(imp), move |&imp| {
            (imp > 0).then(|| usize::from(parents[imp]))
        })
        .skip(1)
    }

    fn height(&self, imp: usize) -> usize {
        self.children(imp)
            .map(|child| self.height(child) + 1)
            .max()
            .unwrap_or(0)
    }

    fn check(&self, imp: usize) {
        let (batch, clan) = (self.batch, self.clan);
        let at = self.first + imp;
        // The sept: a row of the embedding, or the row of an interior imp with its role matrix.
        match usize::try_from(self.row(imp) - EMBEDDING_ROWS as i32) {
            Err(_) => {
                assert_eq!(self.height(imp), 0);
                assert_eq!(self.row(imp), i32::from(clan.values()[imp]));
            }
            Ok(number) => {
                let height = self.height(imp);
                assert!((batch.levels[height - 1]..batch.levels[height]).contains(&(number as i32)));
                let mut roles = [0; ROLES];
                roles[0] = i32::from(clan.values()[imp]);
                for child in self.children(imp) {
                    roles[usize::from(clan.roles()[child])] = self.row(child);
                }
                assert_eq!(batch.roles[number * ROLES..][..ROLES], roles);
            }
        }
        // The context: parent, grandparent, …
        let mut context = [0; MAX_DEPTH];
        for (entry, above) in context.iter_mut().zip(self.ancestors(imp)) {
            *entry = self.row(above);
        }
        assert_eq!(
            batch.ancestors[batch.parent[at] as usize * MAX_DEPTH..][..MAX_DEPTH],
            context
        );
        let mut path: Vec<i32> = path(clan, imp).into_iter().map(i32::from).collect();
        path.resize(MAX_DEPTH, PATH_ENDED.into());
        assert_eq!(batch.path[at * MAX_DEPTH..][..MAX_DEPTH], path);
        assert_eq!(self.view(batch.view[at] as usize), *clan.imp_view(imp).cells());
    }

    fn view(&self, number: usize) -> [u8; CELLS] {
        std::array::from_fn(|cell| self.batch.views[number * CELLS + cell] as u8)
    }
}

fn check(positions: &[ClanPosition], batch: &ClanBatch) {
    let mut first = 0;
    for (number, position) in positions.iter().enumerate() {
        let clan = &position.clan;
        let clan_in_batch = InBatch { batch, clan, first };
        assert_eq!(batch.root[number], first as i32);
        assert_eq!(batch.flags[number], i32::from(position.step_marked));
        let absent = &Grid::ABSENT;
        let targets = [position.problem.target(), position.problem.second_target()];
        let grids = targets
            .map(|target| *target.unwrap_or(absent))
            .into_iter()
            .chain([clan.render()]);
        let cells: Vec<i32> = grids.flat_map(|grid| *grid.cells()).map(i32::from).collect();
        assert_eq!(batch.grids[number * GRIDS * CELLS..][..GRIDS * CELLS], cells);
        let rows = &batch.examples_of[number * MAX_EXAMPLES..][..MAX_EXAMPLES];
        for (place, &row) in rows.iter().enumerate() {
            let example = position.examples.as_slice().get(place);
            assert_eq!(row > 0, example.is_some());
            if let Some(Example { input, output }) = example {
                let cells = input.cells().iter().chain(output.cells());
                let cells: Vec<i32> = cells.copied().map(i32::from).collect();
                assert_eq!(
                    batch.examples[(row as usize - 1) * 2 * CELLS..][..2 * CELLS],
                    cells
                );
            }
        }
        for imp in 0..clan.len() {
            assert_eq!(batch.position[first + imp], number as i32);
            clan_in_batch.check(imp);
        }
        first += clan.len();
    }
    let different: HashSet<&Example> = positions
        .iter()
        .flat_map(|position| position.examples.as_slice())
        .collect();
    assert_eq!(batch.examples.len(), different.len() * 2 * CELLS);
    assert_eq!(batch.sept.len(), first);
    assert_eq!(batch.levels[0], 0);
    let interior = batch.levels[MAX_DEPTH] as usize;
    assert_eq!(batch.roles.len(), interior * ROLES);
    assert_eq!(batch.ancestors.len(), (interior + 1) * MAX_DEPTH);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arrays_agree_with_the_clans(positions in prop::collection::vec(any_position(), 1..6)) {
        // Positions share their examples.
        let positions = [positions.clone(), positions].concat();
        let mut expander = Expander::default();
        // An earlier batch must not change the arrays.
        for position in positions.iter().rev() {
            expander.push(position);
        }
        expander.finish();
        expander.clear();
        for position in &positions {
            expander.push(position);
            expander.finish();
        }
        check(&positions, expander.finish());
    }
}

#[test]
fn a_batch_without_positions_gives_empty_arrays() {
    let mut expander = Expander::default();
    let batch = expander.finish();
    assert_eq!(batch.levels, [0; MAX_DEPTH + 1]);
    assert_eq!(batch.ancestors, [0; MAX_DEPTH]);
    assert!(batch.sept.is_empty() && batch.views.is_empty());
}
