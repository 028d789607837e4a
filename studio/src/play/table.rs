//! A table: one game under way on a page, with its opponent and its analysis.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use arena::{Spec, players::thinker::Thinker};
use games::{
    Action, Course, Player,
    erased::{AnyGame, AnyState, changed},
};
use parking_lot::Mutex;
use search::GameKey;
use serde::Deserialize;
use tokio::sync::watch;

use super::{
    jobs::Analysis,
    offers::{Offer, offers},
    review::Review,
    tables::Tables,
    threat::{Threat, threat},
    view,
};
use crate::{
    board::View,
    explore::explorer::{self, Explorer},
    failure::Failure,
    live::Slots,
};

/// Visits of the search behind a hint.
pub(super) const HINT_VISITS: u32 = 400;

/// A request of a page to a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Plays actions after the first `at` actions; later ones are taken back.
    Play {
        /// The actions.
        actions: Vec<Action>,
        /// Number of actions before them, as the page shows the game.
        at: usize,
    },
    /// Plays a turn, or a part of one, as people write it.
    Say {
        /// The turn.
        text: String,
    },
    /// Takes back the last action, and the computer's actions after it.
    Back,
    /// Takes back the person's last turn and all after it.
    Undo,
    /// Shows the position after some actions.
    Go {
        /// Number of actions.
        to: usize,
    },
    /// Shows the next stage of a hint.
    Hint,
    /// Switches the analysis.
    Analyse {
        /// True to switch it on.
        on: bool,
    },
    /// Gives the game up.
    Resign,
    /// Reviews the finished game.
    Review,
    /// Lets the computer continue, or wait.
    Pause {
        /// True to wait.
        on: bool,
    },
}

/// Players of a table.
#[derive(Clone, Debug)]
pub struct Seats {
    /// Sides that people play.
    pub people: Vec<Player>,
    /// Player of the other sides.
    pub opponent: Spec,
    /// Player whose network analyses.
    pub advisor: Spec,
    /// Seed of the players' random draws.
    pub seed: u64,
}

/// Everything that a page shows of a table.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// HTML of each place.
    pub html: Slots,
    /// Legal moves.
    pub offers: Vec<Offer>,
    /// Number of actions before the position that is shown, whether it is analysed, whether the computer waits, and whether the game is
    /// over, as JSON.
    pub flags: serde_json::Value,
}

/// Guard of one watcher.
pub struct Watching(Arc<Table>);

impl Drop for Watching {
    fn drop(&mut self) {
        Arc::clone(&self.0).left();
    }
}

/// One game under way.
pub struct Table {
    pub(super) tables: Arc<Tables>,
    pub(super) seats: Seats,
    game: &'static AnyGame,
    pub(super) inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
    pub(super) runtime: tokio::runtime::Handle,
}

/// Flag that stops one search. The search is current while the table holds its flag.
pub(super) type Job = Arc<AtomicBool>;

/// Kind of a search. A table has at most one of each kind at work, whose flag is in [`Inner::jobs`].
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Opponent,
    Analysis,
    Exact,
    Review,
}

/// The changing part of a table.
pub(super) struct Inner {
    pub course: Course,
    /// Text of the start; `None` for the usual one.
    pub start: Option<String>,
    /// Number of actions before the position that is shown.
    pub at: usize,
    pub is_paused: bool,
    pub is_analysing: bool,
    /// Stage of the hint, 0 to 3.
    pub hint: u8,
    pub analysis: Option<Analysis>,
    /// Exact values for the player to act, as far as they are found.
    pub exact: Vec<(Action, i8)>,
    /// Evaluation of the opponent's last search: value for the first player, and its visits.
    pub last_value: Option<(f32, u32)>,
    pub trouble: Option<String>,
    /// Player who gave the game up.
    pub resigned: Option<Player>,
    /// Threat against the player to act in the position that is shown.
    pub threat: Option<Threat>,
    /// Review of the finished game, once somebody wants it.
    pub review: Option<Review>,
    /// Flag of the present search of each [`Kind`].
    jobs: [Option<Job>; 4],
    watchers: usize,
    unwatched_since: Instant,
    is_closed: bool,
}

impl Inner {
    /// State that is shown.
    pub fn shown(&self) -> Box<dyn AnyState> {
        self.course.state_after(self.at)
    }

    /// True if the rules or a player have ended the game.
    pub fn is_over(&self) -> bool {
        self.resigned.is_some() || self.course.state().outcome().is_some()
    }

    /// Forgets what belonged to the game before some of its turns were replaced.
    fn changed(&mut self) {
        self.at = self.course.actions().len();
        self.resigned = None;
        self.review = None;
        self.stop(Kind::Opponent);
        self.stop(Kind::Review);
    }

    /// True if the newest position is shown.
    pub fn is_at_end(&self) -> bool {
        self.at == self.course.actions().len()
    }

    /// True if the position has no analysis of `wanted` visits, and none that ended by itself.
    fn lacks(&self, wanted: u32) -> bool {
        let known = self.analysis.as_ref();
        known.is_none_or(|known| known.visits < wanted && !(known.is_complete && known.visits != HINT_VISITS))
    }

    /// True if the exact value of a legal action is missing, because the solver has not started or was stopped.
    fn lacks_exact_values(&self) -> bool {
        let mut legal = Vec::new();
        self.shown().legal_actions(&mut legal);
        self.exact.len() < legal.len()
    }

    /// True if a search of this kind is at work.
    pub fn is_at_work(&self, kind: Kind) -> bool {
        self.jobs[kind as usize].is_some()
    }

    /// True if a search has not been stopped or replaced.
    pub fn is_current(&self, kind: Kind, job: &Job) -> bool {
        let held = self.jobs[kind as usize].as_ref();
        held.is_some_and(|held| Arc::ptr_eq(held, job))
    }

    /// Tells a search to stop. Its result will not count.
    pub fn stop(&mut self, kind: Kind) {
        if let Some(job) = self.jobs[kind as usize].take() {
            job.store(true, Ordering::Relaxed);
        }
    }

    fn stop_all(&mut self) {
        for kind in [Kind::Opponent, Kind::Analysis, Kind::Exact, Kind::Review] {
            self.stop(kind);
        }
    }
}

impl Table {
    /// A table at which a game begins.
    pub fn new(
        tables: Arc<Tables>,
        seats: Seats,
        begin: Box<dyn AnyState>,
        start: Option<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            tables,
            seats,
            game: begin.game(),
            inner: Mutex::new(Inner {
                course: Course::new(begin),
                start,
                at: 0,
                is_paused: false,
                is_analysing: false,
                hint: 0,
                analysis: None,
                exact: Vec::new(),
                last_value: None,
                trouble: None,
                jobs: [None, None, None, None],
                resigned: None,
                threat: None,
                review: None,
                watchers: 0,
                unwatched_since: Instant::now(),
                is_closed: false,
            }),
            changed: watch::Sender::new(0),
            runtime: tokio::runtime::Handle::current(),
        })
    }

    /// Plays actions that a game had before it came to this table.
    ///
    /// # Errors
    /// [`Failure::BadRequest`] if one of them is not legal.
    pub fn replay(&self, actions: &[Action]) -> Result<(), Failure> {
        let inner = &mut *self.inner.lock();
        for &action in actions {
            let played = inner.course.play(action);
            played.map_err(|error| Failure::BadRequest(error.to_string()))?;
        }
        inner.at = inner.course.actions().len();
        self.look_for_threat(inner);
        Ok(())
    }

    /// Key of the random draws of a search at this table.
    pub(super) fn key(&self, game: u64) -> GameKey {
        GameKey {
            run_seed: self.seats.seed,
            game,
        }
    }

    /// Tells the streams that something changed.
    pub(super) fn notify(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// True if the computer plays in this state.
    pub(super) fn is_computers(&self, state: &dyn AnyState) -> bool {
        state.outcome().is_none() && !self.seats.people.contains(&state.to_move())
    }

    /// Forgets what belonged to another position, and starts the searches of this one.
    pub(super) fn moved(self: &Arc<Self>, inner: &mut Inner) {
        inner.stop(Kind::Analysis);
        inner.stop(Kind::Exact);
        inner.analysis = None;
        inner.exact.clear();
        inner.hint = 0;
        self.look_for_threat(inner);
        self.wake(inner);
    }

    /// Notes the threat against a person who is to act in the position that is shown.
    fn look_for_threat(&self, inner: &mut Inner) {
        let state = inner.shown();
        let can_play = !state.is_mid_turn() && !self.is_computers(&*state) && !inner.is_over();
        inner.threat = can_play.then(|| threat(&*state, &offers(&*state))).flatten();
    }

    /// Starts the searches that are due, and stops those that are not.
    fn wake(self: &Arc<Self>, inner: &mut Inner) {
        let may_search = !inner.is_closed && inner.watchers > 0;
        let computers_turn = self.is_computers(inner.course.state()) && inner.is_at_end() && !inner.is_paused;
        let is_due = may_search && computers_turn && inner.trouble.is_none() && !inner.is_over();
        self.wake_one(inner, Kind::Opponent, is_due, true);

        let lacks = inner.review.as_ref().map(Review::is_missing);
        let is_due = may_search && lacks.is_some() && inner.trouble.is_none();
        self.wake_one(inner, Kind::Review, is_due, lacks == Some(true));

        let wanted = self.wanted_visits(inner);
        let is_running = inner.shown().outcome().is_none();
        let (is_due, lacks) = (may_search && wanted > 0 && is_running, inner.lacks(wanted));
        self.wake_one(inner, Kind::Analysis, is_due, lacks);

        let is_due = may_search && inner.is_analysing && self.game().has_solver && is_running;
        let lacks = is_due && inner.lacks_exact_values();
        if self.wake_one(inner, Kind::Exact, is_due, lacks) {
            // The solver begins with the first action again.
            inner.exact.clear();
        }
        self.notify();
    }

    /// Stops a search that is not due. Starts one that is due and has something to find, unless it is at work; returns true then.
    fn wake_one(self: &Arc<Self>, inner: &mut Inner, kind: Kind, is_due: bool, lacks: bool) -> bool {
        if !is_due {
            inner.stop(kind);
        }
        let starts = is_due && lacks && !inner.is_at_work(kind);
        if starts {
            let (table, job) = (Arc::clone(self), Job::default());
            inner.jobs[kind as usize] = Some(Arc::clone(&job));
            let state = inner.shown();
            self.runtime
                .spawn_blocking(move || table.search(kind, &job, &*state));
        }
        starts
    }

    /// Notes the end of a search, unless another one has taken its place.
    pub(super) fn ended(&self, kind: Kind, job: &Job, ended: anyhow::Result<()>) {
        let inner = &mut *self.inner.lock();
        if inner.is_current(kind, job) {
            inner.stop(kind);
            if let Err(error) = ended {
                inner.trouble = Some(format!("{error:#}"));
                inner.is_analysing = false;
                inner.hint = 0;
                self.notify();
            }
        }
    }

    /// Visits that the analysis of the position should have.
    pub(super) fn wanted_visits(&self, inner: &Inner) -> u32 {
        match (inner.is_analysing, inner.hint) {
            (true, _) => self.tables.limits.visits,
            (false, 0) => 0,
            (false, _) => HINT_VISITS,
        }
    }

    /// Plays actions of a person from the position that is shown.
    fn play(self: &Arc<Self>, inner: &mut Inner, actions: &[Action]) -> Result<(), Failure> {
        let state = inner.shown();
        if state.outcome().is_some() || inner.resigned.is_some() && inner.is_at_end() {
            return Err(game_is_over());
        }
        if self.is_computers(&*state) {
            return Err(Failure::BadRequest("It is not your turn.".into()));
        }
        let mut after = inner.course.clone();
        after.truncate(inner.at);
        for &action in actions {
            let played = after.play(action);
            played.map_err(|error| Failure::BadRequest(format!("{}.", error.reason)))?;
        }
        inner.course = after;
        inner.changed();
        self.moved(inner);
        Ok(())
    }

    /// Takes back the actions after the first `count`; `None`: there is nothing to take back.
    fn take_back(self: &Arc<Self>, inner: &mut Inner, count: Option<usize>) -> Result<(), Failure> {
        let count =
            count.ok_or_else(|| Failure::BadRequest("There is nothing of yours to take back.".into()))?;
        inner.course.truncate(count);
        inner.changed();
        inner.last_value = None;
        inner.is_paused = self.seats.people.is_empty();
        self.moved(inner);
        Ok(())
    }

    /// Number of actions that are left if a person takes back one action.
    fn before_last_action(&self, inner: &Inner) -> Option<usize> {
        (0..inner.course.actions().len()).rev().find(|&count| {
            let state = inner.course.state_after(count);
            self.seats.people.is_empty() || self.seats.people.contains(&state.to_move())
        })
    }

    /// Executes a command of a page.
    ///
    /// # Errors
    /// [`Failure`] with a sentence for the person.
    pub fn execute(self: Arc<Self>, command: Command) -> Result<(), Failure> {
        let inner = &mut *self.inner.lock();
        inner.trouble = None;
        match command {
            Command::Play { actions, at } if at == inner.at => self.play(inner, &actions)?,
            Command::Play { .. } => return Err(Failure::BadRequest("The position has changed.".into())),
            Command::Say { text } => {
                let read = inner.shown().read_turn(&text);
                self.play(inner, &read.map_err(Failure::BadRequest)?)?;
            }
            Command::Back => {
                let count = self.before_last_action(inner);
                self.take_back(inner, count)?;
            }
            Command::Undo => {
                let mut course = inner.course.clone();
                let people = match self.seats.people[..] {
                    [] => &[Player::First, Player::Second][..],
                    ref people => people,
                };
                let count = course.undo(people).then(|| course.actions().len());
                self.take_back(inner, count)?;
            }
            Command::Go { to } => {
                inner.at = to.min(inner.course.actions().len());
                self.moved(inner);
            }
            Command::Hint => {
                if inner.shown().outcome().is_some() {
                    return Err(game_is_over());
                }
                inner.hint = (inner.hint + 1).min(3);
                self.wake(inner);
            }
            Command::Analyse { on } => {
                inner.is_analysing = on;
                // A search for a hint has another limit.
                inner.stop(Kind::Analysis);
                self.wake(inner);
            }
            Command::Resign => {
                let resigned = match self.seats.people[..] {
                    _ if inner.is_over() => return Err(game_is_over()),
                    [only] if self.game().players == 2 => only,
                    [_, _] => inner.course.state().to_move(),
                    _ => return Err(Failure::BadRequest("Nobody can resign this game.".into())),
                };
                inner.changed();
                inner.resigned = Some(resigned);
                self.moved(inner);
            }
            Command::Review => {
                if !inner.is_over() {
                    return Err(Failure::BadRequest("The game is not over yet.".into()));
                }
                inner.review.get_or_insert_default();
                self.wake(inner);
            }
            Command::Pause { on } => {
                inner.is_paused = on;
                self.wake(inner);
            }
        }
        Ok(())
    }

    /// Everything that the page shows.
    pub fn shown(&self, view: View) -> Shown {
        view::shown(self, &self.inner.lock(), view)
    }

    /// Signals of changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Counts a watcher until the guard is dropped.
    pub fn watch(self: Arc<Self>) -> Watching {
        {
            let inner = &mut *self.inner.lock();
            inner.watchers += 1;
            self.wake(inner);
        }
        Watching(self)
    }

    /// Notes that a watcher has left. If nobody comes in time, the searches stop.
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
                inner.stop_all();
            }
        });
    }

    /// Time since the last watcher left; `None` while somebody watches.
    pub fn unwatched_for(&self) -> Option<Duration> {
        let inner = self.inner.lock();
        (inner.watchers == 0).then(|| inner.unwatched_since.elapsed())
    }

    /// Stops all searches. None begins after that.
    pub fn close(&self) {
        let inner = &mut *self.inner.lock();
        inner.is_closed = true;
        inner.stop_all();
    }

    /// The game as a request that `minuet rules` answers.
    pub fn record(&self) -> serde_json::Value {
        let inner = self.inner.lock();
        let mut state = inner.course.begin().copy();
        let mut actions = Vec::new();
        for &action in inner.course.actions() {
            actions.push(state.action_to_json(action));
            state.play_legal(action);
        }
        let record =
            serde_json::json!({ "game": self.game().name, "start": inner.start, "actions": actions });
        match self.game().people_rules() {
            serde_json::Value::Object(rules) => changed(record, rules),
            _ => record,
        }
    }

    /// A search of the position that is shown, without visits. Opens a network, which blocks.
    ///
    /// # Errors
    /// [`Failure`] if the game is over, or the network cannot be used.
    pub fn explorer(&self) -> Result<Arc<Explorer>, Failure> {
        let state = self.inner.lock().shown();
        if state.outcome().is_some() {
            return Err(game_is_over());
        }
        let failed = |error: anyhow::Error| {
            Failure::BadRequest(format!("The position cannot be searched: {error:#}."))
        };
        let player = self
            .tables
            .player(self.game(), &self.seats.advisor)
            .map_err(failed)?;
        let (settings, searches) = player.searches(1).map_err(failed)?;
        let settings = explorer::settings(settings);
        let thinker = Thinker::new(&*state, settings, self.key(0), searches).map_err(failed)?;
        let most = self.tables.limits.visits;
        Ok(Arc::new(Explorer::new(thinker, player.name(), most)))
    }

    /// The game.
    pub fn game(&self) -> &'static AnyGame {
        self.game
    }
}

fn game_is_over() -> Failure {
    Failure::BadRequest("The game is over.".into())
}

#[cfg(test)]
mod tests {
    use arena::players::spec::{self, SearchSpec};
    use games::Player;

    use super::*;
    use crate::play::{state, tables::Limits};

    #[tokio::test]
    async fn a_solver_that_was_stopped_starts_again_and_one_that_is_done_does_not() {
        let tables = Arc::new(Tables::new(None, Limits::default()));
        // No search begins.
        let _searches = tables.searches.acquire_many(2).await.unwrap();
        let _solving = tables.solving.acquire().await.unwrap();
        let uct = arena::Spec {
            name: "uct".into(),
            written: "uct".into(),
            kind: spec::Kind::Uct(SearchSpec::default()),
        };
        let seats = Seats {
            people: vec![Player::First, Player::Second],
            opponent: uct.clone(),
            advisor: uct,
            seed: 1,
        };
        let table = Table::new(Arc::clone(&tables), seats, state("connect-four", None), None);
        let _watching = Arc::clone(&table).watch();
        for (known, starts) in [(0, true), (3, true), (7, false)] {
            {
                let inner = &mut *table.inner.lock();
                inner.stop(Kind::Exact);
                inner.exact = (0..known).map(|column| (column, 0)).collect();
            }
            Arc::clone(&table).execute(Command::Analyse { on: true }).unwrap();
            let inner = table.inner.lock();
            assert_eq!(inner.is_at_work(Kind::Exact), starts, "{known} values are known");
            assert_eq!(inner.exact.is_empty(), starts, "{known} values are known");
        }
        table.close();
    }
}
