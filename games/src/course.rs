//! The [`Course`] of a game: the start, the actions played since, and the turns that they form.

use crate::{Action, IllegalAction, Player, erased::AnyState};

/// A game under way, of which actions and turns can be taken back.
///
/// ```
/// use games::{Course, Player, registry};
///
/// let chess = registry::find("chess")?;
/// let mut course = Course::new(chess.variant(&chess.people_rules(), None)?.start(None)?);
/// for text in ["e4", "e5", "Nf3"] {
///     for action in course.state().read_turn(text)? {
///         course.play(action)?;
///     }
/// }
/// assert!(course.undo(&[Player::Second]));
/// assert_eq!(course.actions().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Course {
    begin: Box<dyn AnyState>,
    actions: Vec<Action>,
    turns: Vec<Turn>,
    state: Box<dyn AnyState>,
}

/// One turn of a [`Course`]: actions of one player, of which the first began the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Player whose turn it is.
    pub player: Player,
    /// Place of the first action among all actions.
    pub first: usize,
}

impl Course {
    /// Makes the course of a game that has just begun.
    pub fn new(begin: Box<dyn AnyState>) -> Self {
        Self {
            state: begin.clone(),
            begin,
            actions: Vec::new(),
            turns: Vec::new(),
        }
    }

    /// Returns the first state of the game.
    pub fn begin(&self) -> &dyn AnyState {
        &*self.begin
    }

    /// Returns the present state of the game.
    pub fn state(&self) -> &dyn AnyState {
        &*self.state
    }

    /// Returns the actions played so far.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Returns the turns played so far. The last one may be incomplete.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Returns the state after the first `count` actions, at most all of them.
    pub fn state_after(&self, count: usize) -> Box<dyn AnyState> {
        let mut state = self.begin.clone();
        for &action in self.actions.iter().take(count) {
            state.play_legal(action);
        }
        state
    }

    /// Plays an action.
    ///
    /// # Errors
    /// [`IllegalAction`] if the action is not legal. Nothing has changed then.
    pub fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let begins = !self.state.is_mid_turn();
        let player = self.state.to_move();
        self.state.play(action)?;
        if begins || self.turns.is_empty() {
            let first = self.actions.len();
            self.turns.push(Turn { player, first });
        }
        self.actions.push(action);
        Ok(())
    }

    /// Takes back all actions but the first `count`.
    pub fn truncate(&mut self, count: usize) {
        if count >= self.actions.len() {
            return;
        }
        self.actions.truncate(count);
        self.turns.retain(|turn| turn.first < count);
        self.state = self.state_after(count);
    }

    /// Takes back all actions since one of `players` last began a turn. Returns false if none of them has.
    pub fn undo(&mut self, players: &[Player]) -> bool {
        let last = self.turns.iter().rfind(|turn| players.contains(&turn.player));
        let first = last.map(|turn| turn.first);
        if let Some(first) = first {
            self.truncate(first);
        }
        first.is_some()
    }
}
