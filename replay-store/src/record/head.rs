//! The head of a record: the lengths of the columns, and the protobuf message without its columns and its id. A field that is added to
//! the message later becomes a part of the head without a change of this code.

use prost::Message as _;
use proto::v1::{Decisions, Game};

use super::{
    error::{DecodeError, MAX_POSITIONS, MAX_VALUES},
    reader::{Reader, put_varint},
};

/// Summary of a game for lists.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The game's id.
    pub id: [u8; 16],
    /// Number of recorded positions.
    pub positions: u32,
    /// Number of positions with visit counts, which are the ones that can be sampled.
    pub trainable: u32,
    /// The message without its per-position fields and its id.
    pub game: Game,
}

impl Summary {
    /// Returns the id of the game that this one replaces, if any.
    pub fn replaces(&self) -> Option<[u8; 16]> {
        self.game.replaces.as_ref().try_into().ok()
    }
}

/// Lengths of the columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub positions: usize,
    pub trainable: usize,
    pub row_values: usize,
    pub visit_entries: usize,
    pub models_of_position: usize,
    /// Number of unvisited actions of all positions, if the game has search results.
    pub unvisited_entries: Option<usize>,
    pub varying_rows: bool,
}

/// A head that was read.
pub(super) struct Head {
    pub counts: Counts,
    pub game: Game,
}

const VARYING_ROWS: u8 = 1;
const HAS_MODELS: u8 = 2;
const HAS_DECISIONS: u8 = 4;

/// The columns of a game, without its other fields.
pub(super) struct Columns {
    pub actions: Vec<u32>,
    pub movers: bytes::Bytes,
    pub rows: Vec<u32>,
    pub row_lengths: Vec<u32>,
    pub visit_counts: Vec<u32>,
    pub visit_actions: Vec<u32>,
    pub visits: Vec<u32>,
    pub root_values: Vec<f32>,
    pub model_of_position: Vec<u32>,
    pub decisions: Option<Decisions>,
}

impl Columns {
    /// Removes the columns from a message and returns them.
    pub fn take(game: &mut Game) -> Self {
        use std::mem::take;

        Self {
            actions: take(&mut game.actions),
            movers: take(&mut game.movers),
            rows: take(&mut game.rows),
            row_lengths: take(&mut game.row_lengths),
            visit_counts: take(&mut game.visit_counts),
            visit_actions: take(&mut game.visit_actions),
            visits: take(&mut game.visits),
            root_values: take(&mut game.root_values),
            model_of_position: take(&mut game.model_of_position),
            decisions: take(&mut game.decisions),
        }
    }
}

/// Appends the head of a game whose columns and id were removed.
pub(super) fn put(rest: &Game, columns: &Columns, out: &mut Vec<u8>) {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    out.push(
        flag(!columns.row_lengths.is_empty(), VARYING_ROWS)
            | flag(!columns.model_of_position.is_empty(), HAS_MODELS)
            | flag(columns.decisions.is_some(), HAS_DECISIONS),
    );
    let trainable = columns.visit_counts.iter().filter(|&&count| count > 0).count();
    for count in [
        columns.actions.len(),
        trainable,
        columns.rows.len(),
        columns.visit_actions.len(),
    ] {
        put_varint(count as u64, out);
    }
    if let Some(decisions) = &columns.decisions {
        put_varint(decisions.unvisited_actions.len() as u64, out);
    }
    out.extend_from_slice(&rest.encode_to_vec());
}

/// Reads a head, which takes all of `plain`.
pub(super) fn take(plain: &[u8]) -> Result<Head, DecodeError> {
    let mut reader = Reader::new(plain);
    let flags = reader.byte()?;
    let positions = reader.count(MAX_POSITIONS)?;
    let counts = Counts {
        positions,
        trainable: reader.count(positions)?,
        row_values: reader.count(MAX_VALUES)?,
        visit_entries: reader.count(MAX_VALUES)?,
        unvisited_entries: match flags & HAS_DECISIONS {
            0 => None,
            _ => Some(reader.count(MAX_VALUES)?),
        },
        models_of_position: if flags & HAS_MODELS == 0 { 0 } else { positions },
        varying_rows: flags & VARYING_ROWS != 0,
    };
    let game = Game::decode(reader.rest()).map_err(|_| DecodeError::Head)?;
    Ok(Head { counts, game })
}
