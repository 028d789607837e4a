//! Strict mask: the moves that do not fail, found without making them. An Oops is a move that fails.

use super::{
    clan::Clan,
    grammar::{
        self, COORDS, Color, Coordinate, GENERATOR, GROUP, LINE, MAX_DEPTH, MAX_IMPS, MAX_SHAPES, R_SHAPES,
        R_X, RECT,
    },
    moves::{MOVES, Move, new_value},
};
use crate::game::Action;

/// Hashes of the clans of the episode so far, by which moves back to one of them are detected.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Visited {
    keys: Vec<u64>,
    /// Bit n is set if a clan of n imps was visited. Most transformations change the number of imps, so that this bit
    /// suffices and no hash is computed.
    sizes: u128,
}

impl Visited {
    pub(super) fn insert(&mut self, key: u64, size: usize) {
        self.keys.push(key);
        self.sizes |= 1 << (size & 127);
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.sizes = 0;
    }

    pub(super) fn contains(&self, key: u64) -> bool {
        self.keys.contains(&key)
    }

    fn has_size(&self, size: usize) -> bool {
        self.sizes >> (size & 127) & 1 == 1
    }
}

impl Clone for Visited {
    fn clone(&self) -> Self {
        Self {
            keys: self.keys.clone(),
            sizes: self.sizes,
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.keys.clone_from(&source.keys);
        self.sizes = source.sizes;
    }
}

/// Properties of the sept of each imp.
struct Septs {
    /// Number of imps, the root of the sept included.
    sizes: [u8; MAX_IMPS],
    /// Number of edges up to the root of the clan.
    depths: [u8; MAX_IMPS],
    /// Number of edges down to the deepest leaf.
    heights: [u8; MAX_IMPS],
    /// Number of shapes in the imp's list.
    shapes: [u8; MAX_IMPS],
    /// Directions in which all Coords can move: bit 0 left, 1 right, 2 up, 3 down.
    movable: [u8; MAX_IMPS],
}

impl Septs {
    fn of(clan: &Clan) -> Self {
        let mut septs = Self {
            sizes: [1; MAX_IMPS],
            depths: clan.depths(),
            heights: [0; MAX_IMPS],
            shapes: [0; MAX_IMPS],
            movable: [0b1111; MAX_IMPS],
        };
        for imp in (1..clan.len()).rev() {
            let parent = usize::from(clan.parents[imp]);
            if clan.values[imp] == COORDS {
                let [x, y] = [imp + 1, imp + 2].map(|leaf| Coordinate::read(clan.values[leaf]));
                let steps = [x.step(false), x.step(true), y.step(false), y.step(true)];
                let movable = steps.iter().enumerate();
                septs.movable[imp] =
                    movable.fold(0, |set, (bit, step)| set | u8::from(step.is_some()) << bit);
            }
            septs.sizes[parent] += septs.sizes[imp];
            septs.heights[parent] = septs.heights[parent].max(septs.heights[imp] + 1);
            septs.shapes[parent] += u8::from(clan.roles[imp] >= R_SHAPES);
            septs.movable[parent] &= septs.movable[imp];
        }
        septs
    }
}

/// Returns the change of the clan's hash when the Coords of each imp's sept move left, right, up or down. Of no meaning for a
/// move that fails.
fn shifts(clan: &Clan) -> [[u64; 4]; MAX_IMPS] {
    let mut changes = [[0u64; 4]; MAX_IMPS];
    for imp in (1..clan.len()).rev() {
        if clan.values[imp] == COORDS {
            for (axis, leaf) in [imp + 1, imp + 2].into_iter().enumerate() {
                let value = clan.values[leaf];
                let old = clan.hash_of(leaf, value);
                for is_more in [false, true] {
                    if let Some(new) = Coordinate::read(value).step(is_more) {
                        changes[imp][2 * axis + usize::from(is_more)] =
                            clan.hash_of(leaf, new.value()).wrapping_sub(old);
                    }
                }
            }
        }
        let own = changes[imp];
        let parent = &mut changes[usize::from(clan.parents[imp])];
        for (sum, change) in parent.iter_mut().zip(own) {
            *sum = sum.wrapping_add(change);
        }
    }
    changes
}

impl Clan {
    /// Appends the moves that do not fail, as actions, ascending. Of the marks, those in the bits of `marks` are appended.
    /// `hash` is the clan's hash. With `visited`, moves back to a visited clan fail; `salt` is added to a clan's hash to
    /// get its key there.
    pub(super) fn strict_moves(
        &self,
        hash: u64,
        marks: u64,
        salt: u64,
        visited: Option<&Visited>,
        actions: &mut Vec<Action>,
    ) {
        let septs = Septs::of(self);
        let shifts = visited.map(|_| shifts(self));
        for imp in 0..self.len() {
            let mut moves = self.mask(imp) & !self.oopses(imp, &septs);
            if imp == 0 {
                moves &= !0b11 | marks;
            }
            while moves != 0 {
                let action = moves.trailing_zeros() as u8;
                moves &= moves - 1;
                if let (Some(visited), Some(shifts)) = (visited, &shifts)
                    && action > 1
                    && self.leads_back(imp, action, hash, salt, &septs, shifts, visited)
                {
                    continue;
                }
                actions.push((imp * MOVES) as Action + Action::from(action));
            }
        }
    }

    /// Returns the moves of `imp` that the mask allows but that fail, as bits.
    fn oopses(&self, imp: usize, septs: &Septs) -> u64 {
        let (value, role) = (self.values[imp], self.roles[imp]);
        let (depth, height) = (usize::from(septs.depths[imp]), usize::from(septs.heights[imp]));
        let room = MAX_IMPS - self.len();
        let shapes = usize::from(septs.shapes[imp]);
        let mut wrong = 0u64;
        let mut forbid = |holds: bool, from: u8, to: u8| {
            let bits = (u64::MAX >> (63 - to)) & (u64::MAX << from);
            wrong |= if holds { bits } else { 0 };
        };
        match value {
            GENERATOR | GROUP => {
                let is_full = shapes >= MAX_SHAPES || room < 5 || value == GROUP && depth + 3 > MAX_DEPTH;
                forbid(is_full, Move::APPEND_DOT, Move::APPEND_RECT);
                forbid(room < 7, Move::APPEND_DOT + 1, Move::APPEND_RECT);
                forbid(value == GROUP && shapes != 1, Move::UNWRAP, Move::UNWRAP);
            }
            LINE => forbid(!self.is_least(imp + 6), Move::LINE_TO_DOT, Move::LINE_TO_DOT),
            RECT => {
                let is_more = !self.is_least(imp + 1) || !self.is_least(imp + 2);
                forbid(is_more, Move::RECT_TO_DOT, Move::RECT_TO_DOT);
            }
            grammar::DOT => forbid(room < 2, Move::DOT_TO_LINE, Move::DOT_TO_RECT),
            _ if grammar::is_leaf(value) => {
                for action in [Move::INC, Move::DEC] {
                    forbid(new_value(value, role, action).is_none(), action, action);
                }
                if let Some(color) = Color::of(value) {
                    let own = Move::SET_COLOR + color.get();
                    forbid(true, own, own);
                }
            }
            _ => {}
        }
        let still = u64::from(!septs.movable[imp] & 0b1111);
        if grammar::is_shape(value) {
            let is_deep = depth + height + 1 > MAX_DEPTH;
            forbid(is_deep || room < 1, Move::WRAP_GROUP, Move::WRAP_GROUP);
            forbid(is_deep || room < 5, Move::WRAP_ROTATION, Move::WRAP_ROTATION);
        }
        if role >= R_SHAPES {
            let parent = usize::from(self.parents[imp]);
            let siblings = usize::from(septs.shapes[parent]);
            let size = usize::from(septs.sizes[imp]);
            let is_full = siblings >= MAX_SHAPES;
            forbid(is_full || room < 5, Move::INSERT_DOT, Move::INSERT_RECT);
            forbid(room < 7, Move::INSERT_DOT + 1, Move::INSERT_RECT);
            forbid(is_full || room < size, Move::DUPLICATE, Move::DUPLICATE);
            forbid(parent != 0 && siblings == 1, Move::DELETE, Move::DELETE);
            let is_last = usize::from(role - R_SHAPES) + 1 >= siblings;
            forbid(is_last, Move::SWAP, Move::SWAP);
            let next = if is_last { imp } else { imp + size };
            let is_deep = depth + height.max(usize::from(septs.heights[next])) + 1 > MAX_DEPTH;
            forbid(
                is_last || is_deep || room < 1,
                Move::GROUP_WITH_NEXT,
                Move::GROUP_WITH_NEXT,
            );
        }
        wrong | still << Move::MOVE_LEFT
    }

    /// True if a move that does not fail otherwise leads to a visited clan.
    #[expect(
        clippy::too_many_arguments,
        reason = "strict_moves computes them once for all imps"
    )]
    fn leads_back(
        &self,
        imp: usize,
        action: u8,
        hash: u64,
        salt: u64,
        septs: &Septs,
        shifts: &[[u64; 4]; MAX_IMPS],
        visited: &Visited,
    ) -> bool {
        let key = hash.wrapping_add(salt);
        if (Move::MOVE_LEFT..=Move::MOVE_DOWN).contains(&action) {
            let change = shifts[imp][usize::from(action - Move::MOVE_LEFT)];
            return visited.contains(key.wrapping_add(change));
        }
        let value = self.values[imp];
        if let Some(new) = new_value(value, self.roles[imp], action) {
            let change = self.hash_of(imp, new).wrapping_sub(self.hash_of(imp, value));
            return visited.contains(key.wrapping_add(change));
        }
        let (len, size) = (self.len(), usize::from(septs.sizes[imp]));
        let after = match action {
            Move::APPEND_DOT | Move::INSERT_DOT | Move::WRAP_ROTATION => len + 5,
            Move::APPEND_DOT..=Move::INSERT_RECT => len + 7,
            Move::DELETE => len - size,
            Move::DUPLICATE => len + size,
            Move::WRAP_GROUP | Move::GROUP_WITH_NEXT => len + 1,
            Move::UNWRAP if value == GROUP => len - 1,
            Move::UNWRAP => len - 5,
            Move::DOT_TO_LINE | Move::DOT_TO_RECT => len + 2,
            Move::LINE_TO_DOT | Move::RECT_TO_DOT => len - 2,
            _ => len,
        };
        let clan_after = || self.after(imp, Move(action));
        visited.has_size(after)
            && clan_after().is_some_and(|clan| visited.contains(clan.hash().wrapping_add(salt)))
    }
}

const _: () = assert!(R_X + 1 == grammar::R_Y, "x comes before y in Coords");
