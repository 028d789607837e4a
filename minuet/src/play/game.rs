//! A game under way: its beginning, and the file in which it is saved.

use std::path::Path;

use anyhow::{Context as _, anyhow, ensure};
use games::{Course, erased::AnyGame, registry};
use serde_json::{Map, Value};

use crate::rules::answer::Request;

/// Starts a game by the rules that people play by, from a position or the usual start.
///
/// # Errors
/// `start` is not a position of the game.
pub fn begin(game: &AnyGame, start: Option<&str>) -> anyhow::Result<Course> {
    let variant = game.variant(&game.people_rules(), None)?;
    Ok(Course::new(variant.start(start)?))
}

/// Reads a game that [`save`] wrote: of the game `named`, or of any.
///
/// # Errors
/// The file cannot be read, holds another game, or an action in it is not legal.
pub fn load(named: Option<&AnyGame>, path: &Path) -> anyhow::Result<Course> {
    let name = path.display();
    let text = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let (_, request) = Request::read(&text);
    let request = request.map_err(|error| anyhow!("{name}: {error}"))?;
    let game = registry::find(&request.game).with_context(|| name.to_string())?;
    if let Some(named) = named {
        ensure!(
            game.name == named.name,
            "{name} is a game of {}, not of {}",
            game.name,
            named.name
        );
    }
    let variant = game.variant(&game.people_rules(), None)?;
    let begin = variant.start_from_json(request.start.as_ref(), &request.rules);
    let mut course = Course::new(begin.map_err(|error| anyhow!("{name}: {error}"))?);
    for (number, value) in request.actions.iter().flatten().enumerate() {
        let action = course.state().action_from_json(value);
        let action = action.map_err(|error| anyhow!("{name}: action {number}: {error}"))?;
        course
            .play(action)
            .with_context(|| format!("{name}: action {number}"))?;
    }
    Ok(course)
}

/// Writes a game as one line of JSON: a request that `minuet rules` answers.
///
/// # Errors
/// The file cannot be written.
pub fn save(course: &Course, path: &Path) -> anyhow::Result<()> {
    let game = course.begin().game();
    let position = course.begin().position();
    let is_usual = begin(game, None)?.begin().position() == position;
    let mut state = course.begin().copy();
    let mut actions = Vec::with_capacity(course.actions().len());
    for &action in course.actions() {
        actions.push(state.action_to_json(action));
        state.play_legal(action);
    }
    let mut record = Map::new();
    record.insert(
        "id".into(),
        path.file_stem().unwrap_or_default().to_string_lossy().into(),
    );
    record.insert("game".into(), game.name.into());
    record.insert("start".into(), (!is_usual).then_some(position).into());
    record.insert("actions".into(), actions.into());
    if let Value::Object(rules) = game.people_rules() {
        record.extend(rules);
    }
    let line = format!("{}\n", Value::Object(record));
    std::fs::write(path, line).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use games::Player;

    use super::*;

    fn game(name: &str) -> &'static AnyGame {
        registry::find(name).unwrap()
    }

    fn enter(play: &mut Course, text: &str) {
        for action in play.state().read_turn(text).unwrap() {
            play.play(action).unwrap();
        }
    }

    #[test]
    fn undo_goes_back_to_the_players_own_turn() {
        let mut play = begin(game("chess"), None).unwrap();
        let begin = play.state().position();
        assert!(!play.undo(&[Player::First, Player::Second]));
        enter(&mut play, "e4");
        enter(&mut play, "e5");
        enter(&mut play, "Nf3");
        assert!(play.undo(&[Player::Second]));
        assert_eq!(play.actions().len(), 1);
        assert!(!play.undo(&[Player::Second]));
        assert!(play.undo(&[Player::First]));
        assert_eq!(play.state().position(), begin);
    }

    #[test]
    fn undo_takes_back_a_whole_unfinished_turn() {
        let mut play = begin(game("paco-sako"), Some("4k3/8/4p3/3a4/8/8/8/3RK3 w 0 - - -")).unwrap();
        enter(&mut play, "d1");
        enter(&mut play, "d5");
        assert!(play.undo(&[Player::First]));
        assert_eq!(play.actions().len(), 0);
    }

    #[test]
    fn a_saved_game_continues_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("game.json");
        let mut play = begin(game("paco-sako"), None).unwrap();
        for turn in ["e2 e4", "d7 d5", "e4 d5", "d8"] {
            enter(&mut play, turn);
        }
        save(&play, &file).unwrap();
        for named in [Some(game("paco-sako")), None] {
            let loaded = load(named, &file).unwrap();
            assert_eq!(loaded.actions(), play.actions());
            assert_eq!(loaded.state().position(), play.state().position());
        }
        assert!(load(Some(game("chess")), &file).is_err());
        std::fs::write(&file, "{\"game\":\"chess\",\"actions\":[\"e2e5\"]}").unwrap();
        let error = load(None, &file).err().unwrap();
        assert!(format!("{error:#}").contains("action 0"), "{error:#}");
    }
}
