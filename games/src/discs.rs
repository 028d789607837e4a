//! Games with discs or stones of two colours: what their rows, texts and drawings share. [`Discs`] is a board of at most 8×8 squares.

use crate::{
    Game, Player, PolicyHead, RowForm, RowLayout,
    bits::SQUARES,
    planes::{ConstantPlane, PlaneStack},
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

    /// Writes the board as [`text`] does.
    pub fn text(self) -> String {
        let [first, second] = self.by_player();
        let owner = |square: u32| match (first >> square & 1, second >> square & 1) {
            (1, _) => Some(Player::First),
            (_, 1) => Some(Player::Second),
            _ => None,
        };
        text(SQUARES, owner, self.to_move)
    }

    /// Reads what [`Discs::text`] writes.
    ///
    /// # Errors
    /// Sentence that says what is wrong with the text.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut players = [0, 0];
        let to_move = read(text, SQUARES, |square, player| {
            players[player.index()] |= 1 << square;
        })?;
        Ok(Self::of_players(players, to_move))
    }

    /// Appends one entry for each of the cells, in the plane of its disc or of the empty squares, and the player to move. A cell is a
    /// bit of the discs, and a square of planes of `area` squares.
    pub fn write_cells(self, area: u32, cells: impl Iterator<Item = (u32, u32)>, row: &mut Vec<u32>) {
        let plane = |bit: u32| {
            let has = |discs: u64| (discs >> bit & 1) as u32;
            EMPTY - has(self.other) - 2 * has(self.own)
        };
        row.extend(cells.map(|(bit, square)| area * plane(bit) + square));
        row.push(u32::from(self.to_move == Player::First));
    }

    /// Appends one entry for each disc (first those of the player to move, each side in the order of the squares), the first entry
    /// again for every empty square, and the player to move. There must be a disc.
    pub fn write_discs(self, row: &mut Vec<u32>) {
        let begin = row.len();
        row.reserve(SQUARES as usize + 1);
        for (plane, discs) in [(OWN, self.own), (OTHER, self.other)] {
            row.extend(crate::bits::squares(discs).map(|square| 64 * plane + square));
        }
        let first = row.get(begin).copied().unwrap_or_default();
        row.resize(begin + SQUARES as usize, first);
        row.push(u32::from(self.to_move == Player::First));
    }
}

/// Writes a board as programs exchange it: a letter for each of its squares, rank by rank from a1 (`X` first player, `O` second, `-`
/// empty), a space, and the player to move.
pub(crate) fn text(squares: u32, owner: impl Fn(u32) -> Option<Player>, to_move: Player) -> String {
    let letter = |player: Player| ['X', 'O'][player.index()];
    let letters = (0..squares).map(|square| owner(square).map_or('-', letter));
    letters.chain([' ', letter(to_move)]).collect()
}

/// Reads what [`text`] writes; also `x` and `*` for the first player, `o` for the second, and `.` for empty. Passes the owner of each
/// disc to `place`, and returns the player to move.
///
/// # Errors
/// Sentence that says what is wrong with the text.
pub(crate) fn read(text: &str, squares: u32, mut place: impl FnMut(u32, Player)) -> Result<Player, String> {
    let player = |letter: char| match letter {
        'X' | 'x' | '*' => Some(Player::First),
        'O' | 'o' => Some(Player::Second),
        _ => None,
    };
    // A file's first line may begin with a byte-order mark.
    let text = text.trim_start_matches('\u{feff}').trim();
    let (board, mover) = text.split_once(char::is_whitespace).ok_or_else(|| {
        format!(
            "a position is {squares} letters X, O or -, rank by rank from a1, a space, and the player to move"
        )
    })?;
    let count = board.chars().count();
    if count != squares as usize {
        return Err(format!("the board has {count} squares, not {squares}"));
    }
    for (square, letter) in (0..).zip(board.chars()) {
        match player(letter) {
            Some(owner) => place(square, owner),
            None if matches!(letter, '-' | '.') => {}
            None => return Err(format!("{letter:?} on square {square} is not X, O or -")),
        }
    }
    let mut letters = mover.trim().chars();
    let found = letters
        .next()
        .and_then(player)
        .filter(|_| letters.next().is_none());
    found.ok_or_else(|| format!("the player to move is X or O, not {:?}", mover.trim()))
}

/// Checks a board of a game in which the players place one disc each in turn, the first player first, until one `wins`. `counts` holds
/// the numbers of the players' discs. Returns true if the player to move has lost.
///
/// # Errors
/// Sentence that says why no game leads to this board.
pub(crate) fn check_turns(
    [first, second]: [u32; 2],
    to_move: Player,
    wins: impl Fn(Player) -> bool,
) -> Result<bool, String> {
    let due = match first.checked_sub(second) {
        Some(0) => Player::First,
        Some(1) => Player::Second,
        _ => return Err("X must have as many discs as O, or one more".into()),
    };
    if due != to_move {
        return Err("the number of discs says that the other player moves".into());
    }
    if wins(to_move) {
        return Err("the player to move has won already".into());
    }
    Ok(wins(to_move.other()))
}

/// Returns the layout of rows with one entry for each square of a board of this height and width, and a value that is 1 if the first
/// player is to move. With `shows_empty` the rows are those of [`Discs::write_cells`], otherwise those of [`Discs::write_discs`].
pub(crate) fn layout<G: Game>(
    (height, width): (u32, u32),
    actions: u32,
    policy_head: PolicyHead,
    shows_empty: bool,
) -> RowLayout {
    let (sparse, ones) = if shows_empty {
        (vec![OWN, OTHER, EMPTY], vec![])
    } else {
        (vec![OWN, OTHER], vec![3])
    };
    RowLayout {
        game: G::NAME.into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            height,
            width,
            entries: height * width,
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
        actions,
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
