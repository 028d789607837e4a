//! Positions as text: the squares from a1, rank by rank (`X` Black, `O` White, `-` empty), a space, the player to move, a space, the
//! number of passes in a row (0 to 2), a space, and the points that only superko forbids (`-` if there are none). A 3×3 board after
//! Black's first move in the centre is `----X---- O 0 -`.
//!
//! Size, komi and the other rules are not in the text. Lost are the earlier positions that cannot be recreated by the next action, the
//! last moves that rows show, the number of actions so far, and the numbers of captured stones.

use super::{
    Go, Rules,
    board::{Board, Content},
};
use crate::value::Player;

impl Go {
    pub(super) fn text(&self) -> String {
        let letter = |point| match self.board.content(point) {
            Content::Stone(Player::First) => 'X',
            Content::Stone(Player::Second) => 'O',
            _ => '-',
        };
        let mut text: String = self.board.points().map(letter).collect();
        let mover = ['X', 'O'][self.to_move.index()];
        text += &format!(" {mover} {} ", self.passes);
        let repeats = self.repeats();
        let is_banned = |&point: &usize| {
            let board = &self.board;
            board.is_empty(point) && !self.is_suicide(point) && !self.allows(point, &repeats)
        };
        let squares = (0..).zip(self.board.points());
        let banned = squares.filter(|(_, point)| is_banned(point));
        let names: Vec<String> = banned.map(|(square, _)| self.squares().name(square)).collect();
        match names.is_empty() {
            true => text.push('-'),
            false => text += &names.join(","),
        }
        text
    }

    /// Reads a position.
    ///
    /// # Errors
    /// Sentence that says what is wrong with the text.
    pub(super) fn read(rules: &Rules, text: &str) -> Result<Self, String> {
        // A file's first line may begin with a byte-order mark.
        let fields: Vec<&str> = text.trim_start_matches('\u{feff}').split_whitespace().collect();
        let [board, mover, passes, banned] = fields[..] else {
            return Err(
                "a position is the letters X, O or - of all squares from a1, the player to move, the passes \
                        in a row, and the forbidden points or -"
                    .into(),
            );
        };
        let board = read_board(rules.size, board)?;
        let to_move = match mover {
            "X" | "x" => Player::First,
            "O" | "o" => Player::Second,
            other => return Err(format!("the player to move is X or O, not {other:?}")),
        };
        let passes = match passes {
            "0" => 0,
            "1" => 1,
            "2" => 2,
            other => return Err(format!("the passes in a row are 0, 1 or 2, not {other:?}")),
        };
        let mut state = Self::on_board(*rules, board, to_move, passes);
        if banned != "-" {
            for name in banned.split(',') {
                state.ban(name)?;
            }
        }
        Ok(state)
    }

    /// Forbids a point for the next action, as if the position after a stone there had occurred.
    fn ban(&mut self, name: &str) -> Result<(), String> {
        let square = self.squares().read(name);
        let square = square.ok_or_else(|| format!("{name:?} is not a point, e.g. d4"))?;
        let point = self.board.point(square as usize);
        if !self.board.is_empty(point) || self.is_suicide(point) {
            return Err(format!(
                "{name} cannot be forbidden by superko: a stone there is illegal anyway"
            ));
        }
        let mut next = self.board.clone();
        next.place(self.to_move, point);
        self.remember(&next, self.to_move.other());
        self.board.note_emptied(point);
        Ok(())
    }
}

fn read_board(size: u32, letters: &str) -> Result<Board, String> {
    let mut board = Board::empty(size);
    let count = letters.chars().count();
    if count != board.area() {
        return Err(format!("the board has {count} squares, not {}", board.area()));
    }
    let mut stones = 0;
    for (square, letter) in letters.chars().enumerate() {
        let player = match letter {
            'X' | 'x' => Player::First,
            'O' | 'o' => Player::Second,
            '-' | '.' => continue,
            _ => return Err(format!("{letter:?} on square {square} is not X, O or -")),
        };
        board.place(player, board.point(square));
        stones += 1;
    }
    // A stone of the whole position that had no liberty was removed at some time.
    if board.stones() != stones {
        return Err("a chain has no liberty".into());
    }
    Ok(board)
}
