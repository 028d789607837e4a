//! Expands clans into the arrays of the fish-eye network. The table in `onnx`'s `fish_eye` describes the arrays.
//!
//! A batch is the concatenation of its clans: imps are in preorder, one position after the other. Interior imps are
//! numbered by height over the whole batch, so that a network computes them level by level, children first. The table has
//! one row for each sept: that of a leaf is a row of the embedding, that of an interior imp is row
//! [`EMBEDDING_ROWS`]` + number`.

use std::collections::HashMap;

use super::{
    clan::Clan,
    grammar::{self, Color, MAX_DEPTH, ROLES},
    grid::{ABSENT, CELLS, Grid, SIDE},
    problem::{Example, MAX_EXAMPLES},
    row::ClanPosition,
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

    /// Returns the number of imps so far.
    pub fn imps(&self) -> usize {
        self.imps.len()
    }

    /// Adds a position.
    pub fn push(&mut self, position: &ClanPosition) {
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

    fn push_examples(&mut self, position: &ClanPosition) {
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

/// Draws views. Memory is used again for the next clan.
#[derive(Clone, Debug, Default)]
pub(super) struct Views {
    /// Number after the last imp of each sept.
    ends: Vec<usize>,
    /// Shapes that paint, in the order of painting.
    painted: Vec<Painted>,
}

/// Cells that one shape paints.
#[derive(Clone, Copy, Debug)]
struct Painted {
    shape: u8,
    color: Color,
    cells: u64,
}

impl Views {
    /// Appends the clan's render and one view for each shape to `views`, and for each imp the number of its view to
    /// `view_of`. An imp that is not a shape has the view of its nearest enclosing shape, or else the render (see
    /// [`Clan::imp_view`]).
    pub(super) fn draw(&mut self, clan: &Clan, views: &mut Vec<i32>, view_of: &mut Vec<i32>) {
        self.find_ends(clan);
        self.painted.clear();
        clan.stamps(|stamp| match self.painted.last_mut() {
            Some(last) if last.shape == stamp.shape => last.cells |= 1 << stamp.cell,
            _ => self.painted.push(Painted {
                shape: stamp.shape,
                color: stamp.color,
                cells: 1 << stamp.cell,
            }),
        });
        let first = views.len();
        let (width, height, background) = (clan.width(), clan.height(), i32::from(clan.background()));
        views.extend((0..CELLS).map(|cell| {
            let is_there = cell % SIDE < width && cell / SIDE < height;
            if is_there { background } else { i32::from(ABSENT) }
        }));
        paint(&self.painted, &mut views[first..]);

        let before = view_of.len();
        view_of.push((first / CELLS) as i32);
        let imps = clan.values().iter().zip(clan.parents()).enumerate().skip(1);
        for (imp, (&value, &parent)) in imps {
            if !grammar::is_shape(value) {
                view_of.push(view_of[before + usize::from(parent)]);
                continue;
            }
            let from = views.len();
            views.resize(from + CELLS, ABSENT.into());
            // Shapes paint in preorder, so those of a sept are a range.
            let place = |imp: usize| {
                self.painted
                    .partition_point(|shape| usize::from(shape.shape) < imp)
            };
            let inside = place(imp)..place(self.ends[imp]);
            paint(&self.painted[inside], &mut views[from..]);
            view_of.push((from / CELLS) as i32);
        }
    }

    fn find_ends(&mut self, clan: &Clan) {
        self.ends.clear();
        self.ends.extend(1..=clan.len());
        for (imp, &parent) in clan.parents().iter().enumerate().skip(1).rev() {
            let parent = usize::from(parent);
            self.ends[parent] = self.ends[parent].max(self.ends[imp]);
        }
    }
}

/// Paints the cells of shapes into a view, later ones on top. Each cell is written once.
fn paint(painted: &[Painted], view: &mut [i32]) {
    let mut free = u64::MAX;
    for shape in painted.iter().rev() {
        let mut cells = shape.cells & free;
        free &= !cells;
        while cells != 0 {
            view[cells.trailing_zeros() as usize] = shape.color.get().into();
            cells &= cells - 1;
        }
    }
}
