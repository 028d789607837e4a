//! Games in the Smart Game Format (SGF, FF\[4\]), which programs for Go exchange.
//!
//! A record holds the main line of a game: size, komi, names, result, stones set before the first move, and the moves. Other variations,
//! comments and marks are skipped. Points are two letters, the file from the left and the rank from the top; `[]` is a pass, and so is
//! `[tt]`.

mod form;

use std::fmt::Write as _;

use self::form::Property;
use super::{Go, Rules, Superko, board::Content, rules::MOST_KOMI};
use crate::{
    Game, Outcome, StartError,
    game::{Action, IllegalAction},
    notation::SgfGame,
    value::Player,
};

/// Main line of a game of Go.
pub type Record = SgfGame<Rules>;

/// Error: a text is not a record of a game of Go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SgfError {
    /// The text does not have the form of SGF.
    #[error("the SGF is damaged after {at} bytes: {reason}")]
    Form {
        /// Number of bytes read before the fault.
        at: usize,
        /// Part that is missing or wrong.
        reason: &'static str,
    },
    /// The record is of another game.
    #[error("the SGF is of another game: GM is {0:?}, and Go has the number 1")]
    OtherGame(String),
    /// The value of a property is not possible.
    #[error("the SGF has {property}[{value}]: {reason}")]
    Value {
        /// Name of the property.
        property: String,
        /// Value of the property.
        value: String,
        /// Reason in a few words.
        reason: &'static str,
    },
    /// The rules or the stones before the first move are not possible.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A move is not legal.
    #[error("move {number} ({color}[{value}]) is not legal: {reason}")]
    Illegal {
        /// Number of the move, from 1.
        number: usize,
        /// `B` or `W`.
        color: &'static str,
        /// Point as the record gives it.
        value: String,
        /// Reason in a few words.
        reason: &'static str,
    },
    /// A game that has no such files.
    #[error("{0} has no SGF files")]
    NoFiles(&'static str),
}

const COLORS: [&str; 2] = ["B", "W"];

/// Returns the name of the rules in records. The names imply superko and suicide.
const fn rules_name(rules: &Rules) -> &'static str {
    match (rules.superko, rules.suicide) {
        (Superko::Positional, false) => "Chinese",
        (Superko::Positional, true) => "Tromp-Taylor",
        (Superko::Situational, false) => "AGA",
        (Superko::Situational, true) => "NZ",
    }
}

/// Returns superko and suicide of the rules with this name in records. `None` if the name does not tell both.
fn named_rules(name: &str) -> Option<(Superko, bool)> {
    match name.trim().to_lowercase().as_str() {
        "chinese" => Some((Superko::Positional, false)),
        "tromp-taylor" => Some((Superko::Positional, true)),
        "aga" => Some((Superko::Situational, false)),
        "nz" => Some((Superko::Situational, true)),
        _ => None,
    }
}

/// Returns the points that a program means by this komi. More points than any board has are hundredths, which the server Fox writes:
/// 650 is 6.5 points, and 375 is 3.75 stones of the Chinese count, which is 7.5 points.
fn points(komi: f32) -> f32 {
    if komi.abs() <= MOST_KOMI {
        return komi;
    }
    let hundredths = komi / 100.0;
    match (2.0 * hundredths).fract() {
        0.0 => hundredths,
        _ => 2.0 * hundredths,
    }
}

/// Returns the two letters of a square; none for a pass.
fn point_text(size: u32, square: u32) -> String {
    if square >= size * size {
        return String::new();
    }
    let letter = |line: u32| char::from(b'a' + line as u8);
    let (rank, file) = (square / size, square % size);
    [letter(file), letter(size - 1 - rank)].into_iter().collect()
}

/// Returns the square of two letters. `None` if it is not on the board.
fn read_point(size: u32, text: &str) -> Option<u32> {
    let [file, rank] = text.as_bytes() else {
        return None;
    };
    let line = |letter: u8| {
        letter
            .checked_sub(b'a')
            .map(u32::from)
            .filter(|&line| line < size)
    };
    Some(size * (size - 1 - line(*rank)?) + line(*file)?)
}

/// Writes the game of these actions from `start`, with the names of Black and White.
///
/// # Errors
/// [`IllegalAction`] if one of the actions is not legal.
pub fn write(start: &Go, actions: &[Action], names: [&str; 2]) -> Result<String, IllegalAction> {
    let (rules, size) = (start.rules, start.rules.size);
    let escaped = |text: &str| text.replace('\\', "\\\\").replace(']', "\\]");
    let [black, white] = names.map(escaped);
    let mut text = format!(
        "(;GM[1]FF[4]CA[UTF-8]AP[Minuet]SZ[{size}]KM[{}]RU[{}]PB[{black}]PW[{white}]",
        rules.komi,
        rules_name(&rules)
    );
    let mut moves = String::new();
    let mut state = start.clone();
    for (number, &action) in actions.iter().enumerate() {
        moves += if number % 10 == 0 { "\n;" } else { ";" };
        let color = COLORS[state.to_move.index()];
        state.play(action)?;
        let _ = write!(moves, "{color}[{}]", point_text(size, action));
    }
    let points = state.score(Player::First).abs() as f32 / 2.0;
    match (state.outcome(), state.ending()) {
        (Some(Outcome::Won(player)), Some("decided")) => {
            let _ = write!(text, "RE[{}+]", COLORS[player.index()]);
        }
        (Some(Outcome::Won(player)), _) => {
            let _ = write!(text, "RE[{}+{points}]", COLORS[player.index()]);
        }
        (Some(_), _) => text += "RE[0]",
        (None, _) => {}
    }
    for (player, name) in [(Player::First, "AB"), (Player::Second, "AW")] {
        let squares = (0..).zip(start.board.points());
        let own = squares.filter(|(_, point)| start.board.content(*point) == Content::Stone(player));
        let points: Vec<String> = own
            .map(|(square, _)| format!("[{}]", point_text(size, square)))
            .collect();
        if !points.is_empty() {
            text += name;
            text += &points.concat();
        }
    }
    if start.to_move == Player::Second || start.board.stones() > 0 {
        let _ = write!(text, "PL[{}]", COLORS[start.to_move.index()]);
    }
    Ok(text + &moves + ")\n")
}

/// Reads the main line of the first game in a text. Size and komi are those of the record; `rules` gives the others. The game is played
/// until two passes.
///
/// # Errors
/// [`SgfError`] with the first fault.
pub fn read(text: &str, rules: &Rules) -> Result<Record, SgfError> {
    let properties = form::main_line(text)?;
    let mut record = Record {
        rules: Rules {
            size: 19,
            komi: 0.0,
            early_end: false,
            ..*rules
        },
        position: None,
        actions: Vec::new(),
        names: Default::default(),
        ranks: Default::default(),
        result: String::new(),
    };
    // The size is needed for the points, wherever it is.
    for Property { name, value, .. } in &properties {
        if name == "SZ" {
            // A square board may also be written as 9:9.
            let size = value
                .split_once(':')
                .map_or(Some(&**value), |(one, other)| (one == other).then_some(one));
            let size = size.and_then(|size| size.trim().parse().ok());
            record.rules.size = size.ok_or_else(|| fault(name, value, "a size is one number of lines"))?;
        }
    }
    record.rules.check()?;
    let mut setup = Setup {
        letters: vec!['-'; (record.rules.size * record.rules.size) as usize],
        to_move: None,
    };
    let mut moves = Vec::new();
    for Property { name, value } in &properties {
        match name.as_str() {
            "GM" if value.trim() != "1" => return Err(SgfError::OtherGame(shown(value))),
            "RU" => {
                let rules = &mut record.rules;
                let named = named_rules(value).unwrap_or((rules.superko, rules.suicide));
                (rules.superko, rules.suicide) = named;
            }
            "KM" if value.trim().is_empty() => {}
            "KM" => {
                let komi = value.trim().replace(',', ".").parse().map(points);
                record.rules.komi = komi.map_err(|_| fault(name, value, "komi is a number, e.g. 7.5"))?;
            }
            "PB" => record.names[0].clone_from(value),
            "PW" => record.names[1].clone_from(value),
            "BR" => record.ranks[0].clone_from(value),
            "WR" => record.ranks[1].clone_from(value),
            "RE" => record.result.clone_from(value),
            "AB" | "AW" | "AE" | "PL" if !moves.is_empty() => {
                return Err(fault(
                    name,
                    value,
                    "stones and the player can be set before the first move only",
                ));
            }
            "AB" | "AW" | "AE" | "PL" => setup.set(record.rules.size, name, value)?,
            "B" => moves.push((Player::First, value)),
            "W" => moves.push((Player::Second, value)),
            _ => {}
        }
    }
    let first = moves.first().map_or(Player::First, |(player, _)| *player);
    record.position = setup.position(first);
    let mut state = Go::start(&record.rules, record.position.as_deref())?;
    for (number, (player, value)) in (1..).zip(moves) {
        let illegal = |reason| SgfError::Illegal {
            number,
            color: COLORS[player.index()],
            value: shown(value),
            reason,
        };
        if player != state.to_move {
            return Err(illegal("the other player is to move"));
        }
        let size = record.rules.size;
        let action = match value.trim() {
            "" => size * size,
            // Older files pass on a point outside of boards of up to 19 lines.
            "tt" => size * size,
            point => read_point(size, point).ok_or_else(|| illegal("the point is not on the board"))?,
        };
        state.play(action).map_err(|error| illegal(error.reason))?;
        record.actions.push(action);
    }
    Ok(record)
}

/// Returns the beginning of a value of a file, for an error.
fn shown(value: &str) -> String {
    const MOST: usize = 40;
    match value.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.into(),
    }
}

fn fault(property: &str, value: &str, reason: &'static str) -> SgfError {
    SgfError::Value {
        property: property.into(),
        value: shown(value),
        reason,
    }
}

/// Stones set before the first move.
struct Setup {
    /// Letters of the squares as in a position's text.
    letters: Vec<char>,
    to_move: Option<Player>,
}

impl Setup {
    fn set(&mut self, size: u32, name: &str, value: &str) -> Result<(), SgfError> {
        let letter = match name {
            "AB" => 'X',
            "AW" => 'O',
            "AE" => '-',
            _ => {
                self.to_move = match value.trim() {
                    "B" | "b" | "1" => Some(Player::First),
                    "W" | "w" | "2" => Some(Player::Second),
                    _ => return Err(fault(name, value, "the player is B or W")),
                };
                return Ok(());
            }
        };
        // Two points with a colon are the corners of a rectangle.
        let (one, other) = value.split_once(':').unwrap_or((value, value));
        let corners = read_point(size, one.trim()).zip(read_point(size, other.trim()));
        let (one, other) = corners.ok_or_else(|| fault(name, value, "the point is not on the board"))?;
        let ordered = |one: u32, other: u32| one.min(other)..=one.max(other);
        for rank in ordered(one / size, other / size) {
            for file in ordered(one % size, other % size) {
                if let Some(square) = self.letters.get_mut((size * rank + file) as usize) {
                    *square = letter;
                }
            }
        }
        Ok(())
    }

    /// Returns the position as text, with the player of the first move to move if none is set.
    fn position(&self, first: Player) -> Option<String> {
        let to_move = self.to_move.unwrap_or(first);
        let is_usual = to_move == Player::First && self.letters.iter().all(|&letter| letter == '-');
        let board: String = self.letters.iter().collect();
        (!is_usual).then(|| format!("{board} {} 0 -", ['X', 'O'][to_move.index()]))
    }
}
