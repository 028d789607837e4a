//! Paco Ŝako: a chess variant in which pieces unite instead of capturing.
//!
//! Two pieces of different colours on one square are a *union*. A turn is a sequence of actions of one player: lift, place,
//! promote. A piece placed on a union takes the place of the piece of its colour, which is released and must be placed in
//! turn: a *chain*. The *hand* holds the piece, or the pair of pieces, that was lifted or released. A player wins by
//! uniting with the opponent's king.
//!
//! The rules are those of the `kreibaum/pacosako` engine (the *original engine*), in every detail. Two switches of
//! [`Rules`] add restrictions for self-play and for people.
//!
//! | module | content |
//! |---|---|
//! | `piece`, `board`, `position` | state without history |
//! | `action` | action numbers |
//! | `movement`, `castling`, `threats`, `reach` | movement of pieces, and the squares they threaten |
//! | `apply` | effects of actions |
//! | `legal`, `offer`, `completion`, `rules` | legal actions under the switchable rules |
//! | `history`, `digest` | repetitions, cycles within a turn, hashes of states |
//! | `turn_win`, `turn_draw` | wins and draws within the present turn |
//! | `fen`, `row` | a position as text, and as the row of a network |
//! | `game` | [`PacoSako`], the [`crate::Game`] |
//! | `notation` | drawing, notation and JSON |
//! | `lessons` | the rules in half a page, for people |

mod action;
mod apply;
mod board;
mod castling;
mod completion;
mod digest;
mod fen;
mod game;
mod history;
mod legal;
mod lessons;
mod movement;
mod notation;
mod offer;
mod piece;
mod position;
mod reach;
mod row;
mod rules;
mod threats;
mod turn_draw;
mod turn_win;

pub use game::PacoSako;
pub use piece::Kind;
pub use position::{RequiredAction, Victory};
pub use row::Encoding;
pub use rules::{DeadEnd, Rules, TurnCycles};
