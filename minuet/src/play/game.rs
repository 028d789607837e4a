//! A game under way: its beginning, and the file in which it is saved.

use std::{io::Write as _, path::Path, sync::Arc};

use anyhow::{Context as _, Error, anyhow, ensure};
use games::{
    Course,
    erased::{AnyGame, Variant},
    registry,
};
use serde_json::{Map, Value};

use crate::{
    draft::Draft,
    rules::{answer::Request, lines::MARK},
};

/// Largest file of a game that is read, in bytes.
pub const MAX_FILE: u64 = 16 << 20;

/// A game under way, with its rules.
#[derive(Debug)]
pub struct Played {
    pub course: Course,
    pub variant: Arc<dyn Variant>,
}

/// Starts a game by the rules that people play by, from a position or the usual start.
///
/// # Errors
/// `start` is not a position of the game.
pub fn begin(game: &AnyGame, start: Option<&str>) -> anyhow::Result<Played> {
    let variant = game.variant(&game.people_rules(), None)?;
    Ok(Played {
        course: Course::new(variant.start(start)?),
        variant,
    })
}

/// True if a file holds games in the Smart Game Format, by its name.
fn is_sgf(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("sgf"))
}

/// Reads the text of an SGF file: of the game `named`, or of the first game that has such files.
fn read_sgf(named: Option<&AnyGame>, text: &[u8]) -> anyhow::Result<Played> {
    let mut games = registry::NAMES
        .iter()
        .filter_map(|name| registry::find(name).ok());
    let game = named.or_else(|| games.find(|game| game.has_sgf));
    let read = game
        .context("no game has SGF files")?
        .read_sgf(&String::from_utf8_lossy(text))?;
    Ok(Played {
        course: read.course().map_err(Error::msg)?,
        variant: read.rules,
    })
}

/// Reads the request that [`save`] wrote.
fn read_request(text: &[u8]) -> anyhow::Result<Played> {
    let (_, request) = Request::read(text.strip_prefix(MARK).unwrap_or(text));
    let request = request.map_err(Error::msg)?;
    let variant = request.variant(AnyGame::people_rules).map_err(Error::msg)?;
    let begin = variant.start_from_json(request.start.as_ref(), &request.rules);
    let mut course = Course::new(begin.map_err(Error::msg)?);
    for (number, value) in request.actions.iter().flatten().enumerate() {
        let action = course.state().action_from_json(value);
        let action = action.map_err(|error| anyhow!("action {number}: {error}"))?;
        course.play(action).with_context(|| format!("action {number}"))?;
    }
    Ok(Played { course, variant })
}

/// Reads a game that [`save`] wrote, or an SGF file: of the game `named`, or of any.
///
/// # Errors
/// The file cannot be read, holds another game, or an action in it is not legal.
pub fn load(named: Option<&AnyGame>, path: &Path) -> anyhow::Result<Played> {
    let name = path.display();
    let text = service::filesystem::read(path, MAX_FILE).with_context(|| format!("cannot read {name}"))?;
    let read = match is_sgf(path) {
        true => read_sgf(named, &text),
        false => read_request(&text),
    };
    let played = read.with_context(|| name.to_string())?;
    if let Some(named) = named {
        let found = played.variant.game();
        let (found_title, title) = (found.title(), named.title());
        ensure!(
            named.includes(found),
            "{name} is a game of {found_title}, not of {title}"
        );
    }
    Ok(played)
}

/// Writes a game as one line of JSON, a request that `minuet rules` answers; as SGF if the file's name ends so. `names` are those of
/// the players.
///
/// # Errors
/// The file cannot be written, or the game has no SGF files.
pub fn save(played: &Played, names: [&str; 2], path: &Path) -> anyhow::Result<()> {
    let Played { course, variant } = played;
    let game = variant.game();
    let write = |text: String| {
        let mut draft = Draft::of(path)?;
        draft.write_all(text.as_bytes())?;
        draft.complete()
    };
    let write = |text| write(text).with_context(|| format!("cannot write {}", path.display()));
    if is_sgf(path) {
        let sgf = course.begin().write_sgf(course.actions(), names);
        return write(sgf.with_context(|| format!("{} has no SGF files", game.name))??);
    }
    let position = course.begin().position();
    let is_usual = variant.start(None)?.position() == position;
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
    if let Value::Object(rules) = variant.rules() {
        record.extend(rules);
    }
    write(format!("{}\n", Value::Object(record)))
}

#[cfg(test)]
mod tests {
    use games::Player;
    use serde_json::json;

    use super::*;

    fn game(name: &str) -> &'static AnyGame {
        registry::find(name).unwrap()
    }

    fn enter(play: &mut Played, text: &str) {
        for action in play.course.state().read_turn(text).unwrap() {
            play.course.play(action).unwrap();
        }
    }

    #[test]
    fn undo_goes_back_to_the_players_own_turn() {
        let mut play = begin(game("chess"), None).unwrap();
        let begin = play.course.state().position();
        assert!(!play.course.undo(&[Player::First, Player::Second]));
        enter(&mut play, "e4");
        enter(&mut play, "e5");
        enter(&mut play, "Nf3");
        assert!(play.course.undo(&[Player::Second]));
        assert_eq!(play.course.actions().len(), 1);
        assert!(!play.course.undo(&[Player::Second]));
        assert!(play.course.undo(&[Player::First]));
        assert_eq!(play.course.state().position(), begin);
    }

    #[test]
    fn undo_takes_back_a_whole_unfinished_turn() {
        let mut play = begin(game("paco-sako"), Some("4k3/8/4p3/3a4/8/8/8/3RK3 w 0 - - -")).unwrap();
        enter(&mut play, "d1");
        enter(&mut play, "d5");
        assert!(play.course.undo(&[Player::First]));
        assert_eq!(play.course.actions().len(), 0);
    }

    #[test]
    fn a_game_of_go_is_saved_and_loaded_as_sgf() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("game.SGF");
        let mut play = begin(game("go:13"), None).unwrap();
        for turn in ["d4", "k10", "pass"] {
            enter(&mut play, turn);
        }
        save(&play, ["one", "two"], &file).unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().contains("SZ[13]"));
        for named in [Some("go:13"), Some("go"), None] {
            let loaded = load(named.map(game), &file).unwrap();
            assert_eq!(loaded.course.state().position(), play.course.state().position());
            assert_eq!(loaded.course.begin().game().title(), "go:13");
        }
        let refused = |named: &str| format!("{:#}", load(Some(game(named)), &file).err().unwrap());
        assert!(refused("go:9").ends_with("is a game of go:13, not of go:9"));
        assert!(refused("chess").ends_with("chess has no SGF files"));
        let other = save(&begin(game("chess"), None).unwrap(), [""; 2], &file);
        assert_eq!(other.unwrap_err().to_string(), "chess has no SGF files");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        std::fs::write(&file, "(;GM[1]SZ[9];B[aa];W[aa])").unwrap();
        assert!(refused("go:9").contains("move 2 (W[aa]) is not legal"));
    }

    #[test]
    fn a_saved_game_continues_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("game.json");
        let mut play = begin(game("paco-sako"), None).unwrap();
        for turn in ["e2 e4", "d7 d5", "e4 d5", "d8"] {
            enter(&mut play, turn);
        }
        save(&play, [""; 2], &file).unwrap();
        for named in [Some(game("paco-sako")), None] {
            let loaded = load(named, &file).unwrap();
            assert_eq!(loaded.course.actions(), play.course.actions());
            assert_eq!(loaded.course.state().position(), play.course.state().position());
        }
        assert!(load(Some(game("chess")), &file).is_err());
        std::fs::write(&file, "{\"game\":\"chess\",\"actions\":[\"e2e5\"]}").unwrap();
        let error = load(None, &file).err().unwrap();
        assert!(format!("{error:#}").contains("action 0"), "{error:#}");
    }

    #[test]
    fn a_game_keeps_its_rules_in_files() {
        let folder = tempfile::tempdir().unwrap();
        let (sgf, json) = (folder.path().join("a.sgf"), folder.path().join("a.json"));
        std::fs::write(&sgf, "(;GM[1]SZ[9]KM[0.5]RU[NZ];B[aa];W[bb])").unwrap();
        let expected = |played: Played| {
            let rules = played.variant.rules();
            assert_eq!(
                [&rules["komi"], &rules["suicide"], &rules["superko"]],
                [&json!(0.5), &json!(true), &json!("situational")]
            );
            played
        };
        save(&expected(load(None, &sgf).unwrap()), [""; 2], &json).unwrap();
        save(&expected(load(None, &json).unwrap()), [""; 2], &sgf).unwrap();
        expected(load(None, &sgf).unwrap());
        for (text, fault) in [
            (r#"{"game":"go","komi":7.25}"#, "`komi` is 7.25"),
            (r#"{"game":"go","comi":7.5}"#, "unknown field"),
            (r#"{"game":"go:5","size":7}"#, "`size` is that of go:7"),
        ] {
            std::fs::write(&json, text).unwrap();
            let error = format!("{:#}", load(None, &json).unwrap_err());
            assert!(error.contains(fault), "{error}");
        }
        std::fs::write(&json, "\u{feff}{\"game\":\"chess\"}").unwrap();
        load(None, &json).unwrap();
    }

    #[test]
    fn only_regular_files_are_read_and_replaced() {
        let played = begin(game("chess"), None).unwrap();
        for path in ["/dev/zero", "/dev/null", "/"] {
            load(None, Path::new(path)).unwrap_err();
            save(&played, [""; 2], Path::new(path)).unwrap_err();
        }
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "before").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        save(&played, [""; 2], &link).unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().contains("chess"));
        assert!(link.is_symlink());
    }
}
