//! How a game is played at the terminal: the [`Table`] trait, one implementation for each game.
//!
//! To add a game, implement [`Table`] for it and name it in [`visit`].

use games::{Action, Game, Outcome, Player, catalogue::UnknownGame};

use super::{
    board::Style, chess::ChessTable, connect_four::ConnectFourTable, generator::GeneratorTable,
    othello::OthelloTable, paco_sako::PacoSakoTable,
};
use crate::rules::face::Face;

/// The game at a table.
pub type GameAt<T> = <<T as Table>::Face as Face>::Game;

/// How one game is shown, and how its moves are entered.
pub trait Table {
    /// The game, and how its actions are written in a record.
    type Face: Face;

    /// What may be typed as a move, with an example, in a few lines.
    const HELP: &'static str;

    /// The rules that people play by.
    fn rules() -> <GameAt<Self> as Game>::Rules {
        Self::Face::rules()
    }

    /// What a player is called.
    fn player(player: Player) -> &'static str;

    /// The board, each line ended.
    fn draw(state: &GameAt<Self>, style: Style) -> String;

    /// What more there is to know than the board shows: a check, a piece in the hand. Empty for nothing.
    fn remark(_state: &GameAt<Self>) -> String {
        String::new()
    }

    /// Whether a turn has begun that its player must go on with.
    fn is_mid_turn(_state: &GameAt<Self>) -> bool {
        false
    }

    /// The actions that a text stands for, legal one after the other; they need not end the turn.
    ///
    /// # Errors
    /// Why the text is no such thing, for the person who typed it.
    fn read_turn(state: &GameAt<Self>, text: &str) -> Result<Vec<Action>, String>;

    /// Actions of one player, played one after the other, as people write them.
    fn write_turn(state: &GameAt<Self>, actions: &[Action]) -> String;

    /// What may be played now, for a person who asks.
    fn legal(state: &GameAt<Self>) -> String {
        let mut actions = Vec::new();
        state.legal_actions(&mut actions);
        let texts: Vec<String> = actions
            .iter()
            .map(|&action| Self::write_turn(state, &[action]))
            .collect();
        texts.join("  ")
    }

    /// How the game ended; `None` while it goes on.
    fn result(state: &GameAt<Self>) -> Option<String> {
        let why = state.ending().unwrap_or_default().replace('-', " ");
        Some(match state.outcome()? {
            Outcome::Won(player) => {
                let winner = Self::player(player);
                if why.ends_with("won") {
                    format!("{winner} has won.")
                } else {
                    format!("{winner} has won ({why}).")
                }
            }
            Outcome::Draw if why.is_empty() || why == "draw" => "The game is a draw.".into(),
            Outcome::Draw => format!("The game is a draw ({why})."),
            Outcome::Scored(score) => format!("The game is over; it is worth {score:.2}."),
        })
    }
}

/// Code that is generic over tables.
pub trait TableVisitor {
    /// What it gives.
    type Output;

    /// Runs it for one game's table.
    fn visit<T: Table>(self) -> Self::Output;
}

/// Runs `visitor` for the table of the game called `name`.
///
/// # Errors
/// [`UnknownGame`], which lists the names.
pub fn visit<V: TableVisitor>(name: &str, visitor: V) -> Result<V::Output, UnknownGame> {
    fn is<T: Table>(name: &str) -> bool {
        GameAt::<T>::NAME == name
    }
    match name {
        _ if is::<PacoSakoTable>(name) => Ok(visitor.visit::<PacoSakoTable>()),
        _ if is::<ChessTable>(name) => Ok(visitor.visit::<ChessTable>()),
        _ if is::<OthelloTable>(name) => Ok(visitor.visit::<OthelloTable>()),
        _ if is::<ConnectFourTable>(name) => Ok(visitor.visit::<ConnectFourTable>()),
        _ if is::<GeneratorTable>(name) => Ok(visitor.visit::<GeneratorTable>()),
        _ => Err(UnknownGame::new(name)),
    }
}

/// A player by the name that the game gives it, or by `first` and `second`.
pub fn read_player<T: Table>(text: &str) -> Option<Player> {
    let text = text.to_lowercase();
    [(Player::First, "first"), (Player::Second, "second")]
        .into_iter()
        .find(|&(player, number)| text == number || text == T::player(player).to_lowercase())
        .map(|(player, _)| player)
}
