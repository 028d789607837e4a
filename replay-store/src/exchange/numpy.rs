//! Writes games as NumPy arrays (format version 1.0) with a JSON description.
//!
//! Arrays have one entry for each position, in the order of the games. Columns whose length varies from position to position (visits,
//! and in some games rows) have an additional array of offsets. `games.json` describes the arrays, including the offset of the data in
//! each file, so that `numpy.memmap` can open them directly. The data of an array is written as it arrives; its header with the shape is
//! written last.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use proto::v1::Game;
use serde_json::{Value, json};

/// Version of the format of `games.json`.
const FORMAT: u32 = 1;

/// Length of the header of an array in bytes, after which the data begins. The format requires a multiple of 64.
const DATA_OFFSET: u64 = 128;

/// Each array: its name, NumPy's name of the type, and its meaning.
const ARRAYS: [(&str, &str, &str); 12] = [
    (ROWS, "<u4", "input rows of the network, described by `layout`"),
    (
        "row_starts",
        "<u8",
        "offset of each position's row in the flattened `rows`, and the total length",
    ),
    (
        "visit_starts",
        "<u8",
        "offset of each position's entries in `visit_actions` and `visits`, and the total length",
    ),
    ("visit_actions", "<u4", "policy indices of the visited actions"),
    (
        "visits",
        "<u4",
        "visit counts of these actions; a position without visits is not a training target",
    ),
    (
        "results",
        "<f4",
        "the game's result for the player to act: 1, 0, -1, or a score; not discounted",
    ),
    (
        "root_values",
        "<f4",
        "root value after the search, for the player to act; discounted by the search",
    ),
    (
        "policy_surprises",
        "<f4",
        "divergence of the visits from the network's priors, in nats; NaN where not measured",
    ),
    (
        "actions",
        "<u4",
        "id of the action played, independent of the player",
    ),
    ("movers", "|u1", "player who acted: 0 is the first, 1 the second"),
    ("games", "<u4", "index of the position's game in the list `games`"),
    ("plies", "<u4", "number of actions played before the position"),
];

const ROWS: &str = "rows";

/// Array of the games in which squares are owned. Other exports do not have it.
const TERRITORIES: (&str, &str, &str) = (
    "territories",
    "|i1",
    "owner of each square at the end of a game: 1 the first player, -1 the second, 0 nobody; the entries of `games` name its rows",
);

/// A file with one array.
struct Array {
    name: &'static str,
    dtype: &'static str,
    meaning: &'static str,
    file: BufWriter<File>,
    bytes: u64,
}

impl Array {
    fn create(
        folder: &Path,
        (name, dtype, meaning): (&'static str, &'static str, &'static str),
    ) -> io::Result<Self> {
        let mut file = BufWriter::new(File::create(folder.join(format!("{name}.npy")))?);
        file.write_all(&[0; DATA_OFFSET as usize])?;
        Ok(Self {
            name,
            dtype,
            meaning,
            file,
            bytes: 0,
        })
    }

    /// Appends the little-endian bytes of numbers.
    fn extend<const BYTES: usize>(
        &mut self,
        numbers: impl IntoIterator<Item = [u8; BYTES]>,
    ) -> io::Result<()> {
        for number in numbers {
            self.file.write_all(&number)?;
            self.bytes += BYTES as u64;
        }
        Ok(())
    }

    /// Finishes the file and returns its entry in `games.json`. The array has rows of `width` numbers, or one dimension if `width` is
    /// `None`.
    fn finish(self, width: Option<u64>) -> io::Result<(String, Value)> {
        let Self {
            name, dtype, meaning, ..
        } = self;
        let each = u64::from(dtype.as_bytes().last().map_or(1, |digit| digit - b'0'));
        let count = self.bytes / each;
        let shape = match width {
            Some(width) => vec![count / width.max(1), width],
            None => vec![count],
        };
        let sides: Vec<String> = shape.iter().map(u64::to_string).collect();
        let text = format!(
            "{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({},), }}",
            sides.join(", ")
        );
        let length = DATA_OFFSET as usize - 10;
        let mut file = self.file.into_inner().map_err(|error| error.into_error())?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&(length as u16).to_le_bytes())?;
        file.write_all(format!("{text:<width$}\n", width = length - 1).as_bytes())?;
        file.sync_all()?;
        let entry = json!({
            "file": format!("{name}.npy"),
            "dtype": dtype,
            "shape": shape,
            "offset": DATA_OFFSET,
            "meaning": meaning,
        });
        Ok((name.into(), entry))
    }
}

/// Writer of a folder of arrays.
pub struct Writer {
    folder: PathBuf,
    arrays: Vec<Array>,
    games: Vec<Value>,
    positions: u64,
    row_values: u64,
    visit_entries: u64,
    /// Number of values in each row; 0 if rows differ in length.
    width: Option<u64>,
    /// Owners of the squares, one row for each game that has them; `None` before the first one.
    territories: Option<Array>,
    /// Number of squares of the board.
    squares: u64,
}

impl Writer {
    /// Creates the folder and begins the arrays. The folder must be empty if it exists.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn create(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        if fs::read_dir(folder)?.next().is_some() {
            let reason = format!("{} is not empty", folder.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
        }
        let arrays = ARRAYS.into_iter().map(|array| Array::create(folder, array));
        let mut writer = Self {
            folder: folder.into(),
            arrays: arrays.collect::<io::Result<_>>()?,
            games: Vec::new(),
            positions: 0,
            row_values: 0,
            visit_entries: 0,
            width: None,
            territories: None,
            squares: 0,
        };
        writer.extend("row_starts", [0u64.to_le_bytes()])?;
        writer.extend("visit_starts", [0u64.to_le_bytes()])?;
        Ok(writer)
    }

    fn extend<const BYTES: usize>(
        &mut self,
        array: &str,
        numbers: impl IntoIterator<Item = [u8; BYTES]>,
    ) -> io::Result<()> {
        let found = self.arrays.iter_mut().find(|found| found.name == array);
        found.map_or(Ok(()), |found| found.extend(numbers))
    }

    /// Adds a game.
    ///
    /// # Errors
    /// The error of the file system, or that the lengths of the game's columns do not add up.
    pub fn add(&mut self, sequence: u64, game: &Game) -> io::Result<()> {
        let positions = game.actions.len();
        let number = self.games.len() as u32;
        let rows = game.row_columns().map_err(io::Error::other)?;
        let policies = game.policy_columns().map_err(io::Error::other)?;
        for (row, (entries, _)) in rows.zip(policies) {
            let length = row.len() as u64;
            self.row_values += length;
            self.visit_entries += entries.len() as u64;
            self.extend("row_starts", [self.row_values.to_le_bytes()])?;
            self.extend("visit_starts", [self.visit_entries.to_le_bytes()])?;
            // 0 after two rows of different lengths.
            self.width = match self.width {
                None => Some(length),
                Some(width) if width == length => Some(width),
                Some(_) => Some(0),
            };
        }
        let bytes = |numbers: &[u32]| {
            numbers
                .iter()
                .map(|number| number.to_le_bytes())
                .collect::<Vec<_>>()
        };
        self.extend(ROWS, bytes(&game.rows))?;
        self.extend("visit_actions", bytes(&game.visit_actions))?;
        self.extend("visits", bytes(&game.visits))?;
        self.extend("actions", bytes(&game.actions))?;
        let sign = |&mover: &u8| if mover == 1 { -game.score } else { game.score };
        self.extend("results", game.movers.iter().map(sign).map(f32::to_le_bytes))?;
        self.extend(
            "root_values",
            game.root_values.iter().map(|value| value.to_le_bytes()),
        )?;
        let surprise = |ply| game.policy_surprises.get(ply).copied().unwrap_or(f32::NAN);
        self.extend(
            "policy_surprises",
            (0..positions).map(surprise).map(f32::to_le_bytes),
        )?;
        self.extend("movers", game.movers.iter().map(|&mover| [mover]))?;
        self.extend("games", std::iter::repeat_n(number.to_le_bytes(), positions))?;
        self.extend("plies", (0..positions as u32).map(u32::to_le_bytes))?;
        let territory = self.add_territory(&game.territory)?;
        let id = proto::ids::hex(&game.id);
        self.games.push(json!({
            "id": id,
            "sequence": sequence,
            "first_position": self.positions,
            "positions": positions,
            "result": game.result().as_str_name(),
            "score": game.score,
            "territory": territory,
            "territory_score": territory.map(|_| game.territory_score),
            "ending": game.ending,
            "start": game.start,
            "model_versions": game.model_versions,
            "model_providers": game.model_providers,
            "model_of_position": game.model_of_position,
            "provenance": game.provenance,
            "discount": game.discount,
            "run_seed": game.run_seed,
            "game_number": game.game_number,
            "actor": game.actor,
            "build": game.build,
            "finished_at_ms": game.finished_at_ms,
            "rules": parsed(&game.rules_json),
            "search": parsed(&game.search_json),
        }));
        self.positions += positions as u64;
        Ok(())
    }

    /// Adds the owners of the squares of a game. Returns the number of their row; `None` if the game has none.
    fn add_territory(&mut self, owners: &[u8]) -> io::Result<Option<u64>> {
        if owners.is_empty() {
            return Ok(None);
        }
        let array = match &mut self.territories {
            Some(array) => array,
            none => none.insert(Array::create(&self.folder, TERRITORIES)?),
        };
        self.squares = owners.len() as u64;
        let row = array.bytes / self.squares;
        array.extend(owners.iter().map(|&owner| [owner]))?;
        Ok(Some(row))
    }

    /// Finishes the arrays and writes `games.json`, which contains `layout`, the row layout. Returns the numbers of games and positions.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn finish(self, game: &str, options: u32, layout: &Value) -> io::Result<(usize, u64)> {
        let width = self.width.filter(|&width| width > 0);
        let arrays = self.arrays.into_iter().map(|array| {
            let width = width.filter(|_| array.name == ROWS);
            array.finish(width)
        });
        let territories = self.territories.into_iter();
        let arrays = arrays.chain(territories.map(|array| array.finish(Some(self.squares))));
        let count = self.games.len();
        let description = json!({
            "format": FORMAT,
            "game": game,
            "options": options,
            "layout": layout,
            "positions": self.positions,
            "arrays": arrays.collect::<io::Result<serde_json::Map<_, _>>>()?,
            "games": self.games,
        });
        // Written last, so that a folder with this file is complete.
        durable::write(
            &self.folder.join("games.json"),
            &serde_json::to_vec_pretty(&description)?,
        )?;
        if let Some(parent) = self
            .folder
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            durable::sync_folder(parent)?;
        }
        Ok((count, self.positions))
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn owners_of_squares_are_an_array_of_the_games_that_have_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(folder.path()).unwrap();
        let without = Game {
            territory: Default::default(),
            territory_score: 0.0,
            ..synthetic::go(3)
        };
        let games = [synthetic::go(1), without, synthetic::go(2)];
        for (game, sequence) in games.iter().zip(1..) {
            writer.add(sequence, game).unwrap();
        }
        writer.finish("go", 0, &Value::Null).unwrap();
        let text = fs::read(folder.path().join("games.json")).unwrap();
        let described: Value = serde_json::from_slice(&text).unwrap();
        let array = &described["arrays"]["territories"];
        assert_eq!(
            (&array["shape"], &array["dtype"]),
            (&json!([2, 9]), &json!("|i1"))
        );
        let rows: Vec<&Value> = (0..3)
            .map(|game| &described["games"][game]["territory"])
            .collect();
        assert_eq!(rows, [&json!(0), &Value::Null, &json!(1)]);
        let scores = (0..3).map(|game| described["games"][game]["territory_score"].as_f64());
        let score = |game: &Game| Some(f64::from(game.territory_score));
        assert_eq!(
            scores.collect::<Vec<_>>(),
            [score(&games[0]), None, score(&games[2])]
        );
        let bytes = fs::read(folder.path().join("territories.npy")).unwrap();
        assert_eq!(
            bytes[128..],
            [&games[0].territory[..], &games[2].territory[..]].concat()
        );
    }

    #[test]
    fn header_has_the_npy_format() {
        let folder = tempfile::tempdir().unwrap();
        let mut array = Array::create(folder.path(), ARRAYS[0]).unwrap();
        array.extend([1u32, 2, 3, 4, 5, 6].map(u32::to_le_bytes)).unwrap();
        let (name, entry) = array.finish(Some(3)).unwrap();
        assert_eq!((name.as_str(), &entry["shape"]), ("rows", &json!([2, 3])));
        let bytes = fs::read(folder.path().join("rows.npy")).unwrap();
        assert_eq!(bytes.len(), 128 + 24);
        assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
        let header = std::str::from_utf8(&bytes[10..128]).unwrap();
        assert!(header.starts_with("{'descr': '<u4', 'fortran_order': False, 'shape': (2, 3,), }"));
        assert!(header.ends_with(" \n"));
        assert_eq!(&bytes[128..132], [1, 0, 0, 0]);
    }
}
