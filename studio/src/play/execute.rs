//! Executes the commands of a page at a table.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use arena::{PlayerError, players::thinker::Thinker};
use games::{Action, Notation, Player};
use search::GameKey;
use tokio::sync::watch;

use super::{
    command::{AnyTable, Command, Slots, Watching},
    refusal::Refusal,
    table::{Inner, Table, stop, stop_all},
    view,
};
use crate::{
    board::View,
    explore::explorer::{self, AnyExplorer, Explorer},
};

impl<G: Notation> Table<G> {
    /// Plays actions of a person from the position that is shown.
    fn play(self: &Arc<Self>, inner: &mut Inner<G>, actions: &[Action]) -> Result<(), Refusal> {
        let state = inner.shown();
        if state.outcome().is_some() {
            return Err(Refusal::Turn("The game is over.".into()));
        }
        if self.is_computers(&state) {
            return Err(Refusal::Turn("It is not your turn.".into()));
        }
        let mut after = state.clone();
        for &action in actions {
            after
                .play(action)
                .map_err(|error| Refusal::Turn(format!("{}.", error.reason)))?;
        }
        inner.course.truncate(inner.at);
        for &action in actions {
            inner
                .course
                .play(action)
                .map_err(|error| Refusal::Turn(format!("{}.", error.reason)))?;
        }
        inner.at = inner.course.actions().len();
        stop(&mut inner.opponent_job);
        self.moved(inner);
        Ok(())
    }

    /// Takes back actions until `is_enough` of what is left.
    fn take_back(self: &Arc<Self>, inner: &mut Inner<G>, count: usize) {
        inner.course.truncate(count);
        inner.at = inner.course.actions().len();
        inner.last_value = None;
        inner.is_paused = self.seats.people.is_empty();
        stop(&mut inner.opponent_job);
        self.moved(inner);
    }

    /// Number of actions that are left if a person takes back one action.
    fn before_last_action(&self, inner: &Inner<G>) -> Option<usize> {
        (0..inner.course.actions().len()).rev().find(|&count| {
            let state = inner.course.state_after(count);
            self.seats.people.is_empty() || self.seats.people.contains(&state.to_move())
        })
    }
}

impl<G: Notation> AnyTable for Table<G> {
    fn execute(self: Arc<Self>, command: Command) -> Result<(), Refusal> {
        let inner = &mut *self.inner.lock();
        inner.trouble = None;
        match command {
            Command::Play { actions, at } if at == inner.at => self.play(inner, &actions)?,
            Command::Play { .. } => return Err(Refusal::Turn("The position has changed.".into())),
            Command::Say { text } => {
                let read = inner.shown().read_turn(&text);
                let actions = read.map_err(Refusal::Turn)?;
                self.play(inner, &actions)?;
            }
            Command::Back => {
                let count = self.before_last_action(inner);
                self.take_back(inner, count.ok_or(Refusal::Nothing)?);
            }
            Command::Undo => {
                let mut course = inner.course.clone();
                let people = match self.seats.people[..] {
                    [] => &[Player::First, Player::Second][..],
                    ref people => people,
                };
                if !course.undo(people) {
                    return Err(Refusal::Nothing);
                }
                self.take_back(inner, course.actions().len());
            }
            Command::Go { to } => {
                inner.at = to.min(inner.course.actions().len());
                self.moved(inner);
            }
            Command::Hint => {
                if inner.outcome_of_shown().is_some() {
                    return Err(Refusal::Turn("The game is over.".into()));
                }
                inner.hint = (inner.hint + 1).min(3);
                self.wake(inner);
            }
            Command::Analyse { on } => {
                inner.is_analysing = on;
                // A search for a hint has another limit.
                stop(&mut inner.analysis_job);
                self.wake(inner);
            }
            Command::Pause { on } => {
                inner.is_paused = on;
                self.wake(inner);
            }
        }
        Ok(())
    }

    fn slots(&self, view: View) -> Slots {
        view::slots(self, &self.inner.lock(), view)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn is_thinking(&self) -> bool {
        self.inner.lock().opponent_job.is_some()
    }

    fn watch(self: Arc<Self>) -> Watching {
        {
            let inner = &mut *self.inner.lock();
            inner.watchers += 1;
            self.wake(inner);
        }
        let table = Arc::clone(&self);
        Watching(Some(Box::new(move || table.left())))
    }

    fn unwatched_for(&self) -> Option<Duration> {
        let inner = self.inner.lock();
        (inner.watchers == 0).then(|| inner.unwatched_since.elapsed())
    }

    fn close(&self) {
        let inner = &mut *self.inner.lock();
        inner.is_closed = true;
        stop_all(inner);
    }

    fn record(&self) -> serde_json::Value {
        let inner = self.inner.lock();
        let mut state = inner.course.begin().clone();
        let mut actions = Vec::new();
        for &action in inner.course.actions() {
            actions.push(state.action_to_json(action));
            state.play_legal(action);
        }
        let mut record = serde_json::json!({ "game": G::NAME, "start": inner.start, "actions": actions });
        if let (Some(record), Ok(serde_json::Value::Object(rules))) =
            (record.as_object_mut(), serde_json::to_value(G::people_rules()))
        {
            record.extend(rules);
        }
        record
    }

    fn explorer(&self) -> Result<Arc<dyn AnyExplorer>, Refusal> {
        let (state, most) = (self.inner.lock().shown(), self.tables.limits.visits);
        if state.outcome().is_some() {
            return Err(Refusal::Turn("The game is over.".into()));
        }
        let failed = |error: &PlayerError| Refusal::Advisor(service::chain(error).to_string());
        let player = self
            .tables
            .player::<G>(&self.seats.advisor)
            .map_err(|error| failed(&error))?;
        let (Some(settings), Some(evaluator)) = (player.settings(), player.evaluator(1)) else {
            return Err(Refusal::Advisor(format!("{} does not search", player.name())));
        };
        let key = GameKey {
            run_seed: self.seats.seed,
            game: 0,
        };
        let thinker = Thinker::new(state, explorer::settings(settings), key, evaluator);
        Ok(Arc::new(Explorer::new(thinker, player.name(), most)))
    }

    fn game(&self) -> &'static str {
        G::NAME
    }
}

impl<G: Notation> Table<G> {
    /// A watcher has left. If nobody comes in time, the searches stop.
    fn left(self: Arc<Self>) {
        {
            let mut inner = self.inner.lock();
            inner.watchers = inner.watchers.saturating_sub(1);
            inner.unwatched_since = Instant::now();
        }
        let limit = self.tables.limits.unwatched;
        let runtime = self.runtime.clone();
        runtime.spawn(async move {
            tokio::time::sleep(limit).await;
            let inner = &mut *self.inner.lock();
            if inner.watchers == 0 && inner.unwatched_since.elapsed() >= limit {
                stop_all(inner);
            }
        });
    }
}
