//! The head of a record: texts, provenance, and the counts that the columns are read by.

use proto::v1::{Game, VisitTotals};

use super::{
    DecodeError, MAX_POSITIONS, MAX_VALUES,
    reader::{Reader, put_text, put_varint},
};

/// What a list of games shows of one.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The game's id.
    pub id: [u8; 16],
    /// Positions recorded.
    pub positions: u32,
    /// Positions with visit counts: those that are sampled.
    pub trainable: u32,
    /// The message without its per-position fields and its id.
    pub game: Game,
}

/// How long the columns are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub positions: usize,
    pub trainable: usize,
    pub row_values: usize,
    pub visit_entries: usize,
    pub models_of_position: usize,
    pub varying_rows: bool,
}

/// A head as read.
pub(super) struct Head {
    pub counts: Counts,
    pub game: Game,
}

const VARYING_ROWS: u8 = 1;
const HAS_TOTALS: u8 = 2;
const HAS_MODELS: u8 = 4;

/// Appends the head of `game`.
pub(super) fn put(game: &Game, out: &mut Vec<u8>) {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    out.push(
        flag(!game.row_lengths.is_empty(), VARYING_ROWS)
            | flag(game.totals.is_some(), HAS_TOTALS)
            | flag(!game.model_of_position.is_empty(), HAS_MODELS),
    );
    let trainable = game.visit_counts.iter().filter(|&&count| count > 0).count();
    for count in [
        game.actions.len(),
        trainable,
        game.rows.len(),
        game.visit_actions.len(),
    ] {
        put_varint(count as u64, out);
    }
    put_text(&game.game, out);
    put_varint(game.options.into(), out);
    out.extend_from_slice(&game.result.to_le_bytes());
    out.extend_from_slice(&game.score.to_le_bytes());
    for number in [game.run_seed, game.game_number, game.finished_at_ms] {
        put_varint(number, out);
    }
    if let Some(totals) = &game.totals {
        for number in [
            totals.visits,
            totals.fresh_evaluations,
            totals.cache_hits,
            totals.terminal_visits,
            totals.duplicates_in_flight,
            totals.gray_visits,
        ] {
            put_varint(number, out);
        }
    }
    for text in [
        &game.rules_json,
        &game.start,
        &game.ending,
        &game.search_json,
        &game.actor,
        &game.build,
    ] {
        put_text(text, out);
    }
    put_varint(game.model_versions.len() as u64, out);
    for version in &game.model_versions {
        put_text(version, out);
    }
}

/// Reads a head; all of `plain` must be one.
pub(super) fn take(plain: &[u8]) -> Result<Head, DecodeError> {
    let mut reader = Reader::new(plain);
    let flags = reader.byte()?;
    let positions = reader.count(MAX_POSITIONS)?;
    let counts = Counts {
        positions,
        trainable: reader.count(positions)?,
        row_values: reader.count(MAX_VALUES)?,
        visit_entries: reader.count(MAX_VALUES)?,
        models_of_position: if flags & HAS_MODELS == 0 { 0 } else { positions },
        varying_rows: flags & VARYING_ROWS != 0,
    };
    let mut game = Game {
        game: reader.text()?,
        options: reader.varint32()?,
        result: i32::from_le_bytes(reader.array()?),
        score: f32::from_le_bytes(reader.array()?),
        run_seed: reader.varint()?,
        game_number: reader.varint()?,
        finished_at_ms: reader.varint()?,
        ..Game::default()
    };
    if flags & HAS_TOTALS != 0 {
        game.totals = Some(VisitTotals {
            visits: reader.varint()?,
            fresh_evaluations: reader.varint()?,
            cache_hits: reader.varint()?,
            terminal_visits: reader.varint()?,
            duplicates_in_flight: reader.varint()?,
            gray_visits: reader.varint()?,
        });
    }
    game.rules_json = reader.text()?;
    game.start = reader.text()?;
    game.ending = reader.text()?;
    game.search_json = reader.text()?;
    game.actor = reader.text()?;
    game.build = reader.text()?;
    let versions = reader.count(plain.len())?;
    game.model_versions = (0..versions).map(|_| reader.text()).collect::<Result<_, _>>()?;
    reader.end()?;
    Ok(Head { counts, game })
}
