//! Moves as numbers: action ids, and the 73×8×8 policy entries of dlchess.
//!
//! An **action id** is absolute: `64·from + to`. Castling moves the king by two files. A promotion with such an id is to a
//! queen; under-promotions have ids from 4096 on.
//!
//! A **policy entry** is `64·plane + 8·from_rank + from_file`, with squares as the player to move sees them ([`View`];
//! dlchess turns the board by 180° for Black). Planes:
//!
//! - 0–55: moves of a queen, `7·direction + distance - 1`, directions N, S, NE, SW, NW, SE, E, W;
//! - 56–63: moves of a knight;
//! - 64–72: under-promotions, `64 + 3·direction + piece`, directions straight, NE/SW, NW/SE, pieces knight, bishop, rook.
//!
//! A horizontal move by seven files has the entry of one step NW (a to h) or SE (h to a). dlchess computes directions so,
//! and its networks expect it. No other move has that entry.

use cozy_chess::Piece;

use crate::game::Action;

/// Number of action ids, and of policy entries. Most of them are not moves.
pub(super) const ACTIONS: u32 = 73 * 64;

/// First id of an under-promotion. Ids below it are `64·from + to`.
const UNDER_PROMOTIONS: u32 = 64 * 64;

/// Piece that a pawn is promoted to, if it is not a queen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnderPromotion {
    Knight,
    Bishop,
    Rook,
}

impl UnderPromotion {
    pub(super) const ALL: [Self; 3] = [Self::Knight, Self::Bishop, Self::Rook];

    /// Returns the piece.
    pub(super) const fn piece(self) -> Piece {
        match self {
            Self::Knight => Piece::Knight,
            Self::Bishop => Piece::Bishop,
            Self::Rook => Piece::Rook,
        }
    }
}

/// Move of an action id, between squares below 64. There may be no piece that can make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) under: Option<UnderPromotion>,
}

impl Step {
    /// Returns the action id of the move. An under-promotion must start on the second or seventh rank, and go one rank on
    /// and at most one file aside.
    pub(super) const fn action(self) -> Action {
        let Some(under) = self.under else {
            return 64 * self.from + self.to;
        };
        let is_white = self.to > self.from;
        let file = self.from % 8;
        let sideways = self.to % 8 + 1 - file;
        UNDER_PROMOTIONS + 9 * (8 * is_white as u32 + file) + 3 * sideways + under as u32
    }

    /// Returns the move with this id. `None` for numbers that are not ids.
    pub(super) fn of(action: Action) -> Option<Self> {
        let Some(number) = action.checked_sub(UNDER_PROMOTIONS) else {
            return Some(Self {
                from: action / 64,
                to: action % 64,
                under: None,
            });
        };
        let (pawn, sideways) = (number / 9, number / 3 % 3);
        let file = pawn % 8;
        let to_file = (file + sideways).checked_sub(1).filter(|&file| file < 8)?;
        let (from_rank, to_rank) = match pawn / 8 {
            0 => (1, 0),
            1 => (6, 7),
            _ => return None,
        };
        Some(Self {
            from: 8 * from_rank + file,
            to: 8 * to_rank + to_file,
            under: UnderPromotion::ALL.get(number as usize % 3).copied(),
        })
    }

    /// Returns the policy entry of the move in `view`. A move that no piece can make gives the entry of another one.
    pub(super) fn entry(self, view: View) -> u32 {
        let (from, to) = (view.square(self.from), view.square(self.to));
        match self.under {
            None => ENTRIES[(from & 63) as usize][(to & 63) as usize].into(),
            Some(under) => {
                let direction = match (to % 8 + 1 - from % 8, to > from) {
                    (1, _) => 0,
                    (2, true) | (0, false) => 1,
                    _ => 2,
                };
                64 * (64 + 3 * direction + under as u32) + from
            }
        }
    }
}

/// Transformation of the board before policy entries are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// True if the board is turned by 180°, for Black.
    pub(super) turned: bool,
    /// True if left and right are exchanged after that.
    pub(super) mirrored: bool,
}

/// Mirror image of White's view: left and right are exchanged. This is the symmetry of chess.
pub(super) const MIRROR: View = View {
    turned: false,
    mirrored: true,
};

impl View {
    /// Returns the image of a square in this view. The map is its own inverse.
    pub(super) const fn square(self, square: u32) -> u32 {
        (if self.turned { square ^ 63 } else { square }) ^ (if self.mirrored { 7 } else { 0 })
    }
}

/// Returns the image of each policy entry in the left-right mirror. Entries that no move has are their own images. The map
/// is the same for both players, because turning by 180° and mirroring commute.
pub(super) fn mirrored_entries() -> Vec<u32> {
    let own = View {
        turned: false,
        mirrored: false,
    };
    let mut entries: Vec<u32> = (0..ACTIONS).collect();
    let moves = (0..ACTIONS).filter_map(Step::of).filter(|step| {
        let by = |side: u32| (step.to / side % 8) as i32 - (step.from / side % 8) as i32;
        step.under.is_some() || plane(by(8), by(1)).is_some()
    });
    for step in moves {
        if let Some(entry) = entries.get_mut(step.entry(own) as usize) {
            *entry = step.entry(MIRROR);
        }
    }
    entries
}

/// Moves of a knight as (ranks, files), in the order of their planes.
const KNIGHT: [(i32, i32); 8] = [
    (2, 1),
    (1, 2),
    (-1, 2),
    (-2, 1),
    (-2, -1),
    (-1, -2),
    (1, -2),
    (2, -1),
];

/// Entry of each move but under-promotions, by start and end.
static ENTRIES: [[u16; 64]; 64] = {
    let mut table = [[0; 64]; 64];
    let mut from = 0;
    while from < 64 {
        let mut to = 0;
        while to < 64 {
            if let Some(plane) = plane(to / 8 - from / 8, to % 8 - from % 8) {
                table[from as usize][to as usize] = (64 * plane + from) as u16;
            }
            to += 1;
        }
        from += 1;
    }
    table
};

/// Returns the plane of a move by this many ranks and files. `None` if neither a queen nor a knight can make it.
const fn plane(ranks: i32, files: i32) -> Option<i32> {
    let mut number = 0;
    while number < KNIGHT.len() {
        if KNIGHT[number].0 == ranks && KNIGHT[number].1 == files {
            return Some(56 + number as i32);
        }
        number += 1;
    }
    let (direction, distance) = match (ranks, files) {
        (0, 7) => (4, 1),
        (0, -7) => (5, 1),
        (1.., 0) => (0, ranks),
        (..=-1, 0) => (1, -ranks),
        (0, 1..) => (6, files),
        (0, ..=-1) => (7, -files),
        (1.., _) if ranks == files => (2, ranks),
        (..=-1, _) if ranks == files => (3, -ranks),
        (1.., _) if ranks == -files => (4, ranks),
        (..=-1, _) if ranks == -files => (5, -ranks),
        _ => return None,
    };
    Some(7 * direction + distance - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const VIEWS: [View; 4] = [
        View {
            turned: false,
            mirrored: false,
        },
        View {
            turned: true,
            mirrored: false,
        },
        View {
            turned: false,
            mirrored: true,
        },
        View {
            turned: true,
            mirrored: true,
        },
    ];

    /// Returns all moves that some piece can make on an empty board.
    fn possible() -> Vec<Step> {
        let connected = |step: &Step| {
            let by = |shift: u32| (step.to >> shift & 7) as i32 - (step.from >> shift & 7) as i32;
            plane(by(3), by(0)).is_some()
        };
        (0..ACTIONS)
            .filter_map(Step::of)
            .filter(|step| step.under.is_some() || connected(step))
            .collect()
    }

    #[test]
    fn ids_and_moves_are_one_to_one() {
        for action in 0..ACTIONS {
            if let Some(step) = Step::of(action) {
                assert_eq!(step.action(), action);
            }
        }
        assert_eq!(Step::of(ACTIONS), None);
        assert_eq!(Step::of(u32::MAX), None);
        // 1,456 queen moves, 336 knight moves, 3 · (8 + 7 + 7) under-promotions for each side.
        assert_eq!(possible().len(), 1456 + 336 + 2 * 66);
    }

    #[test]
    fn policy_entries_are_distinct_in_every_view() {
        for view in VIEWS {
            let mut entries = HashMap::new();
            for step in possible() {
                assert!(step.entry(view) < ACTIONS);
                assert_eq!(entries.insert(step.entry(view), step), None);
            }
        }
    }

    #[test]
    fn the_map_of_entries_is_its_own_inverse_and_agrees_with_the_view() {
        let images = mirrored_entries();
        for (entry, &image) in images.iter().enumerate() {
            assert_eq!(images[image as usize] as usize, entry);
        }
        assert!(possible().iter().all(|step| {
            let entry = step.entry(VIEWS[0]) as usize;
            images[entry] == step.entry(MIRROR)
        }));
    }

    #[test]
    fn a_horizontal_move_by_seven_files_has_the_entry_of_a_diagonal_step() {
        let across = Step {
            from: 0,
            to: 7,
            under: None,
        };
        let back = Step {
            from: 7,
            to: 0,
            under: None,
        };
        assert_eq!(across.entry(VIEWS[0]), 64 * 28);
        assert_eq!(back.entry(VIEWS[0]), 64 * 35 + 7);
        assert_eq!(across.entry(VIEWS[2]), back.entry(VIEWS[0]));
    }
}
