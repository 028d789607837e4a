//! Expands clans into the arrays of the fish-eye network. The table in `onnx`'s `fish_eye` describes the arrays.
//!
//! A batch is the concatenation of its clans: imps are in preorder, one position after the other. Interior imps are
//! numbered by height over the whole batch, so that a network computes them level by level, children first. The table has
//! one row for each sept: that of a leaf is a row of the embedding, that of an interior imp is row
//! [`EMBEDDING_ROWS`]` + number`.

use std::collections::HashMap;

use super::{
    examples::{Example, MAX_EXAMPLES},
    grammar::{self, MAX_DEPTH, ROLES},
    grid::{CELLS, Grid},
    row::Position,
    views::Views,
};

/// Number of rows of the embedding: the one-hot values, and spare rows. Row 0 is "not present".
pub const EMBEDDING_ROWS: usize = 64;
/// Number of grids of a position: both targets and the current render.
pub const GRIDS: usize = 3;

/// Arrays of a batch of B positions with M imps, I of them interior, and V views. All are row-major.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClanBatch {
    /// `[I, ROLES]`: value of each interior imp, and rows of its children in the table, by role. Heights ascend.
    pub roles: Vec<i32>,
    /// `[MAX_DEPTH + 1]`: number of interior imps of height ≤ k.
    pub levels: Vec<i32>,
    /// `[I + 1, MAX_DEPTH]`: rows in the table of the ancestors of each interior imp's children. Row 0 belongs to the
    /// roots.
    pub ancestors: Vec<i32>,
    /// `[M]`: row of the imp's sept in the table.
    pub sept: Vec<i32>,
    /// `[M]`: row of the imp in `ancestors`.
    pub parent: Vec<i32>,
    /// `[M, MAX_DEPTH]`: roles on the path from the root to the imp.
    pub path: Vec<i32>,
    /// `[M]`: number of the imp's position.
    pub position: Vec<i32>,
    /// `[M]`: number of the imp's view.
    pub view: Vec<i32>,
    /// `[B]`: number of the position's first imp.
    pub root: Vec<i32>,
    /// `[B, GRIDS, CELLS]`: symbols of the position's grids.
    pub grids: Vec<i32>,
    /// `[B]`: 1 if the step is marked, else 0.
    pub flags: Vec<i32>,
    /// `[V, CELLS]`: symbols of the views.
    pub views: Vec<i32>,
    /// `[E, 2, CELLS]`: symbols of the different examples of all positions.
    pub examples: Vec<i32>,
    /// `[B, MAX_EXAMPLES]`: 1 + number of each example of the position; 0 in place of those that it does not have.
    pub examples_of: Vec<i32>,
}

/// Collects the positions of a batch and expands them. Memory is used again for the next batch.
#[derive(Clone, Debug, Default)]
pub struct Expander {
    batch: ClanBatch,
    /// Imps of all positions.
    imps: Vec<Imp>,
    views: Views,
    /// Row of each example in the network's table, from 1. Positions of one game share them.
    examples: HashMap<Example, i32>,
}

/// An imp of the batch.
#[derive(Clone, Copy, Debug)]
struct Imp {
    value: u8,
    role: u8,
    /// Number of edges down to the deepest leaf.
    height: u8,
    /// Number of edges up to the root.
    depth: u8,
    /// Place of the parent in the batch. A root is its own parent.
    parent: u32,
    /// Number among the interior imps. Of no meaning for leaves.
    number: i32,
}

impl Expander {
    /// Removes all positions.
    pub fn clear(&mut self) {
        let batch = &mut self.batch;
        for array in [
            &mut batch.roles,
            &mut batch.levels,
            &mut batch.ancestors,
            &mut batch.sept,
            &mut batch.parent,
            &mut batch.path,
            &mut batch.position,
            &mut batch.view,
            &mut batch.root,
            &mut batch.grids,
            &mut batch.flags,
            &mut batch.views,
            &mut batch.examples,
            &mut batch.examples_of,
        ] {
            array.clear();
        }
        self.imps.clear();
        self.examples.clear();
    }

    /// Returns the number of positions so far.
    pub fn positions(&self) -> usize {
        self.batch.root.len()
    }

    /// Returns the number of imps so far.
    pub fn imps(&self) -> usize {
        self.imps.len()
    }

    /// Adds a position.
    pub fn push(&mut self, position: &Position) {
        let first = self.imps.len();
        let number = self.batch.root.len() as i32;
        let clan = &position.clan;
        let imps = clan.values().iter().zip(clan.roles()).zip(clan.parents());
        for (place, ((&value, &role), &parent)) in imps.enumerate() {
            let parent = first + usize::from(parent);
            let depth = match place {
                0 => 0,
                _ => self.imps.get(parent).map_or(0, |parent| parent.depth + 1),
            };
            self.imps.push(Imp {
                value,
                role,
                height: 0,
                depth,
                parent: parent as u32,
                number: 0,
            });
        }
        let end = self.imps.len();
        for place in (first + 1..end).rev() {
            let Imp { parent, height, .. } = self.imps[place];
            let above = &mut self.imps[parent as usize];
            above.height = above.height.max(height + 1);
        }
        let batch = &mut self.batch;
        batch.root.push(first as i32);
        batch.flags.push(i32::from(position.step_marked));
        batch.position.resize(end, number);
        let problem = &position.problem;
        for target in [problem.target(), problem.second_target()] {
            let target = target.unwrap_or(&Grid::ABSENT);
            batch
                .grids
                .extend(target.cells().iter().map(|&symbol| i32::from(symbol)));
        }
        // The root's view is the current render.
        let from = batch.views.len();
        self.views.draw(clan, &mut batch.views, &mut batch.view);
        batch.grids.extend_from_slice(&batch.views[from..from + CELLS]);
        self.push_examples(position);
    }

    fn push_examples(&mut self, position: &Position) {
        let batch = &mut self.batch;
        let mut rows = [0; MAX_EXAMPLES];
        for (row, example) in rows.iter_mut().zip(position.examples.as_slice()) {
            let next = self.examples.len() as i32 + 1;
            *row = *self.examples.entry(*example).or_insert_with(|| {
                let grids = [&example.input, &example.output].into_iter();
                let symbols = grids
                    .flat_map(|grid| grid.cells())
                    .map(|&symbol| i32::from(symbol));
                batch.examples.extend(symbols);
                next
            });
        }
        batch.examples_of.extend(rows);
    }

    /// Returns the arrays of all positions so far.
    pub fn finish(&mut self) -> &ClanBatch {
        self.number_interior();
        // These arrays depend on the whole batch, so they are filled again if positions were added after the last call.
        let batch = &mut self.batch;
        for array in [
            &mut batch.roles,
            &mut batch.ancestors,
            &mut batch.sept,
            &mut batch.parent,
            &mut batch.path,
        ] {
            array.clear();
        }
        let (batch, imps) = (&mut self.batch, &self.imps);
        let interior = batch.levels.last().copied().unwrap_or_default() as usize;
        batch.roles.resize(interior * ROLES, 0);
        batch.ancestors.resize((interior + 1) * MAX_DEPTH, 0);
        batch.path.reserve(imps.len() * MAX_DEPTH);
        for (place, imp) in imps.iter().enumerate() {
            let row = imp.row();
            batch.sept.push(row);
            let mut path = [i32::from(grammar::PATH_ENDED); MAX_DEPTH];
            let mut above = 0;
            if imp.depth > 0 {
                let parent = imp.parent as usize;
                let number = imps[parent].number as usize;
                above = number + 1;
                batch.roles[number * ROLES + usize::from(imp.role)] = row;
                path.copy_from_slice(&batch.path[parent * MAX_DEPTH..][..MAX_DEPTH]);
                path[usize::from(imp.depth) - 1] = i32::from(imp.role);
            }
            batch.parent.push(above as i32);
            batch.path.extend_from_slice(&path);
            if imp.height > 0 {
                let number = imps[place].number as usize;
                batch.roles[number * ROLES] = i32::from(imp.value);
                let own = (number + 1) * MAX_DEPTH;
                batch
                    .ancestors
                    .copy_within(above * MAX_DEPTH..above * MAX_DEPTH + MAX_DEPTH - 1, own + 1);
                batch.ancestors[own] = row;
            }
        }
        batch
    }

    /// Numbers the interior imps by height, each height in the batch's order.
    fn number_interior(&mut self) {
        let mut ends = [0_i32; MAX_DEPTH + 1];
        for imp in &self.imps {
            ends[usize::from(imp.height)] += 1;
        }
        ends[0] = 0;
        for height in 1..=MAX_DEPTH {
            ends[height] += ends[height - 1];
        }
        self.batch.levels.clear();
        self.batch.levels.extend_from_slice(&ends);
        let mut next = ends;
        for imp in self.imps.iter_mut().filter(|imp| imp.height > 0) {
            let next = &mut next[usize::from(imp.height) - 1];
            imp.number = *next;
            *next += 1;
        }
    }
}

impl Imp {
    /// Returns the row of the imp's sept in the table.
    fn row(&self) -> i32 {
        if self.height == 0 {
            i32::from(self.value)
        } else {
            EMBEDDING_ROWS as i32 + self.number
        }
    }
}
