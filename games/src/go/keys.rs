//! Keys of positions (Zobrist 1970): 64-bit numbers that differ with near certainty if the positions differ.
//!
//! The key of a board is the exclusive or of a constant for each stone. The low ten bits of such a constant are its index, so that
//! two boards that differ by one stone tell by their keys alone which stone it is.

use crate::Player;

/// Number of bits of an index: one of the stone's player, nine of its point.
const INDEX_BITS: u32 = 10;
const POINT_BITS: u32 = 9;
const COUNT: usize = 1 << INDEX_BITS;

static STONES: [u64; COUNT] = {
    let mut keys = [0; COUNT];
    let mut index = 0;
    while index < COUNT {
        keys[index] = mixed(index as u64 + 1) >> INDEX_BITS << INDEX_BITS | index as u64;
        index += 1;
    }
    keys
};

/// Part of the key of a situation in which the second player is to move.
const SECOND: u64 = mixed(0) >> INDEX_BITS << INDEX_BITS;

/// Returns the number of this place in the sequence of the generator SplitMix64 (Steele, Lea and Flood 2014).
const fn mixed(place: u64) -> u64 {
    let number = (place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

const fn index(player: Player, point: usize) -> usize {
    (player.index() << POINT_BITS | point) & (COUNT - 1)
}

/// Returns the key of a stone on a point below 512.
pub(super) fn of_stone(player: Player, point: usize) -> u64 {
    STONES[index(player, point)]
}

/// Returns the part of a situation's key that the player to move contributes.
pub(super) const fn of_mover(player: Player) -> u64 {
    match player {
        Player::First => 0,
        Player::Second => SECOND,
    }
}

/// Returns the point of a stone of this player by which two boards differ. `difference` is the exclusive or of their keys. `None` if
/// they differ in another way.
pub(super) fn point_of(player: Player, difference: u64) -> Option<usize> {
    let low = difference as usize & (COUNT - 1);
    let point = low & ((1 << POINT_BITS) - 1);
    (STONES[low] == difference && index(player, point) == low).then_some(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_one_stone_tells_its_point() {
        for player in [Player::First, Player::Second] {
            for point in 0..512 {
                let key = of_stone(player, point);
                assert_eq!(point_of(player, key), Some(point));
                assert_eq!(point_of(player.other(), key), None);
                assert_eq!(point_of(player, key ^ of_stone(player, point ^ 1)), None);
            }
        }
        assert_eq!(point_of(Player::First, of_mover(Player::Second)), None);
    }
}
