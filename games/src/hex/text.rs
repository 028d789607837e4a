//! Positions as text: a letter for each cell from a1, rank by rank, then the player to move. `X` is Red, `O` is Blue, `-` is an empty
//! cell. The numbers of stones tell whether Blue has swapped: Blue then has a stone that no turn placed.

use super::{Hex, Rules};
use crate::{stones::Stones, value::Player};

/// Reads a position.
///
/// # Errors
/// Sentence that says what is wrong with the text.
pub(super) fn read(text: &str, rules: &Rules) -> Result<Hex, String> {
    let stones = Stones::read(text, rules.size)?;
    let [red, blue] = stones.counts();
    let more = red as i32 - blue as i32;
    let is_possible = match stones.to_move {
        Player::First => more == 0 || more == -1 && rules.swap,
        Player::Second => more == 1 || more == 0 && red > 0 && rules.swap,
    };
    if !is_possible {
        return Err("the numbers of stones do not fit the player to move".into());
    }
    let mut hex = Hex::empty(rules);
    let [mut is_over, mut is_lost] = [false; 2];
    for player in [Player::First, Player::Second] {
        for cell in stones.of(player).squares() {
            hex.place(cell, player);
        }
        let has_won = hex.links[player.index()].are_joined();
        is_over |= has_won && player == stones.to_move;
        is_lost |= has_won && player != stones.to_move;
    }
    if is_over {
        return Err("the player to move has won already".into());
    }
    hex.stones.to_move = stones.to_move;
    hex.is_lost = is_lost;
    hex.can_swap = rules.swap && (red, blue) == (1, 0);
    Ok(hex)
}
