//! A game at a table: its actions so far, and where its turns began.

use std::path::Path;

use anyhow::{Context as _, bail};
use games::{Action, Game, Player};
use serde_json::{Map, Value};

use super::table::{GameAt, Table};
use crate::rules::{face::Face, request::Request};

/// A game under way.
pub struct Play<T: Table> {
    begin: GameAt<T>,
    /// The position it began with, as it was given.
    start: Option<String>,
    actions: Vec<Action>,
    /// For each action: who played it, and whether it began a turn.
    played: Vec<(Player, bool)>,
    state: GameAt<T>,
}

impl<T: Table> Play<T> {
    /// A game by the table's rules, from a position or the usual start.
    ///
    /// # Errors
    /// Where the text is no position of the game.
    pub fn new(start: Option<&str>) -> anyhow::Result<Self> {
        let begin = GameAt::<T>::start(&T::rules(), start)?;
        Ok(Self {
            state: begin.clone(),
            begin,
            start: start.map(str::to_owned),
            actions: Vec::new(),
            played: Vec::new(),
        })
    }

    /// Reads a game that [`Play::save`] wrote.
    ///
    /// # Errors
    /// Where the file is no such game, or of another game.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let (_, request) = Request::read(&text);
        let request = request.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        if request.game != GameAt::<T>::NAME {
            bail!(
                "{} is a game of {}, not of {}",
                path.display(),
                request.game,
                GameAt::<T>::NAME
            );
        }
        // A game may write a start otherwise than as a text; its position as one means the same.
        let start = match &request.start {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                let begin = T::Face::start(&request, &T::rules())
                    .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
                Some(begin.position())
            }
        };
        let mut play = Self::new(start.as_deref())?;
        for (number, value) in request.actions.iter().flatten().enumerate() {
            let action = T::Face::read_action(&play.state, value)
                .map_err(|error| anyhow::anyhow!("{}: action {number}: {error}", path.display()))?;
            play.play(action)
                .with_context(|| format!("{}: action {number}", path.display()))?;
        }
        Ok(play)
    }

    /// Writes the game as one line of JSON: a question that `minuet rules` answers.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        let mut state = self.begin.clone();
        let mut actions = Vec::with_capacity(self.actions.len());
        for &action in &self.actions {
            actions.push(T::Face::write_action(&state, action));
            state.play_legal(action);
        }
        let mut record = Map::new();
        record.insert(
            "id".into(),
            path.file_stem().unwrap_or_default().to_string_lossy().into(),
        );
        record.insert("game".into(), GameAt::<T>::NAME.into());
        record.insert("start".into(), self.start.clone().into());
        record.insert("actions".into(), actions.into());
        if let Value::Object(rules) = serde_json::to_value(T::rules())? {
            record.extend(rules);
        }
        let line = format!("{}\n", Value::Object(record));
        std::fs::write(path, line).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Where it began.
    pub fn begin(&self) -> &GameAt<T> {
        &self.begin
    }

    /// Where it stands.
    pub fn state(&self) -> &GameAt<T> {
        &self.state
    }

    /// What was played.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Plays an action.
    ///
    /// # Errors
    /// Where it is not legal; nothing has changed then.
    pub fn play(&mut self, action: Action) -> Result<(), games::IllegalAction> {
        let begins = !T::is_mid_turn(&self.state);
        let mover = self.state.to_move();
        self.state.play(action)?;
        self.actions.push(action);
        self.played.push((mover, begins));
        Ok(())
    }

    /// Takes back to where one of `players` last began a turn. False where none has.
    pub fn undo(&mut self, players: &[Player]) -> bool {
        let last = self
            .played
            .iter()
            .rposition(|(player, begins)| *begins && players.contains(player));
        let Some(last) = last else {
            return false;
        };
        self.actions.truncate(last);
        self.played.truncate(last);
        self.state.clone_from(&self.begin);
        for &action in &self.actions {
            self.state.play_legal(action);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::{chess::ChessTable, paco_sako::PacoSakoTable};

    fn enter<T: Table>(play: &mut Play<T>, text: &str) {
        for action in T::read_turn(play.state(), text).unwrap() {
            play.play(action).unwrap();
        }
    }

    #[test]
    fn undo_goes_back_to_ones_own_turn() {
        let mut play = Play::<ChessTable>::new(None).unwrap();
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
    fn a_turn_that_was_begun_is_taken_back_whole() {
        let mut play = Play::<PacoSakoTable>::new(Some("4k3/8/4p3/3a4/8/8/8/3RK3 w 0 - - -")).unwrap();
        enter(&mut play, "d1");
        enter(&mut play, "d5");
        assert!(play.undo(&[Player::First]));
        assert_eq!(play.actions().len(), 0);
    }

    #[test]
    fn a_saved_game_goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("game.json");
        let mut play = Play::<PacoSakoTable>::new(None).unwrap();
        for turn in ["e2 e4", "d7 d5", "e4 d5", "d8"] {
            enter(&mut play, turn);
        }
        play.save(&file).unwrap();
        let loaded = Play::<PacoSakoTable>::load(&file).unwrap();
        assert_eq!(loaded.actions(), play.actions());
        assert_eq!(loaded.state(), play.state());
        assert!(Play::<ChessTable>::load(&file).is_err());
        std::fs::write(&file, "{\"game\":\"chess\",\"actions\":[\"e2e5\"]}").unwrap();
        let error = Play::<ChessTable>::load(&file).err().unwrap();
        assert!(format!("{error:#}").contains("action 0"), "{error:#}");
    }
}
