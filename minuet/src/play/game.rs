//! A game under way, saved and loaded.

use std::{
    ops::{Deref, DerefMut},
    path::Path,
};

use anyhow::{Context as _, bail};
use games::{Course, erased::AnyGame};
use serde_json::{Map, Value};

use crate::rules::answer::Request;

/// A game under way, with the text of its start.
pub struct Play {
    /// Start position as it was given. `None` means the usual start.
    start: Option<String>,
    course: Course,
}

impl Play {
    /// Starts a game by the rules that people play by, from a position or the usual start.
    ///
    /// # Errors
    /// `start` is not a position of the game.
    pub fn new(game: &AnyGame, start: Option<&str>) -> anyhow::Result<Self> {
        let variant = game.variant(&game.people_rules(), None)?;
        Ok(Self {
            start: start.map(str::to_owned),
            course: Course::new(variant.start(start)?),
        })
    }

    /// Returns the game.
    pub fn game(&self) -> &'static AnyGame {
        self.course.begin().game()
    }

    /// Reads a game that [`Play::save`] wrote.
    ///
    /// # Errors
    /// The file cannot be read, holds another game, or an action in it is not legal.
    pub fn load(game: &AnyGame, path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let (_, request) = Request::read(&text);
        let request = request.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        if request.game != game.name {
            bail!(
                "{} is a game of {}, not of {}",
                path.display(),
                request.game,
                game.name
            );
        }
        // The start may be JSON other than a text. The text of that position means the same.
        let start = match &request.start {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                let variant = game.variant(&game.people_rules(), None)?;
                let begin = variant
                    .start_from_json(request.start.as_ref(), &request.rules)
                    .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
                Some(begin.position())
            }
        };
        let mut play = Self::new(game, start.as_deref())?;
        for (number, value) in request.actions.iter().flatten().enumerate() {
            let action = play
                .state()
                .action_from_json(value)
                .map_err(|error| anyhow::anyhow!("{}: action {number}: {error}", path.display()))?;
            play.course
                .play(action)
                .with_context(|| format!("{}: action {number}", path.display()))?;
        }
        Ok(play)
    }

    /// Writes the game as one line of JSON: a request that `minuet rules` answers.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        let mut state = self.course.begin().copy();
        let mut actions = Vec::with_capacity(self.course.actions().len());
        for &action in self.course.actions() {
            actions.push(state.action_to_json(action));
            state.play_legal(action);
        }
        let mut record = Map::new();
        record.insert(
            "id".into(),
            path.file_stem().unwrap_or_default().to_string_lossy().into(),
        );
        record.insert("game".into(), self.game().name.into());
        record.insert("start".into(), self.start.clone().into());
        record.insert("actions".into(), actions.into());
        if let Value::Object(rules) = self.game().people_rules() {
            record.extend(rules);
        }
        let line = format!("{}\n", Value::Object(record));
        std::fs::write(path, line).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Deref for Play {
    type Target = Course;

    fn deref(&self) -> &Course {
        &self.course
    }
}

impl DerefMut for Play {
    fn deref_mut(&mut self) -> &mut Course {
        &mut self.course
    }
}

#[cfg(test)]
mod tests {
    use games::{Player, registry};

    use super::*;

    fn game(name: &str) -> &'static AnyGame {
        registry::find(name).unwrap()
    }

    fn enter(play: &mut Play, text: &str) {
        for action in play.state().read_turn(text).unwrap() {
            play.play(action).unwrap();
        }
    }

    #[test]
    fn undo_goes_back_to_the_players_own_turn() {
        let mut play = Play::new(game("chess"), None).unwrap();
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
        let mut play = Play::new(game("paco-sako"), Some("4k3/8/4p3/3a4/8/8/8/3RK3 w 0 - - -")).unwrap();
        enter(&mut play, "d1");
        enter(&mut play, "d5");
        assert!(play.undo(&[Player::First]));
        assert_eq!(play.actions().len(), 0);
    }

    #[test]
    fn a_saved_game_continues_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("game.json");
        let mut play = Play::new(game("paco-sako"), None).unwrap();
        for turn in ["e2 e4", "d7 d5", "e4 d5", "d8"] {
            enter(&mut play, turn);
        }
        play.save(&file).unwrap();
        let loaded = Play::load(game("paco-sako"), &file).unwrap();
        assert_eq!(loaded.actions(), play.actions());
        assert_eq!(loaded.state().position(), play.state().position());
        assert!(Play::load(game("chess"), &file).is_err());
        std::fs::write(&file, "{\"game\":\"chess\",\"actions\":[\"e2e5\"]}").unwrap();
        let error = Play::load(game("chess"), &file).err().unwrap();
        assert!(format!("{error:#}").contains("action 0"), "{error:#}");
    }
}
