//! Area scoring (Tromp-Taylor): a player's points are the player's stones, and the empty points from which a path over empty points
//! reaches stones of this player only.

use super::board::{Board, Content, Point};
use crate::Player;

/// Points that are not in any region.
const OUTSIDE: u16 = u16::MAX;

/// Regions: sets of connected points of a board.
pub(super) struct Regions {
    /// Number of the region of each point.
    of: Vec<u16>,
    /// Number of regions.
    pub count: usize,
}

impl Regions {
    /// Returns the regions of the points whose content is `inside`.
    pub fn of(board: &Board, inside: impl Fn(Content) -> bool) -> Self {
        let mut regions = Self {
            of: vec![OUTSIDE; board.point_count()],
            count: 0,
        };
        let mut open = Vec::new();
        for begin in board.points() {
            if !inside(board.content(begin)) || regions.of[begin] != OUTSIDE {
                continue;
            }
            regions.of[begin] = regions.count as u16;
            open.push(begin);
            while let Some(point) = open.pop() {
                for next in board.neighbours(point) {
                    if inside(board.content(next)) && regions.of[next] == OUTSIDE {
                        regions.of[next] = regions.count as u16;
                        open.push(next);
                    }
                }
            }
            regions.count += 1;
        }
        regions
    }

    /// Returns the number of the region of a point.
    pub fn get(&self, point: Point) -> Option<usize> {
        let region = self.of[point];
        (region != OUTSIDE).then_some(usize::from(region))
    }
}

/// Returns the owner of each square: 1 Black, -1 White, 0 nobody.
pub(super) fn owners(board: &Board) -> Vec<i8> {
    let regions = Regions::of(board, |content| content == Content::Empty);
    // Players whose stones a region reaches: bit 0 Black, bit 1 White.
    let mut reached = vec![0u8; regions.count];
    for point in board.points() {
        if let Some(region) = regions.get(point) {
            for neighbour in board.neighbours(point) {
                if let Content::Stone(player) = board.content(neighbour) {
                    reached[region] |= 1 << player.index();
                }
            }
        }
    }
    let owner = |point| match (board.content(point), regions.get(point)) {
        (Content::Stone(Player::First), _) => 1,
        (Content::Stone(Player::Second), _) => -1,
        (_, Some(region)) => [0, 1, -1, 0][usize::from(reached[region] & 3)],
        (_, None) => 0,
    };
    board.points().map(owner).collect()
}

/// Returns Black's points less White's, without compensation.
pub(super) fn score(board: &Board) -> i32 {
    owners(board).into_iter().map(i32::from).sum()
}
