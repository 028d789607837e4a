//! Views of all imps of a clan: one grid for the whole clan and one for each shape.
//!
//! A Dot, Line or Rect has one colour, so the cells it paints are a set of 64 bits. A view combines the sets of all such
//! shapes of a sept, the later ones on top.

use super::{
    bounded::Color,
    clan::Clan,
    grammar,
    grid::{ABSENT, CELLS, SIDE},
};

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
