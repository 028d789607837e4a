//! The board game Go, from 2×2 to 19×19 points, under the Tromp-Taylor rules.
//!
//! | module | content |
//! |---|---|
//! | `rules` | switchable rules: size, komi, suicide, superko, early end |
//! | `board` | stones: chains, liberties, captures |
//! | `keys` | keys of positions |
//! | `area` | area scoring |
//! | `alive` | points that a player cannot lose any more |
//! | `row` | positions as rows |
//! | `text` | positions as text |
//! | `notation` | drawing and notation |
//! | [`sgf`] | games as SGF files |
//!
//! Action `size·rank + file` (a1 = 0) puts a stone on an empty point; action `size²` is the pass, which is always legal. A stone removes
//! the chains of the other player that have no liberty left. It may not recreate the stones of an earlier position (superko), and it
//! may not leave its own chain without a liberty, unless the rules allow suicide of several stones.
//!
//! A game ends with two passes in a row, or with action number `2·size² + 40`, far above the length of games between players. Then
//! area scoring decides: the board counts as it is, dead stones included. Superko alone would bound games too late for self-play.
//! With the rule `early_end`, a game also ends when it is the turn of a player who has more points that the other one cannot take
//! any more than are needed to win. So no action wins a game in this way, and [`Game::known`] stays cheap. All eight symmetries of the
//! square hold.

mod alive;
mod area;
mod board;
mod keys;
mod notation;
mod row;
mod rules;
pub mod sgf;
mod text;

use self::board::{Board, Effect, Point};
use crate::{
    game::{Action, Game, IllegalAction, KnownOutcome, Outcome, Sizes, StartError, Territory},
    layout::RowLayout,
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

pub use self::{
    row::Encoding,
    rules::{Rules, Superko},
};

/// Number of last actions that a row shows.
const RECENT: usize = 5;

/// A position of Go, with the history that superko needs.
#[derive(Debug)]
pub struct Go {
    rules: Rules,
    board: Board,
    to_move: Player,
    /// Number of passes in a row, at most 2.
    passes: u8,
    /// Number of actions played.
    actions: u16,
    /// Squares of the last stones, the newest first. `None` for a pass, and before the first action.
    recent: [Option<u16>; RECENT],
    /// Number of stones that each player has lost.
    lost: [u16; 2],
    /// Keys of all positions so far, the present one included.
    history: Vec<u64>,
    /// Largest number of stones in one of these positions.
    most_stones: u16,
    /// End of the game.
    end: Option<(Ending, Outcome)>,
}

/// Way in which a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    TwoPasses,
    Decided,
    MaxMoves,
}

/// Points on which a stone that captures nothing would recreate an earlier position, as bits. `None` if there are none.
type Repeats = Option<[u64; 8]>;

impl Go {
    /// Returns the state of a game that begins with this board.
    fn on_board(rules: Rules, board: Board, to_move: Player, passes: u8) -> Self {
        let mut state = Self {
            rules,
            board: Board::empty(rules.size),
            to_move,
            passes,
            actions: 0,
            recent: [None; RECENT],
            lost: [0; 2],
            history: Vec::new(),
            most_stones: 0,
            end: None,
        };
        state.remember(&board, to_move);
        state.board = board;
        state.end_if_over();
        state
    }

    /// Returns the number of actions after which the game ends.
    const fn max_moves(&self) -> usize {
        2 * self.board.area() + 40
    }

    /// Returns the part of a position's key that the player to move contributes.
    const fn key_of_mover(&self, mover: Player) -> u64 {
        match self.rules.superko {
            Superko::Positional => 0,
            Superko::Situational => keys::of_mover(mover),
        }
    }

    /// Adds a position to the history.
    fn remember(&mut self, board: &Board, mover: Player) {
        self.history.push(board.key() ^ self.key_of_mover(mover));
        self.most_stones = self.most_stones.max(board.stones());
    }

    /// Returns the points on which a stone without captures would recreate an earlier position.
    ///
    /// Such a stone adds one to the number of stones, so that there are none as long as no earlier position has that many: before the
    /// first capture, and until the captured stones are replaced. After that a stone without captures can recreate a position. For
    /// example, a player captures two stones with one, which is captured in turn by one; both pass; then the second of the two stones
    /// comes back.
    fn repeats(&self) -> Repeats {
        if self.board.stones() >= self.most_stones {
            return None;
        }
        let key = self.board.key() ^ self.key_of_mover(self.to_move.other());
        let mut found = None;
        for earlier in &self.history {
            if let Some(point) = keys::point_of(self.to_move, earlier ^ key) {
                found.get_or_insert([0; 8])[point / 64] |= 1 << (point % 64);
            }
        }
        found
    }

    /// True if the player to move may put a stone on an empty point.
    fn allows(&self, point: Point, repeats: &Repeats) -> bool {
        if self.board.is_fresh(point) {
            return true;
        }
        let is_new = |key: u64| {
            !self
                .history
                .contains(&(key ^ self.key_of_mover(self.to_move.other())))
        };
        match self.board.effect(self.to_move, point) {
            Effect::Quiet => repeats.is_none_or(|points| points[point / 64] >> (point % 64) & 1 == 0),
            Effect::Captures(key) => is_new(key),
            Effect::Suicide(key) => self.allows_suicide(key) && is_new(key),
        }
    }

    /// True if the rules allow a suicide that leads to the board with this key. One stone alone would only pass.
    const fn allows_suicide(&self, key: u64) -> bool {
        self.rules.suicide && key != self.board.key()
    }

    /// True if a stone on an empty point is a suicide that the rules forbid.
    fn is_suicide(&self, point: Point) -> bool {
        let effect = self.board.effect(self.to_move, point);
        matches!(effect, Effect::Suicide(key) if !self.allows_suicide(key))
    }

    /// Returns the points of a player less those of the other, compensation included, in half points.
    fn score(&self, player: Player) -> i32 {
        let black = 2 * area::score(&self.board) - self.rules.half_points();
        match player {
            Player::First => black,
            Player::Second => -black,
        }
    }

    /// Returns the compensation of a player, in half points. Negative if the other player has it.
    const fn compensation(&self, player: Player) -> i32 {
        match player {
            Player::First => -self.rules.half_points(),
            Player::Second => self.rules.half_points(),
        }
    }

    /// Ends the game if it is over.
    fn end_if_over(&mut self) {
        let ending = if self.passes >= 2 {
            Ending::TwoPasses
        } else if usize::from(self.actions) >= self.max_moves() {
            Ending::MaxMoves
        } else if self.rules.early_end && self.is_decided() {
            self.end = Some((Ending::Decided, Outcome::Won(self.to_move)));
            return;
        } else {
            return;
        };
        let outcome = match self.score(Player::First) {
            0 => Outcome::Draw,
            1.. => Outcome::Won(Player::First),
            _ => Outcome::Won(Player::Second),
        };
        self.end = Some((ending, outcome));
    }

    /// True if the player to move has won with points that the other player cannot take any more. To save time, this is not sought
    /// while most points are empty.
    fn is_decided(&self) -> bool {
        let (board, mover, area) = (&self.board, self.to_move, self.board.area());
        let is_enough = |points: u32| 2 * (2 * points as i32 - area as i32) + self.compensation(mover) > 0;
        2 * usize::from(board.stones()) >= area
            && is_enough(alive::most_points(board, mover))
            && is_enough(alive::certain(board, mover, self.rules.suicide).points())
    }

    /// Puts a stone of the player to move on an empty point.
    fn place(&mut self, square: usize) {
        let point = self.board.point(square);
        let [others, own] = self.board.place(self.to_move, point);
        self.lost[self.to_move.other().index()] += others;
        self.lost[self.to_move.index()] += own;
        self.passes = 0;
    }
}

impl Game for Go {
    type Rules = Rules;
    type Encoding = Encoding;

    const NAME: &'static str = "go";
    const PLAYERS: u8 = 2;
    const SIZES: Option<Sizes> = Some(Sizes {
        least: 2,
        usual: 9,
        most: 19,
    });
    const HAS_TERRITORY: bool = true;

    fn start(rules: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        rules.check()?;
        match position {
            Some(text) => Self::read(rules, text).map_err(StartError::of::<Self>),
            None => Ok(Self::on_board(*rules, Board::empty(rules.size), Player::First, 0)),
        }
    }

    fn encoding(rules: &Rules, options: u32) -> Result<Encoding, StartError> {
        rules.check()?;
        if options == 0 {
            return Ok(Encoding { size: rules.size });
        }
        let reason = format!("the representation options must be 0, not {options}");
        Err(StartError::of::<Self>(reason))
    }

    fn layout(encoding: Encoding) -> RowLayout {
        encoding.layout()
    }

    fn actions(&self) -> u32 {
        self.board.area() as u32 + 1
    }

    fn symmetries(&self) -> u8 {
        row::SYMMETRIES
    }

    fn to_move(&self) -> Player {
        self.to_move
    }

    fn outcome(&self) -> Option<Outcome> {
        self.end.map(|(_, outcome)| outcome)
    }

    fn ending(&self) -> Option<&'static str> {
        self.end.map(|(ending, _)| match ending {
            Ending::TwoPasses => "two-passes",
            Ending::Decided => "decided",
            Ending::MaxMoves => "max-moves",
        })
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.end.is_some() {
            return;
        }
        let repeats = self.repeats();
        for (square, point) in (0..).zip(self.board.points()) {
            if self.board.is_empty(point) && self.allows(point, &repeats) {
                actions.push(square);
            }
        }
        actions.push(self.board.area() as u32);
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let fault = |reason| Err(IllegalAction { action, reason });
        let square = action as usize;
        if self.end.is_some() {
            return fault("the game is over");
        }
        if square > self.board.area() {
            return fault("the number is above that of the pass");
        }
        if square < self.board.area() {
            let point = self.board.point(square);
            if !self.board.is_empty(point) {
                return fault("the point has a stone");
            }
            if self.is_suicide(point) {
                return fault("the stone would have no liberty");
            }
            if !self.allows(point, &self.repeats()) {
                return fault("an earlier position would recur (superko)");
            }
        }
        self.play_legal(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        if self.end.is_some() {
            return;
        }
        let square = action as usize;
        // An action that is not legal may be a pass.
        let is_stone = square < self.board.area() && self.board.is_empty(self.board.point(square));
        match is_stone {
            true => self.place(square),
            false => self.passes += 1,
        }
        self.recent.rotate_right(1);
        self.recent[0] = is_stone.then_some(square as u16);
        self.actions += 1;
        self.to_move = self.to_move.other();
        if is_stone || self.rules.superko == Superko::Situational {
            self.history
                .push(self.board.key() ^ self.key_of_mover(self.to_move));
            self.most_stones = self.most_stones.max(self.board.stones());
        }
        self.end_if_over();
    }

    fn position(&self) -> String {
        self.text()
    }

    fn write_row(&self, _: Encoding, symmetry: Symmetry, row: &mut Vec<u32>) {
        self.write(symmetry, row);
    }

    fn policy_index(&self, _: Encoding, symmetry: Symmetry, action: Action) -> u32 {
        row::turn(self.rules.size, symmetry, action)
    }

    fn row_symmetries(encoding: Encoding) -> RowSymmetries {
        encoding.symmetries()
    }

    /// Knows the win by a pass after a pass. A stone can win only as the last action of a game that grows too long.
    fn known(&self) -> Option<KnownOutcome> {
        if self.end.is_some() {
            return None;
        }
        if usize::from(self.actions) + 1 >= self.max_moves() {
            return KnownOutcome::win_by_trying(self);
        }
        let wins = self.passes == 1 && self.score(self.to_move) > 0;
        wins.then(|| KnownOutcome::win_at_once(self.to_move))
    }

    /// Knows the draw by a pass after a pass.
    fn can_draw(&self) -> bool {
        self.end.is_none() && self.passes == 1 && self.score(self.to_move) == 0
    }

    fn territory(&self) -> Option<Territory> {
        self.end.map(|_| Territory {
            owners: area::owners(&self.board),
            score: self.score(Player::First) as f32 / 2.0,
        })
    }
}

impl Clone for Go {
    fn clone(&self) -> Self {
        Self {
            board: self.board.clone(),
            history: self.history.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.board.clone_from(&source.board);
        self.history.clone_from(&source.history);
        let Self {
            rules,
            to_move,
            passes,
            actions,
            recent,
            lost,
            most_stones,
            end,
            ..
        } = *source;
        (self.rules, self.to_move, self.passes, self.actions) = (rules, to_move, passes, actions);
        (self.recent, self.lost, self.most_stones, self.end) = (recent, lost, most_stones, end);
    }
}
