//! Writes games as NumPy arrays with a JSON description.
//!
//! Arrays have one entry for each position, in the order of the games. Columns whose length varies from position to position (visits,
//! and in some games rows) have an additional array of offsets. `games.json` describes the arrays, including the offset of the data in
//! each file, so that `numpy.memmap` can open them directly.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use proto::v1::Game;
use serde_json::{Value, json};

use super::npy::{DATA_OFFSET, Element, Npy};

/// Version of the format of `games.json`.
const FORMAT: u32 = 1;

/// Writer of a folder of arrays.
pub struct Writer {
    folder: PathBuf,
    rows: Npy<u32>,
    row_starts: Npy<u64>,
    visit_starts: Npy<u64>,
    visit_actions: Npy<u32>,
    visits: Npy<u32>,
    results: Npy<f32>,
    root_values: Npy<f32>,
    surprises: Npy<f32>,
    actions: Npy<u32>,
    movers: Npy<u8>,
    games_of: Npy<u32>,
    plies: Npy<u32>,
    games: Vec<Value>,
    positions: u64,
    row_values: u64,
    visit_entries: u64,
    /// Number of values in each row; 0 if rows differ in length.
    width: Option<u64>,
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
        let path = |name: &str| folder.join(format!("{name}.npy"));
        let mut row_starts = Npy::create(&path("row_starts"))?;
        let mut visit_starts = Npy::create(&path("visit_starts"))?;
        row_starts.extend([0])?;
        visit_starts.extend([0])?;
        Ok(Self {
            rows: Npy::create(&path("rows"))?,
            row_starts,
            visit_starts,
            visit_actions: Npy::create(&path("visit_actions"))?,
            visits: Npy::create(&path("visits"))?,
            results: Npy::create(&path("results"))?,
            root_values: Npy::create(&path("root_values"))?,
            surprises: Npy::create(&path("policy_surprises"))?,
            actions: Npy::create(&path("actions"))?,
            movers: Npy::create(&path("movers"))?,
            games_of: Npy::create(&path("games"))?,
            plies: Npy::create(&path("plies"))?,
            folder: folder.into(),
            games: Vec::new(),
            positions: 0,
            row_values: 0,
            visit_entries: 0,
            width: None,
        })
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
            self.row_starts.extend([self.row_values])?;
            self.visit_starts.extend([self.visit_entries])?;
            // 0 after two rows of different lengths.
            self.width = match self.width {
                None => Some(length),
                Some(width) if width == length => Some(width),
                Some(_) => Some(0),
            };
        }
        self.rows.extend(game.rows.iter().copied())?;
        self.visit_actions.extend(game.visit_actions.iter().copied())?;
        self.visits.extend(game.visits.iter().copied())?;
        let signs = game
            .movers
            .iter()
            .map(|&mover| if mover == 1 { -game.score } else { game.score });
        self.results.extend(signs)?;
        self.root_values.extend(game.root_values.iter().copied())?;
        let surprise = |ply| game.policy_surprises.get(ply).copied().unwrap_or(f32::NAN);
        self.surprises.extend((0..positions).map(surprise))?;
        self.actions.extend(game.actions.iter().copied())?;
        self.movers.extend(game.movers.iter().copied())?;
        self.games_of.extend(std::iter::repeat_n(number, positions))?;
        self.plies.extend(0..positions as u32)?;
        let id = proto::ids::hex(&game.id);
        self.games.push(json!({
            "id": id,
            "sequence": sequence,
            "first_position": self.positions,
            "positions": positions,
            "result": game.result().as_str_name(),
            "score": game.score,
            "ending": game.ending,
            "start": game.start,
            "model_versions": game.model_versions,
            "model_providers": game.model_providers,
            "model_of_position": game.model_of_position,
            "provenance": game.provenance,
            "replaces": proto::ids::hex(&game.replaces),
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

    /// Finishes the arrays and writes `games.json`, which contains `layout`, the row layout. Returns the numbers of games and positions.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn finish(self, game: &str, options: u32, layout: &Value) -> io::Result<(usize, u64)> {
        let Self {
            folder,
            games,
            positions,
            ..
        } = self;
        let width = self.width.filter(|&width| width > 0);
        let arrays = [
            array(
                "rows",
                self.rows,
                width,
                "input rows of the network, described by `layout`",
            )?,
            array(
                "row_starts",
                self.row_starts,
                None,
                "offset of each position's row in the flattened `rows`, and the total length",
            )?,
            array(
                "visit_starts",
                self.visit_starts,
                None,
                "offset of each position's entries in `visit_actions` and `visits`, and the total length",
            )?,
            array(
                "visit_actions",
                self.visit_actions,
                None,
                "policy indices of the visited actions",
            )?,
            array(
                "visits",
                self.visits,
                None,
                "visit counts of these actions; a position without visits is not a training target",
            )?,
            array(
                "results",
                self.results,
                None,
                "the game's result for the player to act: 1, 0, -1, or a score; not discounted",
            )?,
            array(
                "root_values",
                self.root_values,
                None,
                "root value after the search, for the player to act; discounted by the search",
            )?,
            array(
                "policy_surprises",
                self.surprises,
                None,
                "divergence of the visits from the network's priors, in nats; NaN where not measured",
            )?,
            array(
                "actions",
                self.actions,
                None,
                "id of the action played, independent of the player",
            )?,
            array(
                "movers",
                self.movers,
                None,
                "player who acted: 0 is the first, 1 the second",
            )?,
            array(
                "games",
                self.games_of,
                None,
                "index of the position's game in the list `games`",
            )?,
            array(
                "plies",
                self.plies,
                None,
                "number of actions played before the position",
            )?,
        ];
        let count = games.len();
        let description = json!({
            "format": FORMAT,
            "game": game,
            "options": options,
            "layout": layout,
            "positions": positions,
            "arrays": serde_json::Map::from_iter(arrays),
            "games": games,
        });
        // Written last, so that a folder with this file is complete.
        durable::write(
            &folder.join("games.json"),
            &serde_json::to_vec_pretty(&description)?,
        )?;
        if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            durable::sync_folder(parent)?;
        }
        Ok((count, positions))
    }
}

fn array<T: Element>(
    name: &str,
    array: Npy<T>,
    width: Option<u64>,
    meaning: &str,
) -> io::Result<(String, Value)> {
    let shape = array.finish(width)?;
    let description = json!({
        "file": format!("{name}.npy"),
        "dtype": T::DTYPE,
        "shape": shape,
        "offset": DATA_OFFSET,
        "meaning": meaning,
    });
    Ok((name.into(), description))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.into()))
}
