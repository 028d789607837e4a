//! The generator game at the terminal: the target, the grid as it is, and the clan as text.

use games::{
    Action, Game, Player,
    generator::{GeneratorGame, Move, Problem, Rules},
};

use super::{board::Style, table::Table};
use crate::{generator::paint, rules::generator::GeneratorFace};

/// The generator game; a person plays by the strict rules.
pub struct GeneratorTable;

impl Table for GeneratorTable {
    type Face = GeneratorFace;

    const HELP: &'static str = "Moves: an imp's number and the move, e.g. `0 append_line`, `8 set_color_2`, `5 move_right`;\n\
        `mark_step` and `mark_complete` need no number. `moves` lists what is possible.\n\
        A problem is posed by --start '{\"target\":[[1,1],[1,0]]}'.";

    fn rules() -> Rules {
        Rules::default()
    }

    fn player(player: Player) -> &'static str {
        match player {
            Player::First => "You",
            Player::Second => "Nobody",
        }
    }

    fn draw(state: &GeneratorGame, style: Style) -> String {
        let render = state.render();
        let problem = state.problem();
        let targets = [
            ("target", problem.target()),
            ("second target", problem.second_target()),
        ];
        let mut grids: Vec<_> = targets
            .into_iter()
            .filter_map(|(title, grid)| Some((title, grid?)))
            .collect();
        grids.push(("drawn", &render));
        format!(
            "{}\n\n{}\n",
            paint::side_by_side(&grids, style.colour && !style.ascii),
            state.clan().to_text()
        )
    }

    fn remark(state: &GeneratorGame) -> String {
        match state.problem() {
            Problem::Free => "No problem is posed: draw what you like.".into(),
            Problem::Pair(..) if state.step_marked() => "The step is marked; now the second target.".into(),
            Problem::Draw(_) | Problem::Pair(..) => String::new(),
        }
    }

    fn read_turn(state: &GeneratorGame, text: &str) -> Result<Vec<Action>, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (imp, name) = match words[..] {
            [name] => (0, name),
            [imp, name] => {
                let known = imp.parse::<usize>().ok().filter(|&imp| imp < state.clan().len());
                let last = state.clan().len() - 1;
                (
                    known.ok_or_else(|| format!("{imp:?} is no imp, 0 to {last}"))?,
                    name,
                )
            }
            _ => return Err("write an imp's number and a move, e.g. 0 append_dot".into()),
        };
        let action = (0..38)
            .map(Move)
            .find(|action| action.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| format!("{name:?} is no move; `moves` lists what is possible"))?;
        let action = GeneratorGame::action(imp, action);
        match state.clone().play(action) {
            Ok(()) => Ok(vec![action]),
            Err(error) => Err(format!("{text:?}: {}", error.reason)),
        }
    }

    fn write_turn(_: &GeneratorGame, actions: &[Action]) -> String {
        let texts: Vec<String> = actions
            .iter()
            .map(|&action| {
                let (imp, action) = GeneratorGame::imp_and_move(action);
                format!("{imp} {}", action.name().to_lowercase())
            })
            .collect();
        texts.join(", ")
    }

    fn result(state: &GeneratorGame) -> Option<String> {
        let moves = state.plies();
        Some(match state.ending()? {
            "solved" => format!("Solved in {moves} moves."),
            "oops" => "Oops: that was not right, and play is over.".into(),
            _ => format!("Given up after {moves} moves."),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_entered_by_name_and_faults_are_explained() {
        let start = r#"{"target":[[1,1],[0,0]]}"#;
        let mut state = GeneratorGame::start(&GeneratorTable::rules(), Some(start)).unwrap();
        let played = GeneratorTable::read_turn(&state, "0 append_line").unwrap();
        assert_eq!(GeneratorTable::write_turn(&state, &played), "0 append_line");
        state.play(played[0]).unwrap();
        let board = GeneratorTable::draw(&state, Style::default());
        assert!(
            board.starts_with("target              drawn\nbb                  b......."),
            "{board}"
        );
        assert!(board.contains("4   Line (shapes[0])"), "{board}");
        for (text, words) in [
            ("", "write an imp"),
            ("11 inc", "is no imp, 0 to 10"),
            ("0 jump", "is no move"),
            ("4 inc", "not possible"),
        ] {
            let error = GeneratorTable::read_turn(&state, text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        let mark = GeneratorTable::read_turn(&state, "mark_complete").unwrap();
        state.play(mark[0]).unwrap();
        assert!(GeneratorTable::result(&state).unwrap().starts_with("Oops"));
    }
}
