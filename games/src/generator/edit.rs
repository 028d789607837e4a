//! Transformations of septs (subtrees). Each returns true if the result keeps to the limits. If it returns false, the clan
//! is in an unspecified state and must be dropped.

use super::{
    clan::Clan,
    grammar::{
        COORDS, Color, Coordinate, DOT, Direction, GROUP, LINE, MAX_IMPS, MAX_SHAPES, R_COLOR, R_DIRECTION,
        R_HEIGHT, R_LENGTH, R_PIVOT, R_SHAPE, R_SHAPES, R_START, R_TURNS, R_WIDTH, R_X, R_Y, RECT, ROTATION,
        Size, Turns,
    },
};

/// New imp: its value, its role, and its parent, counted from the first new imp.
type New = (u8, u8, u8);

/// Column and row of the pivot of a new Rotation.
const PIVOT: Coordinate = Coordinate::nearest(3);
/// Imps of a new Dot: Dot, Coords, x, y, color.
const FRESH_DOT: [New; 5] = [
    (DOT, 0, 0),
    (COORDS, R_START, 0),
    (Coordinate::LEAST.value(), R_X, 1),
    (Coordinate::LEAST.value(), R_Y, 1),
    (Color::LEAST.value(), R_COLOR, 0),
];
/// Imps of a new Line.
const FRESH_LINE: [New; 7] = [
    (LINE, 0, 0),
    (COORDS, R_START, 0),
    (Coordinate::LEAST.value(), R_X, 1),
    (Coordinate::LEAST.value(), R_Y, 1),
    (Color::LEAST.value(), R_COLOR, 0),
    (Direction::LEAST.value(), R_DIRECTION, 0),
    (Size::LEAST.value(), R_LENGTH, 0),
];
/// Imps of a new Rect.
const FRESH_RECT: [New; 7] = [
    (RECT, 0, 0),
    (Size::LEAST.value(), R_WIDTH, 0),
    (Size::LEAST.value(), R_HEIGHT, 0),
    (COORDS, R_START, 0),
    (Coordinate::LEAST.value(), R_X, 3),
    (Coordinate::LEAST.value(), R_Y, 3),
    (Color::LEAST.value(), R_COLOR, 0),
];

impl Clan {
    /// Appends a new Dot (0), Line (1) or Rect (2) to the list of `imp`.
    pub(super) fn append(&mut self, imp: usize, kind: u8) -> bool {
        let shapes = self.shapes(imp);
        shapes < MAX_SHAPES && self.insert_fresh(self.end(imp), imp, shapes, kind) && self.is_shallow()
    }

    /// Inserts a new shape after `imp` in its list.
    pub(super) fn insert_after(&mut self, imp: usize, kind: u8) -> bool {
        let parent = self.parent(imp);
        if self.shapes(parent) >= MAX_SHAPES || !self.insert_fresh(self.end(imp), parent, 0, kind) {
            return false;
        }
        self.number_shapes(parent);
        true
    }

    /// Removes `imp` from its list. A group must not become empty.
    pub(super) fn delete(&mut self, imp: usize) -> bool {
        let parent = self.parent(imp);
        if parent != 0 && self.shapes(parent) == 1 {
            return false;
        }
        self.remove(imp, self.end(imp));
        self.number_shapes(parent);
        true
    }

    /// Inserts a copy of `imp` after it.
    pub(super) fn duplicate(&mut self, imp: usize) -> bool {
        let (parent, end) = (self.parent(imp), self.end(imp));
        let size = end - imp;
        if self.shapes(parent) >= MAX_SHAPES || !self.make_room(end, size) {
            return false;
        }
        self.values.copy_within(imp..end, end);
        self.roles.copy_within(imp..end, end);
        for copy in end..end + size {
            self.parents[copy] = self.parents[copy - size] + size as u8;
        }
        self.parents[end] = parent as u8;
        self.number_shapes(parent);
        true
    }

    /// Exchanges `imp` and the next shape of its list.
    pub(super) fn swap_with_next(&mut self, imp: usize) -> bool {
        let (middle, parent) = (self.end(imp), self.parent(imp));
        if !self.is_next(middle, parent) {
            return false;
        }
        let end = self.end(middle);
        let (first, second) = ((middle - imp) as u8, (end - middle) as u8);
        for at in imp..middle {
            self.parents[at] = self.parents[at].wrapping_add(second);
        }
        for at in middle..end {
            self.parents[at] = self.parents[at].wrapping_sub(first);
        }
        self.values[imp..end].rotate_left(middle - imp);
        self.roles[imp..end].rotate_left(middle - imp);
        self.parents[imp..end].rotate_left(middle - imp);
        self.parents[imp] = parent as u8;
        self.parents[imp + usize::from(second)] = parent as u8;
        self.number_shapes(parent);
        true
    }

    /// Puts `imp` and the next shape of its list into a new group.
    pub(super) fn group_with_next(&mut self, imp: usize) -> bool {
        let (next, parent) = (self.end(imp), self.parent(imp));
        if !self.is_next(next, parent) || !self.wrap(imp, GROUP, R_SHAPES) {
            return false;
        }
        // The next shape's number is higher by one, because of the new group.
        self.parents[next + 1] = imp as u8;
        self.roles[next + 1] = R_SHAPES + 1;
        self.number_shapes(parent);
        self.is_shallow()
    }

    /// Puts `imp` into a new group, which takes its place.
    pub(super) fn wrap_in_group(&mut self, imp: usize) -> bool {
        self.wrap(imp, GROUP, R_SHAPES) && self.is_shallow()
    }

    /// Puts `imp` into a new Rotation by one quarter turn about (3, 3), which takes its place.
    pub(super) fn wrap_in_rotation(&mut self, imp: usize) -> bool {
        let end = self.end(imp);
        let pivot = [
            (Turns::LEAST.value(), R_TURNS, imp as u8),
            (COORDS, R_PIVOT, imp as u8),
            (PIVOT.value(), R_X, end as u8 + 1),
            (PIVOT.value(), R_Y, end as u8 + 1),
        ];
        if !self.make_room(end, pivot.len()) {
            return false;
        }
        for (at, (value, role, parent)) in (end..).zip(pivot) {
            (self.values[at], self.roles[at], self.parents[at]) = (value, role, parent);
        }
        // The four imps are children of the shape until the Rotation exists; then they become children of the Rotation.
        if !self.wrap(imp, ROTATION, R_SHAPE) {
            return false;
        }
        for at in [end + 1, end + 2] {
            self.parents[at] = imp as u8;
        }
        self.is_shallow()
    }

    /// Replaces `imp`, a group with one shape or a rotation, by its shape.
    pub(super) fn unwrap(&mut self, imp: usize) -> bool {
        let (role, parent) = (self.roles[imp], self.parents[imp]);
        let (child_end, end) = (self.end(imp + 1), self.end(imp));
        if self.values[imp] == GROUP && child_end != end {
            return false;
        }
        self.remove(child_end, end);
        self.remove(imp, imp + 1);
        self.roles[imp] = role;
        self.parents[imp] = parent;
        true
    }

    /// Makes a Dot a Line to the right of length 1.
    pub(super) fn dot_to_line(&mut self, imp: usize) -> bool {
        let end = self.end(imp);
        if !self.make_room(end, 2) {
            return false;
        }
        self.values[imp] = LINE;
        let leaves = [
            (Direction::LEAST.value(), R_DIRECTION),
            (Size::LEAST.value(), R_LENGTH),
        ];
        for (at, (value, role)) in (end..).zip(leaves) {
            (self.values[at], self.roles[at], self.parents[at]) = (value, role, imp as u8);
        }
        true
    }

    /// Makes a Dot a Rect of 1×1.
    pub(super) fn dot_to_rect(&mut self, imp: usize) -> bool {
        if !self.make_room(imp + 1, 2) {
            return false;
        }
        self.values[imp] = RECT;
        for (at, role) in (imp + 1..).zip([R_WIDTH, R_HEIGHT]) {
            (self.values[at], self.roles[at], self.parents[at]) = (Size::LEAST.value(), role, imp as u8);
        }
        true
    }

    /// Makes a Line of length 1 a Dot.
    pub(super) fn line_to_dot(&mut self, imp: usize) -> bool {
        if !self.is_least(imp + 6) {
            return false;
        }
        self.values[imp] = DOT;
        self.remove(imp + 5, imp + 7);
        true
    }

    /// Makes a Rect of 1×1 a Dot.
    pub(super) fn rect_to_dot(&mut self, imp: usize) -> bool {
        if !self.is_least(imp + 1) || !self.is_least(imp + 2) {
            return false;
        }
        self.values[imp] = DOT;
        self.remove(imp + 1, imp + 3);
        true
    }

    /// Moves all Coords of the sept by one cell to the left (0), right (1), up (2) or down (3).
    pub(super) fn shift(&mut self, imp: usize, direction: u8) -> bool {
        let (role, is_more) = (if direction < 2 { R_X } else { R_Y }, direction & 1 == 1);
        for at in imp..self.end(imp) {
            if self.roles[at] == role {
                match Coordinate::read(self.values[at]).step(is_more) {
                    Some(moved) => self.values[at] = moved.value(),
                    None => return false,
                }
            }
        }
        true
    }

    fn parent(&self, imp: usize) -> usize {
        usize::from(self.parents[imp])
    }

    /// True if `imp` is a shape in the list of `parent`.
    fn is_next(&self, imp: usize, parent: usize) -> bool {
        imp < self.len() && self.parent(imp) == parent && self.roles[imp] >= R_SHAPES
    }

    /// Inserts a new shape (see [`Clan::append`]) at number `at`, with place `place` in the list of `parent`.
    fn insert_fresh(&mut self, at: usize, parent: usize, place: usize, kind: u8) -> bool {
        let fresh: &[New] = match kind {
            0 => &FRESH_DOT,
            1 => &FRESH_LINE,
            _ => &FRESH_RECT,
        };
        if !self.make_room(at, fresh.len()) {
            return false;
        }
        let color = Color::nearest(u8::from(self.background() == 0));
        for (new, &(value, role, inside)) in (at..).zip(fresh) {
            self.values[new] = if role == R_COLOR { color.value() } else { value };
            self.roles[new] = role;
            self.parents[new] = inside + at as u8;
        }
        self.roles[at] = R_SHAPES + place as u8;
        self.parents[at] = parent as u8;
        true
    }

    /// Inserts a new imp in the place of `imp`, whose sept becomes its child in `role`. Later numbers grow by one.
    fn wrap(&mut self, imp: usize, value: u8, role: u8) -> bool {
        let (own_role, own_parent) = (self.roles[imp], self.parents[imp]);
        if !self.make_room(imp, 1) {
            return false;
        }
        (self.values[imp], self.roles[imp], self.parents[imp]) = (value, own_role, own_parent);
        self.roles[imp + 1] = role;
        self.parents[imp + 1] = imp as u8;
        true
    }

    /// Opens a gap of `count` imps at `at`, and adjusts the numbers of parents from `at` on. False if the clan would be too
    /// large.
    fn make_room(&mut self, at: usize, count: usize) -> bool {
        let len = self.len();
        if len + count > MAX_IMPS || at > len {
            return false;
        }
        self.values.copy_within(at..len, at + count);
        self.roles.copy_within(at..len, at + count);
        self.parents.copy_within(at..len, at + count);
        for parent in &mut self.parents[at + count..len + count] {
            if usize::from(*parent) >= at {
                *parent += count as u8;
            }
        }
        self.len = (len + count) as u8;
        true
    }

    /// Removes the imps `from..to`, and adjusts the numbers of later parents.
    fn remove(&mut self, from: usize, to: usize) {
        let (len, count) = (self.len(), to - from);
        for column in [&mut self.values, &mut self.roles, &mut self.parents] {
            column.copy_within(to..len, from);
            column[len - count..len].fill(0);
        }
        for parent in &mut self.parents[from..len - count] {
            if usize::from(*parent) >= to {
                *parent -= count as u8;
            }
        }
        self.len = (len - count) as u8;
    }

    /// Sets the roles of the shapes in the list of `parent` to their places.
    fn number_shapes(&mut self, parent: usize) {
        let (mut at, end, mut place) = (parent + 1, self.end(parent), 0);
        while at < end {
            if self.roles[at] >= R_SHAPES {
                self.roles[at] = R_SHAPES + place;
                place += 1;
            }
            at = self.end(at);
        }
    }
}
