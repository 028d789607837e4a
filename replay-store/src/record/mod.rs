//! The stored form of a game, which is compact, versioned and exact.
//!
//! ```text
//! record  = version u8 · id [16] · head · columns
//! head    = section: counts, and the message without columns and id (summary() reads no further)
//! columns = section: movers, actions, model of each position
//!         · section: rows, as edits of earlier rows ([`rows`])
//!         · section: visit counts and visited actions
//!         · section: visits
//!         · section: root values
//!         · if the game has search results: their two sections ([`decisions`])
//! section = plain length varint · packed length varint · zstd frame
//! ```
//!
//! Numbers are LEB128 ([`reader`]) or byte planes ([`planes`]). A record has no checksum; the checksums are in the frames of the log
//! ([`crate::log::frame`]). Decoding nevertheless accepts any bytes, and returns a game or a [`DecodeError`]. A new column needs a new
//! version, and old versions stay readable. Version 1 has no search results and is otherwise equal.

mod decisions;
pub mod decoded;
mod error;
pub mod filter;
mod head;
mod planes;
mod reader;
mod rows;
mod section;
pub mod surprise;
pub mod validate;

use proto::{columns::Lengths, v1::Game};

pub use error::{DecodeError, MAX_POSITIONS, MAX_VALUES};
use head::Columns;
pub use head::Summary;
use reader::Reader;

/// Version of records that this build writes.
pub const VERSION: u8 = 2;

/// Versions of records that this build reads.
pub const VERSIONS: &[u8] = &[1, VERSION];

/// Packs a game that [`crate::record::validate::check`] has accepted.
///
/// # Errors
/// The error of zstd. The buffers are large enough, so this can only be a lack of memory.
pub fn encode(mut game: Game) -> std::io::Result<Vec<u8>> {
    let id = std::mem::take(&mut game.id);
    let columns = Columns::take(&mut game);
    let mut record = Vec::with_capacity(256 + 64 * columns.actions.len());
    record.push(VERSION);
    record.extend((0..16).map(|at| id.get(at).copied().unwrap_or(0)));
    section::with_packer(|packer| {
        packer.put(&mut record, |plain| head::put(&game, &columns, plain))?;
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

fn put_rows(columns: &Columns, plain: &mut Vec<u8>) {
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
    let (mut reader, mut unpacker, id, head) = open(record)?;
    let counts = head.counts;
    let mut game = head.game;
    game.id = id.to_vec().into();

    let plain = unpacker.take(&mut reader)?;
    let mut section = Reader::new(plain);
    game.movers = section.take(counts.positions)?.to_vec().into();
    game.actions = planes::take(&mut section, counts.positions)?;
    game.model_of_position = planes::take(&mut section, counts.models_of_position)?;
    section.end()?;

    let plain = unpacker.take(&mut reader)?;
    let mut section = Reader::new(plain);
    if counts.varying_rows {
        game.row_lengths = planes::take(&mut section, counts.positions)?;
    }
    game.rows = take_rows(&mut section, &game, counts.row_values)?;
    section.end()?;

    let plain = unpacker.take(&mut reader)?;
    let mut section = Reader::new(plain);
    game.visit_counts = planes::take(&mut section, counts.positions)?;
    game.visit_actions = planes::take(&mut section, counts.visit_entries)?;
    section.end()?;

    let plain = unpacker.take(&mut reader)?;
    let mut section = Reader::new(plain);
    game.visits = planes::take(&mut section, counts.visit_entries)?;
    section.end()?;

    let plain = unpacker.take(&mut reader)?;
    let mut section = Reader::new(plain);
    game.root_values = planes::take_floats(&mut section, counts.positions)?;
    section.end()?;

    if let Some(unvisited) = counts.unvisited_entries {
        let plain = unpacker.take(&mut reader)?;
        let mut section = Reader::new(plain);
        let mut found = decisions::take_names(&mut section, counts.positions, unvisited)?;
        section.end()?;

        let plain = unpacker.take(&mut reader)?;
        let mut section = Reader::new(plain);
        decisions::take_numbers(&mut section, &mut found, counts.visit_entries)?;
        section.end()?;
        if Lengths::Varying(&found.unvisited_counts).total(counts.positions) != unvisited as u64 {
            return Err(DecodeError::Number);
        }
        game.decisions = Some(found);
    }

    reader.end()?;
    if Lengths::Varying(&game.visit_counts).total(counts.positions) != counts.visit_entries as u64 {
        return Err(DecodeError::Number);
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
        return Err(DecodeError::Number);
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
        positions: head.counts.positions as u32,
        trainable: head.counts.trainable as u32,
        game: head.game,
    })
}

fn open(record: &[u8]) -> Result<(Reader<'_>, section::Unpacker, [u8; 16], head::Head), DecodeError> {
    let mut reader = Reader::new(record);
    match reader.byte()? {
        version if VERSIONS.contains(&version) => {}
        other => return Err(DecodeError::Version(other)),
    }
    let id = reader.array()?;
    let mut unpacker = section::Unpacker::default();
    let head = head::take(unpacker.take(&mut reader)?)?;
    Ok((reader, unpacker, id, head))
}

#[cfg(test)]
mod tests;
