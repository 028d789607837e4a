//! Games with discs of two colours on 8×8 squares: what their rows, texts and drawings share.

use crate::{
    Game, Player, PolicyHead, RowForm, RowLayout,
    planes::{ConstantPlane, PlaneStack, SQUARES},
};

const OWN: u32 = 0;
const OTHER: u32 = 1;
const EMPTY: u32 = 2;

/// Discs on a board: bit `8·rank + file`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Discs {
    /// Discs of the player to move.
    pub own: u64,
    /// Discs of the other player.
    pub other: u64,
    pub to_move: Player,
}

impl Discs {
    /// Returns the discs of the first player, then of the second.
    pub const fn by_player(self) -> [u64; 2] {
        match self.to_move {
            Player::First => [self.own, self.other],
            Player::Second => [self.other, self.own],
        }
    }

    /// Returns the board of these players, whose turn it is.
    pub const fn of_players([first, second]: [u64; 2], to_move: Player) -> Self {
        let (own, other) = match to_move {
            Player::First => (first, second),
            Player::Second => (second, first),
        };
        Self { own, other, to_move }
    }

    /// Returns the squares with a disc.
    pub const fn all(self) -> u64 {
        self.own | self.other
    }

    /// Returns the image of the board under a map of bitboards.
    pub fn map(self, image: impl Fn(u64) -> u64) -> Self {
        Self {
            own: image(self.own),
            other: image(self.other),
            to_move: self.to_move,
        }
    }

    /// Returns the same board with the other player to move.
    pub const fn passed(self) -> Self {
        Self {
            own: self.other,
            other: self.own,
            to_move: self.to_move.other(),
        }
    }

    /// Checks a board of a game in which the players place one disc each in turn, the first player first, until one `wins`. Returns
    /// true if the player to move has lost.
    ///
    /// # Errors
    /// Sentence that says why no game leads to this board.
    pub fn check_turns(self, wins: impl Fn(u64) -> bool) -> Result<bool, String> {
        let [first, second] = self.by_player().map(u64::count_ones);
        let due = match first.checked_sub(second) {
            Some(0) => Player::First,
            Some(1) => Player::Second,
            _ => return Err("X must have as many discs as O, or one more".into()),
        };
        if due != self.to_move {
            return Err("the number of discs says that the other player moves".into());
        }
        if wins(self.own) {
            return Err("the player to move has won already".into());
        }
        Ok(wins(self.other))
    }

    /// Writes the board as programs exchange it: 64 letters from a1 to h8, rank by rank (`X` first player, `O` second, `-` empty),
    /// a space, and the player to move.
    pub fn text(self) -> String {
        let [first, second] = self.by_player();
        let letter = |square: u32| match (first >> square & 1, second >> square & 1) {
            (1, _) => 'X',
            (_, 1) => 'O',
            _ => '-',
        };
        let mover = ['X', 'O'][self.to_move.index()];
        (0..SQUARES as u32).map(letter).chain([' ', mover]).collect()
    }

    /// Reads what [`Discs::text`] writes; also `x` and `*` for the first player, `o` for the second, and `.` for empty.
    ///
    /// # Errors
    /// Sentence that says what is wrong with the text.
    pub fn read(text: &str) -> Result<Self, String> {
        // A file's first line may begin with a byte-order mark.
        let (board, mover) = text
            .trim_start_matches('\u{feff}')
            .trim()
            .split_once(char::is_whitespace)
            .ok_or("a position is 64 letters X, O or - from a1 to h8, a space, and the player to move")?;
        let count = board.chars().count();
        if count != SQUARES {
            return Err(format!("the board has {count} squares, not {SQUARES}"));
        }
        let mut players = [0, 0];
        for (square, letter) in board.chars().enumerate() {
            match letter {
                'X' | 'x' | '*' => players[0] |= 1 << square,
                'O' | 'o' => players[1] |= 1 << square,
                '-' | '.' => {}
                _ => return Err(format!("{letter:?} on square {square} is not X, O or -")),
            }
        }
        match mover.trim() {
            "X" | "x" | "*" => Ok(Self::of_players(players, Player::First)),
            "O" | "o" => Ok(Self::of_players(players, Player::Second)),
            other => Err(format!("the player to move is X or O, not {other:?}")),
        }
    }

    /// Appends one entry for each of the squares, in the plane of its disc or of the empty squares, and the player to move.
    pub fn write_cells(self, squares: impl Iterator<Item = u32>, row: &mut Vec<u32>) {
        let plane = |square: u32| {
            let has = |discs: u64| (discs >> square & 1) as u32;
            EMPTY - has(self.other) - 2 * has(self.own)
        };
        row.extend(squares.map(|square| 64 * plane(square) + square));
        row.push(u32::from(self.to_move == Player::First));
    }

    /// Appends one entry for each disc (first those of the player to move, each side in the order of the squares), the first entry
    /// again for every empty square, and the player to move. There must be a disc.
    pub fn write_discs(self, row: &mut Vec<u32>) {
        let begin = row.len();
        row.reserve(SQUARES + 1);
        for (plane, discs) in [(OWN, self.own), (OTHER, self.other)] {
            row.extend(crate::bits::squares(discs).map(|square| 64 * plane + square));
        }
        let first = row.get(begin).copied().unwrap_or_default();
        row.resize(begin + SQUARES, first);
        row.push(u32::from(self.to_move == Player::First));
    }
}

/// Returns the layout of rows with `entries` entries and the player to move. With `shows_empty` the rows are those of
/// [`Discs::write_cells`], in which the planes show which of the 8×8 squares are the board; otherwise those of
/// [`Discs::write_discs`].
pub(crate) fn layout<G: Game>(entries: u32, shows_empty: bool, policy_head: PolicyHead) -> RowLayout {
    let (sparse, ones) = if shows_empty {
        (vec![OWN, OTHER, EMPTY], vec![])
    } else {
        (vec![OWN, OTHER], vec![3])
    };
    RowLayout {
        game: G::NAME.into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            entries,
            planes: 4,
            constants: vec![ConstantPlane {
                name: "first player to move".into(),
                plane: sparse.len() as u32,
                divisor: 1,
                max: 1,
            }],
            sparse,
            ones,
        }),
        actions: G::ACTIONS,
        mirrored_actions: false,
        policy_head,
    }
}

/// Returns all lines of `length` squares on the first ranks and files, found square by square.
#[cfg(test)]
pub(crate) fn lines(ranks: i32, files: i32, length: i32) -> Vec<u64> {
    let squares = (0..ranks).flat_map(|rank| (0..files).map(move |file| (rank, file)));
    let directions = [(0, 1), (1, 0), (1, 1), (1, -1)];
    let lines = squares.flat_map(|square| directions.map(|direction| (square, direction)));
    let squares_of = |((rank, file), (up, right)): ((i32, i32), (i32, i32))| {
        let squares = (0..length).map(move |step| (rank + up * step, file + right * step));
        squares.collect::<Vec<(i32, i32)>>()
    };
    let is_inside = |line: &Vec<(i32, i32)>| {
        let inside = |&(rank, file): &(i32, i32)| rank < ranks && (0..files).contains(&file);
        line.iter().all(inside)
    };
    let bits = |line: Vec<(i32, i32)>| {
        line.iter()
            .fold(0, |bits, (rank, file)| bits | 1 << (8 * rank + file))
    };
    lines.map(squares_of).filter(is_inside).map(bits).collect()
}
