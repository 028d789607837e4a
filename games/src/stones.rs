//! Stones of two players on a square board of up to 19×19 squares: what rows, texts and drawings of Gomoku and Hex share.

use crate::{Player, discs, wide::Wide};

/// Stones on a board. The square of a rank and a file is `side·rank + file`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stones {
    /// Stones of the first player, then of the second.
    players: [Wide; 2],
    /// Squares without a stone.
    empty: Wide,
    pub to_move: Player,
    side: u8,
}

impl Stones {
    /// Returns the empty board with sides of `side` squares, at most 19.
    pub fn none(side: u32) -> Self {
        Self {
            players: [Wide::EMPTY; 2],
            empty: Wide::below(side * side),
            to_move: Player::First,
            side: side as u8,
        }
    }

    /// Returns the number of squares of a side.
    pub fn side(&self) -> u32 {
        self.side.into()
    }

    /// Returns the number of squares.
    pub fn area(&self) -> u32 {
        self.side() * self.side()
    }

    /// Returns the squares without a stone.
    pub const fn empty(&self) -> &Wide {
        &self.empty
    }

    /// Returns the stones of a player.
    pub const fn of(&self, player: Player) -> &Wide {
        &self.players[player.index()]
    }

    /// Returns the numbers of stones of the first and of the second player.
    pub fn counts(&self) -> [u32; 2] {
        self.players.map(|stones| stones.count())
    }

    /// Puts a stone of a player on an empty square.
    pub fn place(&mut self, square: u32, player: Player) {
        self.players[player.index()].insert(square);
        self.empty.remove(square);
    }

    /// Returns the owner of the stone on a square. `None` if the square is empty.
    pub fn owner(&self, square: u32) -> Option<Player> {
        let owns = |player: &Player| self.of(*player).has(square);
        [Player::First, Player::Second].into_iter().find(owns)
    }

    /// Writes the board as [`discs::text`] does.
    pub fn text(&self) -> String {
        discs::text(self.area(), |square| self.owner(square), self.to_move)
    }

    /// Reads what [`Stones::text`] writes.
    ///
    /// # Errors
    /// Sentence that says what is wrong with the text.
    pub fn read(text: &str, side: u32) -> Result<Self, String> {
        let mut stones = Self::none(side);
        stones.to_move = discs::read(text, stones.area(), |square, player| stones.place(square, player))?;
        Ok(stones)
    }

    /// Appends one entry for each square of the board's image in `symmetry`: the square in the plane of the stones of the player to
    /// move (0), of the other stones (1), or of the empty squares (2).
    pub fn write_squares(&self, symmetry: u8, row: &mut Vec<u32>) {
        let (side, area) = (self.side(), self.area());
        let begin = row.len();
        row.extend(2 * area..3 * area);
        for (plane, player) in [(0, self.to_move), (1, self.to_move.other())] {
            self.of(player).squares().for_each(|square| {
                let image = turn(square, side, symmetry);
                if let Some(entry) = row.get_mut(begin + image as usize) {
                    *entry = area * plane + image;
                }
            });
        }
    }
}

/// Returns the image of a square of a board in a symmetry of the square, 0 to 7. Bit 2 mirrors the files; then bits 0 and 1 count
/// quarter turns, clockwise if rank 0 is drawn on top. So 2 turns by 180°, and 7 exchanges ranks and files. A number that is not a
/// square, such as an action of the whole board, is returned unchanged.
pub(crate) const fn turn(square: u32, side: u32, symmetry: u8) -> u32 {
    if square >= side * side {
        return square;
    }
    // Exact for all squares, and quicker than a division, since a loop over squares divides once.
    let rank = (square * ((1 << 16) / side + 1)) >> 16;
    let file = square - side * rank;
    let file = if symmetry & 4 == 0 { file } else { side - 1 - file };
    let (rank, file) = match symmetry & 3 {
        0 => (rank, file),
        1 => (file, side - 1 - rank),
        2 => (side - 1 - rank, side - 1 - file),
        _ => (side - 1 - file, rank),
    };
    side * rank + file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_turn_as_their_coordinates_do() {
        assert_eq!((turn(25, 5, 7), turn(u32::MAX, 19, 1)), (25, u32::MAX));
        for side in 2..=19 {
            for (square, symmetry) in
                (0..side * side).flat_map(|at| (0..8).map(move |symmetry| (at, symmetry)))
            {
                let (mut rank, mut file) = (square / side, square % side);
                if symmetry >= 4 {
                    file = side - 1 - file;
                }
                for _ in 0..symmetry % 4 {
                    (rank, file) = (file, side - 1 - rank);
                }
                assert_eq!(turn(square, side, symmetry), side * rank + file);
            }
        }
    }
}
