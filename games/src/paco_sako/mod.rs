//! Paco Ŝako: chess pieces that never capture but unite, and dance on in chains.
//!
//! The rules are those of the `kreibaum/pacosako` engine, its quirks included, plus two switches for
//! self-play and play ([`Rules`]). A turn is a sequence of actions of one player: lift, place, place on, promote.
//!
//! | module | what it is for |
//! |---|---|
//! | `piece`, `board`, `position` | what there is at one moment |
//! | `action` | action numbers |
//! | `movement`, `castling`, `threats`, `reach` | where pieces go, and what they threaten |
//! | `apply` | what an action does |
//! | `legal`, `completion`, `rules` | what may be done, under which rules |
//! | `history`, `digest`, `seen` | repetitions, cycles within a turn, and how states are told apart |
//! | `fen`, `row` | a position as text, and as a network sees it |
//! | `game` | all of it as a [`crate::Game`] |

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
mod movement;
mod people;
mod piece;
mod position;
mod reach;
mod row;
mod rules;
mod seen;
mod threats;

pub use game::PacoSako;
pub use piece::Kind;
pub use position::{RequiredAction, Victory};
pub use row::Encoding;
pub use rules::{DeadEnd, Rules, TurnCycles};
