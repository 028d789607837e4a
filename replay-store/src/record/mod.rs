//! The stored form of a game, which is compact, versioned and exact.
//!
//! ```text
//! record  = version u8 · id [16] · head · columns
//! head    = section: flags, counts, and the message without columns and id (summary() reads no further)
//! columns = section: movers, actions, model of each position
//!         · section: rows, as edits of earlier rows ([`rows`])
//!         · section: visit counts and visited actions
//!         · section: visits
//!         · section: root values
//!         · if the game has search results: their two sections ([`decisions`])
//! section = plain length varint · packed length varint · zstd frame
//! ```
//!
//! Numbers are LEB128 ([`sections`]) or byte planes ([`planes`]). A record has no checksum; the checksums are in the frames of the log
//! ([`crate::log::frame`]). Decoding nevertheless accepts any bytes, and returns a game or a [`DecodeError`]. A field of the message that has no
//! section is a part of the head without a change of this code. A new section needs a new version.

mod allowance;
mod decisions;
pub mod decoded;
pub mod filter;
mod planes;
mod rows;
pub mod rules;
mod sections;
pub mod validate;

use prost::Message as _;
use proto::{columns::Lengths, v1::Game};

pub use sections::{DecodeError, MAX_POSITIONS, MAX_VALUES};
use sections::{Reader, put_varint};

/// Version of records.
pub const VERSION: u8 = 1;

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

/// A head that was read: the lengths of the columns, and the message without them.
struct Head {
    positions: usize,
    trainable: usize,
    row_values: usize,
    visit_entries: usize,
    models_of_position: usize,
    /// Number of unvisited actions of all positions, if the game has search results.
    unvisited_entries: Option<usize>,
    varying_rows: bool,
    game: Game,
}

const VARYING_ROWS: u8 = 1;
const HAS_MODELS: u8 = 2;
const HAS_DECISIONS: u8 = 4;

/// Removes the columns from a message and returns them as another message, which has nothing else.
fn take_columns(game: &mut Game) -> Game {
    use std::mem::take;

    Game {
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
        ..Game::default()
    }
}

/// Appends the head of a game whose columns and id were removed.
fn put_head(rest: &Game, columns: &Game, out: &mut Vec<u8>) {
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
fn take_head(plain: &[u8]) -> Result<Head, DecodeError> {
    let mut reader = Reader::new(plain);
    let flags = reader.byte()?;
    let positions = reader.count(MAX_POSITIONS)?;
    Ok(Head {
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
        game: Game::decode(reader.rest())
            .map_err(|_| DecodeError::Damaged("the head of the record is not valid protobuf"))?,
    })
}

/// Packs a game that [`crate::record::validate::check`] has accepted.
///
/// # Errors
/// The error of zstd. The buffers are large enough, so this can only be a lack of memory.
pub fn encode(mut game: Game) -> std::io::Result<Vec<u8>> {
    let id = std::mem::take(&mut game.id);
    let columns = take_columns(&mut game);
    let mut record = Vec::with_capacity(256 + 64 * columns.actions.len());
    record.push(VERSION);
    record.extend((0..16).map(|at| id.get(at).copied().unwrap_or(0)));
    sections::with_packer(|packer| {
        packer.put(&mut record, |plain| put_head(&game, &columns, plain))?;
        packer.put(&mut record, |plain| {
            plain.extend_from_slice(&columns.movers);
            planes::put(&columns.actions, plain);
            planes::put(&columns.model_of_position, plain);
        })?;
        packer.put(&mut record, |plain| put_rows(&columns, plain))?;
        packer.put(&mut record, |plain| {
            planes::put(&columns.visit_counts, plain);
            planes::put(&columns.visit_actions, plain);
        })?;
        packer.put(&mut record, |plain| planes::put(&columns.visits, plain))?;
        packer.put(&mut record, |plain| {
            planes::put_floats(&columns.root_values, plain)
        })?;
        if let Some(found) = &columns.decisions {
            packer.put(&mut record, |plain| decisions::put_names(found, plain))?;
            packer.put(&mut record, |plain| decisions::put_numbers(found, plain))?;
        }
        Ok(())
    })?;
    Ok(record)
}

fn put_rows(columns: &Game, plain: &mut Vec<u8>) {
    let lengths = if columns.row_lengths.is_empty() {
        Lengths::Fixed(columns.rows.len() / columns.actions.len().max(1))
    } else {
        planes::put(&columns.row_lengths, plain);
        Lengths::Varying(&columns.row_lengths)
    };
    rows::put(&columns.rows, &lengths, &columns.movers, plain);
}

/// Unpacks a whole game. It equals the packed game in every field.
///
/// # Errors
/// [`DecodeError`] if the bytes are not a record.
pub fn decode(record: &[u8]) -> Result<Game, DecodeError> {
    let (mut reader, mut unpacker, id, mut head) = open(record)?;
    let mut game = std::mem::take(&mut head.game);
    game.id = id.to_vec().into();

    unpacker.section(&mut reader, |section| {
        game.movers = section.take(head.positions)?.to_vec().into();
        game.actions = planes::take(section, head.positions)?;
        game.model_of_position = planes::take(section, head.models_of_position)?;
        Ok(())
    })?;
    unpacker.section(&mut reader, |section| {
        if head.varying_rows {
            game.row_lengths = planes::take(section, head.positions)?;
        }
        game.rows = take_rows(section, &game, head.row_values)?;
        Ok(())
    })?;
    unpacker.section(&mut reader, |section| {
        game.visit_counts = planes::take(section, head.positions)?;
        game.visit_actions = planes::take(section, head.visit_entries)?;
        Ok(())
    })?;
    game.visits = unpacker.section(&mut reader, |section| planes::take(section, head.visit_entries))?;
    game.root_values = unpacker.section(&mut reader, |section| {
        planes::take_floats(section, head.positions)
    })?;
    if let Some(unvisited) = head.unvisited_entries {
        let mut found = unpacker.section(&mut reader, |section| {
            decisions::take_names(section, head.positions, unvisited)
        })?;
        unpacker.section(&mut reader, |section| {
            decisions::take_numbers(section, &mut found, head.visit_entries)
        })?;
        if Lengths::Varying(&found.unvisited_counts).total(head.positions) != unvisited as u64 {
            return Err(DecodeError::NUMBER);
        }
        game.decisions = Some(found);
    }

    reader.end()?;
    if Lengths::Varying(&game.visit_counts).total(head.positions) != head.visit_entries as u64 {
        return Err(DecodeError::NUMBER);
    }
    Ok(game)
}

fn take_rows(section: &mut Reader<'_>, game: &Game, values: usize) -> Result<Vec<u32>, DecodeError> {
    let positions = game.movers.len();
    let lengths = if game.row_lengths.is_empty() {
        Lengths::Fixed(values.checked_div(positions).unwrap_or(0))
    } else {
        Lengths::Varying(&game.row_lengths)
    };
    if lengths.total(positions) != values as u64 {
        return Err(DecodeError::NUMBER);
    }
    rows::take(section, &lengths, &game.movers, values)
}

/// Returns the summary of a game from the head of its record, without reading the columns.
///
/// # Errors
/// [`DecodeError`] if the bytes are not a record.
pub fn summary(record: &[u8]) -> Result<Summary, DecodeError> {
    let (_, _, id, head) = open(record)?;
    Ok(Summary {
        id,
        positions: head.positions as u32,
        trainable: head.trainable as u32,
        game: head.game,
    })
}

fn open(record: &[u8]) -> Result<(Reader<'_>, sections::Unpacker, [u8; 16], Head), DecodeError> {
    let mut reader = Reader::new(record);
    match reader.byte()? {
        VERSION => {}
        other => return Err(DecodeError::Version(other)),
    }
    let id = reader.array()?;
    let mut unpacker = sections::Unpacker::default();
    let head = take_head(unpacker.take(&mut reader)?)?;
    Ok((reader, unpacker, id, head))
}

#[cfg(test)]
mod tests;
