//! Inputs of the graph, made from the arrays of a batch.

use games::generator::{
    expansion::{ClanBatch, GRIDS},
    grammar::{MAX_DEPTH, ROLES},
    grid::CELLS,
};

/// One input of a batch: int32, row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input<'a> {
    /// Name in the graph.
    pub name: &'static str,
    /// Elements, row-major.
    pub numbers: &'a [i32],
    /// Sizes of all axes but the first.
    pub inner: &'static [usize],
}

impl Input<'_> {
    /// Returns the sizes of all axes.
    pub fn sides(&self) -> Vec<usize> {
        let of_row: usize = self.inner.iter().product();
        std::iter::once(self.numbers.len() / of_row.max(1))
            .chain(self.inner.iter().copied())
            .collect()
    }
}

/// Returns all inputs of the graph.
pub fn inputs(arrays: &ClanBatch) -> [Input<'_>; 12] {
    let input = |name, numbers, inner| Input { name, numbers, inner };
    [
        input(super::ROLES, arrays.roles.as_slice(), &[ROLES]),
        input(super::LEVELS, &arrays.levels, &[]),
        input(super::ANCESTORS, &arrays.ancestors, &[MAX_DEPTH]),
        input(super::SEPT, &arrays.sept, &[]),
        input(super::PARENT, &arrays.parent, &[]),
        input(super::PATH, &arrays.path, &[MAX_DEPTH]),
        input(super::POSITION, &arrays.position, &[]),
        input(super::VIEW, &arrays.view, &[]),
        input(super::ROOT, &arrays.root, &[]),
        input(super::GRIDS, &arrays.grids, &[GRIDS, CELLS]),
        input(super::FLAGS, &arrays.flags, &[1]),
        input(super::VIEWS, &arrays.views, &[CELLS]),
    ]
}
