//! The position that is to be searched, and how the game came to it.

use games::{
    Action, Game, StartError,
    chess::{Chess, Rules, UciError},
};

/// A position as the GUI set it up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The FEN that the game began with; `None` for the usual start.
    pub fen: Option<String>,
    /// The moves from there.
    pub moves: Vec<Action>,
    /// Where they led.
    pub chess: Chess,
    rules: Rules,
}

/// A position that cannot be set up; the one before stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The FEN.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A move.
    #[error("move {number}: {source}")]
    Move {
        /// Its place, from 1.
        number: usize,
        /// What is wrong with it.
        source: UciError,
    },
}

impl Setup {
    /// Sets up a position. Moves are played on past draws by repetition and the like: it is for the GUI to end games.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn new(fen: Option<&str>, moves: &[String], under_promotions: bool) -> Result<Self, SetupError> {
        let rules = Rules {
            underpromotions: under_promotions,
        };
        let mut chess = Chess::start(&rules, fen)?;
        let mut played = Vec::with_capacity(moves.len());
        for (index, uci) in moves.iter().enumerate() {
            let action = chess.action_of_uci(uci).map_err(|source| SetupError::Move {
                number: index + 1,
                source,
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

    /// Actions of the moves that these texts stand for, ascending. Texts that are no legal move are left out.
    pub fn actions_of(&self, moves: &[String]) -> Vec<Action> {
        let mut actions: Vec<Action> = moves
            .iter()
            .filter_map(|uci| self.chess.action_of_uci(uci).ok())
            .collect();
        actions.sort_unstable();
        actions.dedup();
        actions
    }

    /// The moves that lead here from `earlier`, if the game went through it.
    pub fn moves_since(&self, earlier: &Self) -> Option<&[Action]> {
        if self.fen != earlier.fen {
            return None;
        }
        self.moves.strip_prefix(earlier.moves.as_slice())
    }

    /// What can be searched here: the position, or, where it is a draw already and the game goes on all the same, the
    /// position without its past. `None` where no search helps: mate, stalemate, no material left to mate.
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

    /// Any legal move; `None` where there is none. A queen is promoted to rather than something less.
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
    fn what_is_wrong_is_named() {
        let error = setup(None, "e2e4 e2e4").unwrap_err().to_string();
        assert_eq!(error, "move 2: e2e4 is not legal here");
        assert!(setup(Some("8/8"), "").is_err());
        let start = setup(None, "").unwrap();
        let some = ["e2e4", "e7e5", "what", "a2a3"].map(str::to_owned);
        assert_eq!(start.actions_of(&some).len(), 2);
    }
}
