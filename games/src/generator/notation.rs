//! The generator game for people and in JSON: grids side by side, the clan as text, moves as an imp's number and a name.
//!
//! In JSON, an action is `[imp, move]`, a start is a packed clan, and grids are rows of colours.

use documented::DocumentedFields as _;
use serde_json::{Map, Value, json};

use super::{
    Clan, Encoding, EpisodeEnd, GeneratorGame, Grid, Move, Problem, Rules,
    grammar::{self, MAX_IMPS},
    grid::{ABSENT, SIDE},
    moves::MOVES,
    problem::MAX_EXAMPLES,
    text,
};
use crate::{
    Action, Game, Notation,
    notation::JsonFields,
    perft::KnownPerft,
    scene::{Board, Cell, Clicks, Part, Scene, Surface},
    terminal::Style,
};

/// Titles of the grids of each example.
const EXAMPLES: [[&str; 2]; MAX_EXAMPLES] = [
    ["example 1", "its output"],
    ["example 2", "its output"],
    ["example 3", "its output"],
];

impl GeneratorGame {
    /// Returns the grids of the examples, each with its title.
    fn example_grids(&self) -> Vec<(&'static str, Grid)> {
        let titled = EXAMPLES.iter().zip(self.examples().as_slice());
        titled
            .flat_map(|([input, output], example)| [(*input, example.input), (*output, example.output)])
            .collect()
    }

    /// Returns the targets of the problem and the grid as drawn so far, each with its title.
    fn grids(&self) -> Vec<(&'static str, Grid)> {
        let problem = self.problem();
        let targets = [
            ("target", problem.target()),
            ("second target", problem.second_target()),
        ];
        targets
            .into_iter()
            .filter_map(|(title, grid)| Some((title, *grid?)))
            .chain([("drawn", self.render())])
            .collect()
    }
}

impl Notation for GeneratorGame {
    const PLAYER_NAMES: [&'static str; 2] = ["You", "Nobody"];

    const HELP: &'static str = "Moves: an imp's number and the move, e.g. `0 append_line`, `8 set_color_2`, `5 move_right`;\n\
        `mark_step` and `mark_complete` need no number. `moves` lists the possible moves.\n\
        Set a problem with --start '{\"target\":[[1,1],[1,0]]}'.";

    const KNOWN_PERFT: &'static [KnownPerft] = &[];

    const BETWEEN_ACTIONS: &'static str = ", ";

    const START_FIELDS: &'static [&'static str] = &["target", "second_target", "examples"];

    const OPTION_NAMES: &'static [&'static str] = &["examples"];

    const RUN_SETTINGS: &'static str = include_str!("run.toml");

    fn rule_comment(key: &str) -> Option<&'static str> {
        Rules::get_field_docs(key).ok()
    }

    fn scene(&self, _: &[Action]) -> Scene {
        let grids = self.grids().into_iter().chain(self.example_grids());
        let boards = grids.map(|(title, grid)| board(title, &grid));
        Scene {
            tree: parts(self.clan()),
            ..self.scene_of(boards.collect())
        }
    }

    fn clicks(&self, action: Action) -> Clicks {
        Clicks {
            part: Some(Self::imp_and_move(action).0),
            ..Clicks::default()
        }
    }

    fn draw(&self, style: Style) -> String {
        let painted = |grids: &[(&'static str, Grid)]| {
            let grids: Vec<(&str, &Grid)> = grids.iter().map(|(title, grid)| (*title, grid)).collect();
            text::side_by_side(&grids, style.colour && !style.ascii)
        };
        let mut text = painted(&self.grids());
        if !self.examples().is_empty() {
            text += &format!("\n\n{}", painted(&self.example_grids()));
        }
        format!("{text}\n\n{}\n", self.clan().to_text())
    }

    fn remark(&self) -> String {
        match self.problem() {
            Problem::Free if self.step_marked() => "The first grid is proposed. Draw the second.".into(),
            Problem::Free => "There is no problem: draw anything, and mark it to propose it.".into(),
            Problem::Pair(..) if self.step_marked() => "The step is marked. Draw the second target.".into(),
            Problem::Draw(_) | Problem::Pair(..) => String::new(),
        }
    }

    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (imp, name) = match words[..] {
            [name] => (0, name),
            [imp, name] => {
                let known = imp.parse::<usize>().ok().filter(|&imp| imp < self.clan().len());
                let last = self.clan().len() - 1;
                (
                    known.ok_or_else(|| format!("{imp:?} is not an imp, 0 to {last}"))?,
                    name,
                )
            }
            _ => return Err("enter an imp's number and a move, e.g. 0 append_dot".into()),
        };
        let action = (0..MOVES as u8)
            .map(Move)
            .find(|action| action.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| format!("{name:?} is not a move; `moves` lists the possible moves"))?;
        let action = Self::action(imp, action);
        self.turn_of(text, action)
    }

    fn write_action(&self, action: Action) -> String {
        let (imp, action) = Self::imp_and_move(action);
        format!("{imp} {}", action.name().to_lowercase())
    }

    fn result_text(&self) -> Option<String> {
        let moves = self.plies();
        Some(match self.end()? {
            EpisodeEnd::Solved => format!("Solved in {moves} moves."),
            EpisodeEnd::Oops => "Oops: the move was wrong, and the game is over.".into(),
            EpisodeEnd::MoveLimit => format!("Not solved within {moves} moves."),
            EpisodeEnd::Proposed => format!("Proposed after {moves} moves."),
        })
    }

    /// Returns the strict rules: only moves that succeed are offered, and marks.
    fn people_rules() -> Rules {
        Rules::default()
    }

    /// Returns the original rules: a move that fails is an Oops.
    fn json_rules() -> Rules {
        Rules::compatibility()
    }

    /// Returns the state at the start. `start` is a packed clan, or a whole position as text. The targets are fields next to it.
    fn start_from_json(
        rules: &Rules,
        start: Option<&Value>,
        fields: &Map<String, Value>,
    ) -> Result<Self, String> {
        let mut position = match start {
            None => Map::new(),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Object(position)) => position,
                _ => return Err("`start` is a text that is not a position".into()),
            },
            Some(clan) => Map::from_iter([("clan".to_owned(), clan.clone())]),
        };
        for &name in Self::START_FIELDS {
            if let Some(grid) = fields.get(name).filter(|grid| !grid.is_null()) {
                position.insert(name.into(), grid.clone());
            }
        }
        let text = Value::Object(position).to_string();
        Self::start(rules, Some(&text)).map_err(|error| error.to_string())
    }

    fn action_from_json(&self, value: &Value) -> Result<Action, String> {
        let number = |at: usize, below: usize| {
            let number = value.get(at).and_then(Value::as_u64)?;
            (number < below as u64).then_some(number)
        };
        match (
            value.as_array().map(Vec::len),
            number(0, MAX_IMPS),
            number(1, MOVES),
        ) {
            (Some(2), Some(imp), Some(action)) => Ok(Self::action(imp as usize, Move(action as u8))),
            _ => Err(format!(
                "{value} is not an [imp, move] (imps 0 to 95, moves 0 to 37)"
            )),
        }
    }

    fn action_to_json(&self, action: Action) -> Value {
        let (imp, action) = Self::imp_and_move(action);
        json!([imp, action.0])
    }

    fn outcome_name(&self) -> Option<&'static str> {
        self.end().map(|end| match end {
            EpisodeEnd::Solved => "first",
            EpisodeEnd::Oops => "second",
            EpisodeEnd::MoveLimit | EpisodeEnd::Proposed => "draw",
        })
    }

    /// Returns the fields `clan` (packed), `render` and `step_marked`. After an Oops, `clan` and `render` are null.
    fn json_fields(&self, _: Encoding) -> JsonFields {
        let (clan, render) = match self.end() {
            Some(EpisodeEnd::Oops) => (Value::Null, Value::Null),
            _ => (
                self.clan().packed().collect::<Vec<u32>>().into(),
                json!(Vec::<Vec<u8>>::from(self.render())),
            ),
        };
        vec![
            ("clan", clan),
            ("render", render),
            ("step_marked", self.step_marked().into()),
        ]
    }
}

/// Returns the imps of a clan as parts of a tree. A part's place in the list is the number of its imp.
fn parts(clan: &Clan) -> Vec<Part> {
    let depths = clan.depths();
    let imps = clan.values().iter().zip(clan.roles()).zip(depths);
    imps.map(|((&value, &role), depth)| Part {
        depth,
        text: match role {
            grammar::THIS => grammar::value_name(value),
            _ => format!("{}: {}", grammar::role_name(role), grammar::value_name(value)),
        },
    })
    .collect()
}

/// Returns the board of a grid. Absent cells have no paint.
fn board(title: &'static str, grid: &Grid) -> Board {
    let cell = |&color: &u8| Cell {
        paint: (color != ABSENT).then_some(color),
        ..Cell::default()
    };
    Board {
        title,
        surface: Surface::Painted,
        columns: vec![String::new(); SIDE],
        rows: vec![String::new(); SIDE],
        cells: grid.cells().iter().map(cell).collect(),
        colors: ["", ""],
        pieces_per_cell: 0,
        is_turned_for_second: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_read_by_name_and_errors_are_explained() {
        let start = r#"{"target":[[1,1],[0,0]]}"#;
        let mut state = GeneratorGame::start(&GeneratorGame::people_rules(), Some(start)).unwrap();
        let played = state.read_turn("0 append_line").unwrap();
        assert_eq!(state.write_turn(&played), "0 append_line");
        state.play(played[0]).unwrap();
        let board = state.draw(Style::default());
        assert!(
            board.starts_with("target              drawn\nbb                  b......."),
            "{board}"
        );
        assert!(board.contains("4   Line (shapes[0])"), "{board}");
        for (text, words) in [
            ("", "enter an imp"),
            ("11 inc", "is not an imp, 0 to 10"),
            ("0 jump", "is not a move"),
            ("4 inc", "cannot make"),
        ] {
            let error = state.read_turn(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        let mark = state.read_turn("mark_complete").unwrap();
        state.play(mark[0]).unwrap();
        assert!(state.result_text().unwrap().starts_with("Oops"));
    }
}
