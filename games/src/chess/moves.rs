//! The 73×8×8 move numbers of dlchess: `64·plane + 8·from_rank + from_file`.
//!
//! Planes 0–55 are queen-like moves, `7·direction + distance - 1`, directions N, S, NE, SW, NW, SE, E, W; planes
//! 56–63 knight moves; planes 64–72 under-promotions, `64 + 3·g + p`, g = straight, NE/SW, NW/SE, p = knight,
//! bishop, rook. Promotions to a queen are queen-like moves, castling moves the king by two files.
//!
//! A horizontal move by seven files counts as one step NW (a to h) or SE (h to a). That comes from the way
//! dlchess tells directions apart, is kept for the sake of its networks, and takes no other move's number.
//!
//! Two frames are used: *absolute* numbers, with White at the bottom, are action ids; numbers in a [`View`] are
//! policy entries. dlchess turns the board by 180° when Black moves.

use crate::game::Action;

/// Number of move numbers, most of which no piece can ever use from its square.
pub(super) const ACTIONS: usize = 73 * 64;

/// What a pawn becomes, as far as the number tells: a queen's promotion has the number of a plain move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Under {
    Knight,
    Bishop,
    Rook,
}

/// A move as its number gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) under: Option<Under>,
}

/// How the board is seen when moves are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// By 180°, for Black.
    pub(super) turned: bool,
    /// Left for right, after that.
    pub(super) mirrored: bool,
}

impl View {
    /// A square as seen in this view, and back again.
    pub(super) const fn square(self, square: u32) -> u32 {
        (if self.turned { square ^ 63 } else { square }) ^ (if self.mirrored { 7 } else { 0 })
    }

    /// The number, in this view, of a move that has the absolute number `action`; others are given back as they are.
    pub(super) fn number(self, action: Action) -> u32 {
        let table = &VIEWS[usize::from(self.turned) + 2 * usize::from(self.mirrored)];
        table.get(action as usize).map_or(action, |&number| number.into())
    }
}

/// The number of a move that is no under-promotion. Squares that no piece connects give a number without meaning.
pub(super) fn number(from: u32, to: u32) -> u32 {
    NUMBERS[(from & 63) as usize][(to & 63) as usize].into()
}

/// The number of an under-promotion.
pub(super) const fn under_promotion(from: u32, to: u32, under: Under) -> u32 {
    let file_step = (to & 7) as i32 - (from & 7) as i32;
    let rises = to > from;
    let group = match (file_step, rises) {
        (0, _) => 0,
        (1, true) | (-1, false) => 1,
        _ => 2,
    };
    64 * (64 + 3 * group + under as u32) + from
}

/// The move that has this number; `None` where no piece could make it.
pub(super) fn step(action: Action) -> Option<Step> {
    STEPS.get(action as usize).copied().flatten()
}

const NOT_A_MOVE: u16 = u16::MAX;

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

const fn queen_or_knight(from: u32, to: u32) -> u16 {
    let ranks = (to >> 3) as i32 - (from >> 3) as i32;
    let files = (to & 7) as i32 - (from & 7) as i32;
    let plane = match knight(ranks, files) {
        Some(knight) => 56 + knight,
        None => {
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
                _ => return NOT_A_MOVE,
            };
            7 * direction + distance - 1
        }
    };
    (64 * plane as u32 + from) as u16
}

const fn knight(ranks: i32, files: i32) -> Option<i32> {
    let mut which = 0;
    while which < KNIGHT.len() {
        if KNIGHT[which].0 == ranks && KNIGHT[which].1 == files {
            return Some(which as i32);
        }
        which += 1;
    }
    None
}

static NUMBERS: [[u16; 64]; 64] = {
    let mut table = [[NOT_A_MOVE; 64]; 64];
    let mut from = 0;
    while from < 64 {
        let mut to = 0;
        while to < 64 {
            table[from][to] = queen_or_knight(from as u32, to as u32);
            to += 1;
        }
        from += 1;
    }
    table
};

static STEPS: [Option<Step>; ACTIONS] = steps();

const fn steps() -> [Option<Step>; ACTIONS] {
    const UNDER: [Under; 3] = [Under::Knight, Under::Bishop, Under::Rook];
    let mut table = [None; ACTIONS];
    let mut from = 0;
    while from < 64 {
        let mut to = 0;
        while to < 64 {
            let number = queen_or_knight(from, to);
            if number != NOT_A_MOVE {
                table[number as usize] = Some(Step {
                    from,
                    to,
                    under: None,
                });
            }
            let promotes = (from >> 3 == 6 && to >> 3 == 7) || (from >> 3 == 1 && to >> 3 == 0);
            if promotes && (from & 7).abs_diff(to & 7) <= 1 {
                let mut which = 0;
                while which < 3 {
                    let under = Some(UNDER[which]);
                    table[under_promotion(from, to, UNDER[which]) as usize] = Some(Step { from, to, under });
                    which += 1;
                }
            }
            to += 1;
        }
        from += 1;
    }
    table
}

static VIEWS: [[u16; ACTIONS]; 4] = [
    view(false, false),
    view(true, false),
    view(false, true),
    view(true, true),
];

const fn view(turned: bool, mirrored: bool) -> [u16; ACTIONS] {
    const STEPS: [Option<Step>; ACTIONS] = steps();
    let view = View { turned, mirrored };
    let mut table = [0; ACTIONS];
    let mut action = 0;
    while action < ACTIONS {
        table[action] = match STEPS[action] {
            None => action as u16,
            Some(Step { from, to, under }) => {
                let (from, to) = (view.square(from), view.square(to));
                match under {
                    None => queen_or_knight(from, to),
                    Some(under) => under_promotion(from, to, under) as u16,
                }
            }
        };
        action += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_move_has_a_number_of_its_own() {
        let possible = STEPS.iter().flatten().count();
        // 1,456 queen moves, 336 knight moves, 3 · (8 + 7 + 7) under-promotions for each side.
        assert_eq!(possible, 1456 + 336 + 2 * 66);
        for (action, step) in STEPS.iter().enumerate() {
            let Some(step) = step else { continue };
            let again = match step.under {
                None => number(step.from, step.to),
                Some(under) => under_promotion(step.from, step.to, under),
            };
            assert_eq!(again as usize, action);
        }
    }

    #[test]
    fn views_are_permutations_of_the_moves() {
        for turned in [false, true] {
            for mirrored in [false, true] {
                let view = View { turned, mirrored };
                let mut seen = vec![false; ACTIONS];
                for action in (0..ACTIONS as u32).filter(|&action| step(action).is_some()) {
                    let seen_as = view.number(action);
                    assert!(step(seen_as).is_some());
                    assert!(!std::mem::replace(&mut seen[seen_as as usize], true));
                    assert_eq!(view.number(seen_as), action, "a view undoes itself");
                }
            }
        }
    }

    #[test]
    fn a_rank_crossed_in_one_move_counts_as_a_diagonal_step() {
        assert_eq!(number(0, 7), 64 * 28);
        assert_eq!(number(7, 0), 64 * 35 + 7);
        let mirrored = View {
            turned: false,
            mirrored: true,
        };
        assert_eq!(mirrored.number(number(0, 7)), number(7, 0));
    }
}
