//! Points that a player cannot lose any more.
//!
//! Chains are pass-alive if the other player cannot capture them even if their owner always passes. Benson (1976, "Life in the game
//! of Go") proved that these are the largest set of chains of which each has two vital regions. A region is a set of connected points
//! without stones of the owner. It is vital to a chain if each of its empty points is a liberty of that chain, and all chains next to it
//! are in the set. Where suicide is legal, the other player can also empty the points of own stones there, so all points
//! count, not only the empty ones.

use super::{
    area::Regions,
    board::{Board, Content, Heads, Point},
};
use crate::Player;

/// Facts about a region without stones of a player.
#[derive(Clone, Copy)]
struct Region {
    /// Chains of the player of which all empty points of the region are liberties.
    vital_to: Heads,
    /// Number of points.
    points: u32,
    /// True once an empty point was seen.
    is_open: bool,
    /// True if a chain next to the region is not pass-alive.
    is_broken: bool,
    /// True if a stone of the other player is in the region, or a point that is next to no stone of the player.
    has_room: bool,
}

impl Region {
    const NEW: Self = Self {
        vital_to: Heads::NONE,
        points: 0,
        is_open: false,
        is_broken: false,
        has_room: false,
    };
}

/// Points that are certain for a player.
pub(super) struct Certain {
    /// Number of pass-alive stones.
    stones: u32,
    /// Number of points of the territory between them.
    territory: u32,
}

impl Certain {
    pub const fn points(&self) -> u32 {
        self.stones + self.territory
    }
}

/// Returns a number of points that [`certain`] does not exceed, in a fraction of its time: stones of the player, and empty points
/// next to such stones only.
pub(super) fn most_points(board: &Board, player: Player) -> u32 {
    let own = Content::Stone(player);
    let other = Content::Stone(player.other());
    let counts = |&point: &Point| match board.content(point) {
        Content::Empty => {
            let near = board.neighbours(point).map(|next| board.content(next));
            near.contains(&own) && !near.contains(&other)
        }
        content => content == own,
    };
    board.points().filter(counts).count() as u32
}

/// Returns the points that are certain for a player: the pass-alive stones, and the regions between pass-alive chains in
/// which the other player has no stone and each point is next to one of these chains.
///
/// A stone of the other player in such a region can be captured. Each answer of the owner there extends a pass-alive chain, so that
/// the other player never finds two eyes. Territories with stones of the other player are not counted until these are captured, since
/// the final count takes the board as it is.
pub(super) fn certain(board: &Board, player: Player, suicide: bool) -> Certain {
    let own = Content::Stone(player);
    let regions = Regions::of(board, |content| content != own && content != Content::Edge);
    let mut found = vec![Region::NEW; regions.count];
    for point in board.points() {
        let Some(region) = regions.get(point).and_then(|number| found.get_mut(number)) else {
            continue;
        };
        region.points += 1;
        let is_empty = board.is_empty(point);
        let mut chains = Heads::NONE;
        for next in board.neighbours(point) {
            if board.content(next) == own {
                chains.add(board.head(next));
            }
        }
        region.has_room |= !is_empty || chains.as_slice().is_empty();
        if is_empty || suicide {
            region.vital_to = match region.is_open {
                true => region.vital_to.shared(&chains),
                false => chains,
            };
            region.is_open = true;
        }
    }
    let mut is_alive = vec![true; board.point_count()];
    let mut eyes = vec![0u8; board.point_count()];
    loop {
        eyes.fill(0);
        for region in found.iter().filter(|region| !region.is_broken) {
            for &chain in region.vital_to.as_slice() {
                eyes[chain] = eyes[chain].saturating_add(1);
            }
        }
        let mut has_changed = false;
        for stone in board.points().filter(|&point| board.content(point) == own) {
            let head = board.head(stone);
            if eyes[head] >= 2 {
                continue;
            }
            has_changed |= is_alive[head];
            is_alive[head] = false;
            for next in board.neighbours(stone) {
                if let Some(number) = regions.get(next) {
                    found[number].is_broken = true;
                }
            }
        }
        if !has_changed {
            break;
        }
    }
    let is_alive_stone = |&point: &Point| board.content(point) == own && is_alive[board.head(point)];
    let whole = found
        .iter()
        .filter(|region| !region.is_broken && !region.has_room);
    Certain {
        stones: board.points().filter(is_alive_stone).count() as u32,
        territory: whole.map(|region| region.points).sum(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Adds the squares of the player's stones that the other player can capture if the player always passes.
    fn capturable(board: &Board, player: Player, seen: &mut HashSet<u64>, found: &mut HashSet<Point>) {
        if !seen.insert(board.key()) {
            return;
        }
        let own = Content::Stone(player);
        for point in board.points().filter(|&point| board.is_empty(point)) {
            let mut next = board.clone();
            let [_, suicide] = next.place(player.other(), point);
            if suicide == 0 {
                found.extend(
                    board
                        .points()
                        .filter(|&stone| board.content(stone) == own && next.content(stone) != own),
                );
                capturable(&next, player, seen, found);
            }
        }
    }

    /// Random boards, mostly full: the pass-alive stones are those that no sequence of moves of the other player captures.
    #[test]
    fn pass_alive_stones_are_those_that_cannot_be_captured() {
        let mut seed = 1u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut alive_boards = 0;
        for round in 0..600 {
            let size = 3 + round % 2;
            let mut board = Board::empty(size);
            for _ in 0..3 * size * size {
                let square = draw(u64::from(size * size)) as usize;
                let player = if draw(4) == 0 {
                    Player::Second
                } else {
                    Player::First
                };
                let point = board.point(square);
                if board.is_empty(point) && draw(6) > 0 {
                    board.place(player, point);
                }
            }
            if board.points().filter(|&point| board.is_empty(point)).count() > 6 {
                continue;
            }
            let own = Content::Stone(Player::First);
            let stones = board.points().filter(|&point| board.content(point) == own);
            let mut captured = HashSet::new();
            capturable(&board, Player::First, &mut HashSet::new(), &mut captured);
            let safe = stones.filter(|stone| !captured.contains(stone)).count() as u32;
            let certain = certain(&board, Player::First, false);
            assert_eq!(certain.stones, safe, "{board:?}");
            assert!(certain.points() <= most_points(&board, Player::First));
            alive_boards += u32::from(safe > 0);
        }
        assert!(alive_boards > 20, "{alive_boards}");
    }
}
