//! A game under way, saved and loaded.

use std::{
    ops::{Deref, DerefMut},
    path::Path,
};

use anyhow::{Context as _, bail};
use games::{Course, Notation};
use serde_json::{Map, Value};

use crate::rules::request::Request;

/// A game under way, with the text of its start.
pub struct Play<G: Notation> {
    /// Start position as it was given. `None` means the usual start.
    start: Option<String>,
    course: Course<G>,
}

impl<G: Notation> Play<G> {
    /// Starts a game by the rules that people play by, from a position or the usual start.
    ///
    /// # Errors
    /// `start` is not a position of the game.
    pub fn new(start: Option<&str>) -> anyhow::Result<Self> {
        Ok(Self {
            start: start.map(str::to_owned),
            course: Course::new(G::start(&G::people_rules(), start)?),
        })
    }

    /// Reads a game that [`Play::save`] wrote.
    ///
    /// # Errors
    /// The file cannot be read, holds another game, or an action in it is not legal.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let (_, request) = Request::read(&text);
        let request = request.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        if request.game != G::NAME {
            bail!(
                "{} is a game of {}, not of {}",
                path.display(),
                request.game,
                G::NAME
            );
        }
        // The start may be JSON other than a text. The text of that position means the same.
        let start = match &request.start {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                let begin = G::start_from_json(&G::people_rules(), request.start.as_ref(), &request.rules)
                    .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
                Some(begin.position())
            }
        };
        let mut play = Self::new(start.as_deref())?;
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
        let mut state = self.course.begin().clone();
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
        record.insert("game".into(), G::NAME.into());
        record.insert("start".into(), self.start.clone().into());
        record.insert("actions".into(), actions.into());
        if let Value::Object(rules) = serde_json::to_value(G::people_rules())? {
            record.extend(rules);
        }
        let line = format!("{}\n", Value::Object(record));
        std::fs::write(path, line).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl<G: Notation> Deref for Play<G> {
    type Target = Course<G>;

    fn deref(&self) -> &Course<G> {
        &self.course
    }
}

impl<G: Notation> DerefMut for Play<G> {
    fn deref_mut(&mut self) -> &mut Course<G> {
        &mut self.course
    }
}

#[cfg(test)]
mod tests {
    use games::{Game as _, Player, chess::Chess, paco_sako::PacoSako};

    use super::*;

    fn enter<G: Notation>(play: &mut Play<G>, text: &str) {
        for action in play.state().read_turn(text).unwrap() {
            play.play(action).unwrap();
        }
    }

    #[test]
    fn undo_goes_back_to_the_players_own_turn() {
        let mut play = Play::<Chess>::new(None).unwrap();
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
        let mut play = Play::<PacoSako>::new(Some("4k3/8/4p3/3a4/8/8/8/3RK3 w 0 - - -")).unwrap();
        enter(&mut play, "d1");
        enter(&mut play, "d5");
        assert!(play.undo(&[Player::First]));
        assert_eq!(play.actions().len(), 0);
    }

    #[test]
    fn a_saved_game_continues_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("game.json");
        let mut play = Play::<PacoSako>::new(None).unwrap();
        for turn in ["e2 e4", "d7 d5", "e4 d5", "d8"] {
            enter(&mut play, turn);
        }
        play.save(&file).unwrap();
        let loaded = Play::<PacoSako>::load(&file).unwrap();
        assert_eq!(loaded.actions(), play.actions());
        assert_eq!(loaded.state(), play.state());
        assert!(Play::<Chess>::load(&file).is_err());
        std::fs::write(&file, "{\"game\":\"chess\",\"actions\":[\"e2e5\"]}").unwrap();
        let error = Play::<Chess>::load(&file).err().unwrap();
        assert!(format!("{error:#}").contains("action 0"), "{error:#}");
    }
}
