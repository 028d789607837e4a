//! Points of a board and colours in the Go Text Protocol (GTP), for all games with stones on one square board.
//!
//! A point is a letter and a number, with a1 at the lower left. GTP has no letter i, so that `j` follows `h`. In Hex, programs do count
//! the i, a1 is at the upper left, and the swap is called `swap-pieces`; so do Benzene's programs and HexGui. The first player is black.

use anyhow::Context as _;
use games::{
    Action, Game as _, Player,
    erased::{AnyGame, AnyState},
    go::Go,
    gomoku::Gomoku,
    hex::Hex,
    othello::Othello,
    scene::{CHESS_BOARD, Squares},
};

/// Letters of the files in GTP.
const LETTERS: &str = "abcdefghjklmnopqrstuvwxyz";
/// Name of the swap in Hex.
const SWAP: &str = "swap-pieces";

/// Returns the points of the board of a game.
///
/// # Errors
/// The game is not played with stones on one square board.
pub fn points(game: &AnyGame) -> anyhow::Result<Squares> {
    let size = match game.name {
        Othello::NAME => Some(CHESS_BOARD.width),
        Go::NAME | Gomoku::NAME | Hex::NAME => game.size(),
        _ => None,
    };
    let size = size.with_context(|| {
        let known = [Go::NAME, Gomoku::NAME, Hex::NAME, Othello::NAME].join(", ");
        format!("GTP has no moves for {}, but for {known}", game.name)
    })?;
    let all = Squares::new(size, size);
    Ok(match game.name {
        Hex::NAME => all,
        _ => Squares {
            letters: LETTERS,
            ..all
        },
    })
}

/// Returns the name of a legal action: a point, `pass` or [`SWAP`].
pub fn name(points: Squares, state: &dyn AnyState, action: Action) -> String {
    if action < points.count() {
        return points.name(action);
    }
    match state.game().name {
        Hex::NAME => SWAP.into(),
        _ => state.write_turn(&[action]),
    }
}

/// Returns the legal action with this name, in either case.
///
/// # Errors
/// Sentence that says why the text is not a legal move.
pub fn read(points: Squares, state: &dyn AnyState, text: &str) -> Result<Action, String> {
    let mut legal = Vec::new();
    state.legal_actions(&mut legal);
    let same = |&&action: &&Action| name(points, state, action).eq_ignore_ascii_case(text);
    if let Some(&action) = legal.iter().find(same) {
        return Ok(action);
    }
    let action = points.read(text).ok_or_else(|| {
        let last = points.name(points.count() - 1);
        format!("{text:?} is not a point of the board, a1 to {last}")
    })?;
    Err(match state.copy().play(action) {
        Err(error) => format!("{text}: {}", error.reason),
        Ok(()) => format!("{text} is not legal here"),
    })
}

/// Returns the name of a player's colour.
pub const fn colour(player: Player) -> &'static str {
    match player {
        Player::First => "black",
        Player::Second => "white",
    }
}

/// Returns the player of a colour: `b`, `black`, `w` or `white`, in either case.
pub fn player(colour: &str) -> Option<Player> {
    match colour.to_ascii_lowercase().as_str() {
        "b" | "black" => Some(Player::First),
        "w" | "white" => Some(Player::Second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use games::registry;

    use super::*;

    #[test]
    fn every_legal_action_is_read_as_it_is_written() {
        for (game, last) in [
            ("go:19", "t19"),
            ("go:9", "j9"),
            ("gomoku:8", "h8"),
            ("othello", "h8"),
            ("hex:11", "k11"),
        ] {
            let game = registry::find(game).unwrap();
            let state = game.variant(&game.rules(), None).unwrap().start(None).unwrap();
            let points = points(game).unwrap();
            assert_eq!(points.name(points.count() - 1), last);
            let mut legal = Vec::new();
            state.legal_actions(&mut legal);
            for action in legal {
                let name = name(points, &*state, action).to_uppercase();
                assert_eq!(read(points, &*state, &name), Ok(action), "{name}");
            }
            assert_eq!(read(points, &*state, "i1").is_ok(), game.name == "hex");
            for text in ["", "a0", "z1", "pas", "a", "1"] {
                assert!(read(points, &*state, text).is_err(), "{text}");
            }
        }
        assert!(points(registry::find("chess").unwrap()).is_err());
    }

    #[test]
    fn the_swap_of_hex_has_the_name_that_programs_use() {
        let game = registry::find("hex:5").unwrap();
        let mut state = game.variant(&game.rules(), None).unwrap().start(None).unwrap();
        let points = points(game).unwrap();
        assert!(read(points, &*state, "swap-pieces").is_err());
        state.play(0).unwrap();
        assert_eq!(read(points, &*state, "swap-pieces"), Ok(25));
        assert_eq!(name(points, &*state, 25), "swap-pieces");
    }
}
