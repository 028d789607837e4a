//! The position to search, and the game before it.

use games::{
    Action, Game, StartError,
    chess::{Chess, Rules, UciError},
};

/// A position set up by the GUI.
#[derive(Clone, Debug)]
pub struct Setup {
    /// FEN of the game's first position; `None` for the start position.
    pub fen: Option<String>,
    /// The moves from there.
    pub moves: Vec<Action>,
    /// Position after the moves.
    pub chess: Chess,
    rules: Rules,
}

/// Error: a position cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The FEN is invalid.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A move is invalid.
    #[error("move {number}: {reason}")]
    Move {
        /// Number of the move, from 1.
        number: usize,
        /// Error of the move.
        reason: UciError,
    },
}

impl Setup {
    /// Sets up a position. Moves may continue after draws by repetition and the like, because the GUI decides when a game ends.
    ///
    /// # Errors
    /// [`SetupError`] if the FEN or a move is invalid.
    pub fn new(fen: Option<&str>, moves: &[String], under_promotions: bool) -> Result<Self, SetupError> {
        let rules = Rules {
            underpromotions: under_promotions,
        };
        let mut chess = Chess::start(&rules, fen)?;
        let mut played = Vec::with_capacity(moves.len());
        for (index, uci) in moves.iter().enumerate() {
            let action = chess.action_of_uci(uci).map_err(|reason| SetupError::Move {
                number: index + 1,
                reason,
            })?;
            chess.play_legal(action);
            played.push(action);
        }
        Ok(Self {
            fen: fen.map(str::to_owned),
            moves: played,
            chess,
            rules,
        })
    }

    /// Returns the actions of these moves, ascending; texts that are not legal moves are left out.
    pub fn actions_of(&self, moves: &[String]) -> Vec<Action> {
        let mut actions: Vec<Action> = moves
            .iter()
            .filter_map(|uci| self.chess.action_of_uci(uci).ok())
            .collect();
        actions.sort_unstable();
        actions.dedup();
        actions
    }

    /// Returns the moves from `earlier` to this position, if the game went through `earlier`.
    pub fn moves_since(&self, earlier: &Self) -> Option<&[Action]> {
        if self.fen != earlier.fen {
            return None;
        }
        self.moves.strip_prefix(earlier.moves.as_slice())
    }

    /// Returns the position to search. If the position is already a draw, for example by repetition, it is returned without its
    /// history. `None` if no search helps: mate, stalemate, insufficient material.
    pub fn searchable(&self) -> Option<Chess> {
        if self.chess.outcome().is_none() {
            return Some(self.chess.clone());
        }
        let fen = self.chess.position();
        let fields: Vec<&str> = fen.split(' ').collect();
        let &[placement, mover, castling, en_passant, _, number] = fields.as_slice() else {
            return None;
        };
        let fresh = format!("{placement} {mover} {castling} {en_passant} 0 {number}");
        Chess::start(&self.rules, Some(&fresh))
            .ok()
            .filter(|chess| chess.outcome().is_none())
    }

    /// Returns a legal move, with promotion to a queen preferred; `None` if there is none.
    pub fn any_move(&self) -> Option<Action> {
        let mut moves = Vec::new();
        self.chess.moves(&mut moves);
        moves.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(fen: Option<&str>, moves: &str) -> Result<Setup, SetupError> {
        let moves: Vec<String> = moves.split_whitespace().map(str::to_owned).collect();
        Setup::new(fen, &moves, true)
    }

    #[test]
    fn a_game_can_be_followed_past_a_draw() {
        let back_and_forth = "g1f3 g8f6 f3g1 f6g8 ".repeat(3);
        let drawn = setup(None, &back_and_forth).unwrap();
        assert!(drawn.chess.outcome().is_some());
        let searched = drawn.searchable().unwrap();
        assert_eq!(searched.outcome(), None);
        let on = setup(None, &(back_and_forth + "e2e4")).unwrap();
        assert_eq!(on.moves_since(&drawn).unwrap().len(), 1);
        assert_eq!(drawn.moves_since(&on), None);
    }

    #[test]
    fn fifty_moves_and_bare_kings_still_have_moves() {
        let fifty = setup(Some("8/8/4k3/8/8/4K3/4P3/8 w - - 100 90"), "").unwrap();
        assert!(fifty.chess.outcome().is_some() && fifty.searchable().is_some());
        let bare = setup(Some("8/8/4k3/8/8/4K3/8/8 w - - 0 90"), "").unwrap();
        assert!(bare.searchable().is_none() && bare.any_move().is_some());
        let mated = setup(Some("R5k1/8/6K1/8/8/8/8/8 b - - 0 1"), "").unwrap();
        assert!(mated.searchable().is_none() && mated.any_move().is_none());
    }

    #[test]
    fn errors_name_the_fault() {
        let error = setup(None, "e2e4 e2e4").unwrap_err().to_string();
        assert_eq!(error, "move 2: e2e4 is not legal here");
        assert!(setup(Some("8/8"), "").is_err());
        let start = setup(None, "").unwrap();
        let some = ["e2e4", "e7e5", "what", "a2a3"].map(str::to_owned);
        assert_eq!(start.actions_of(&some).len(), 2);
    }
}
