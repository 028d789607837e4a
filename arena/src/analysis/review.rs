//! A game that is over, or under way, turn by turn: its values, and the turns that gave most away. [`Review`].

use std::sync::Arc;

use games::{Action, Course, FirstValue, Player as Side, erased::AnyState};
use search::GameKey;

use super::{
    Engine, Figures, Job,
    figures::{texts, turns},
    settings,
};
use crate::Player;

/// Value in [-1, 1] that a turn must give away to be a mistake.
const LEAST: f32 = 0.1;
/// Most mistakes of a review.
const MOST: usize = 5;

/// Review of a game.
#[derive(Clone, Debug)]
pub struct Review {
    /// Turns as people write them.
    pub turns: Vec<String>,
    /// Value before each turn and at the end, for the first player: one more than the turns.
    pub values: Vec<FirstValue>,
    /// Turns that gave most away, the largest mistake first.
    pub mistakes: Vec<Mistake>,
}

/// A turn that gave something away.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// Number of the turn, from 0.
    pub turn: usize,
    /// Player who acted.
    pub player: Side,
    /// State before the turn.
    pub state: Box<dyn AnyState>,
    /// Value before the turn and after it, for the player who acted.
    pub values: [f32; 2],
    /// Actions of the turn.
    pub played: Vec<Action>,
    /// Best line by the search, by turns.
    pub line: Vec<Vec<Action>>,
}

impl Mistake {
    /// Returns what the turn gave away, in the unit of values.
    pub fn loss(&self) -> f32 {
        self.values[0] - self.values[1]
    }

    /// Returns the turns of the best line as people write them.
    pub fn texts(&self) -> Vec<String> {
        texts(&*self.state, &self.line)
    }
}

impl Review {
    /// Searches the position before each turn of a game with `visits` visits, and the last one.
    ///
    /// # Errors
    /// A search fails.
    pub fn of(engine: &Engine, player: &Arc<Player>, course: &Course, visits: u32) -> anyhow::Result<Self> {
        let begins = course.turns().iter().map(|turn| turn.first);
        let begins: Vec<usize> = begins.chain([course.actions().len()]).collect();
        let states: Vec<_> = begins.iter().map(|&begin| course.state_after(begin)).collect();
        let rules = course.begin().position();
        let searched = states
            .iter()
            .zip(&begins)
            .filter(|(state, _)| state.outcome().is_none());
        let jobs = searched.map(|(state, &begin)| Job {
            player: Arc::clone(player),
            state: state.copy(),
            place: format!("review|{rules}|{:?}", &course.actions()[..begin]),
            settings: settings(player, visits),
            key: GameKey { run_seed: 0, game: 0 },
            time: None,
            client: 0,
            priority: Arc::default(),
            stop: Arc::default(),
        });
        let figures = engine.run(jobs, |search| Figures::of(search, 1))?;
        let mut values: Vec<FirstValue> = figures.iter().map(Figures::first_value).collect();
        values.extend(
            states
                .last()
                .and_then(|last| last.outcome())
                .map(|outcome| outcome.value()),
        );
        let mut review = Self {
            turns: Vec::new(),
            values,
            mistakes: Vec::new(),
        };
        for (turn, (state, ends)) in states.iter().zip(begins.windows(2)).enumerate() {
            let played = &course.actions()[ends[0]..ends[1]];
            review.turns.push(state.write_turn(played));
            let player = state.to_move();
            let seen = |place: usize| review.values.get(place).map(|value| value.seen_by(player).get());
            let (Some(before), Some(after)) = (seen(turn), seen(turn + 1)) else {
                continue;
            };
            let best = figures.get(turn).and_then(|figures| figures.rows.first());
            let line = best.map(|row| turns(&**state, &row.line)).unwrap_or_default();
            if before - after >= LEAST && line.first().is_none_or(|best| best != played) {
                review.mistakes.push(Mistake {
                    turn,
                    player,
                    state: state.copy(),
                    values: [before, after],
                    played: played.to_vec(),
                    line,
                });
            }
        }
        review
            .mistakes
            .sort_by(|one, other| other.loss().total_cmp(&one.loss()));
        review.mistakes.truncate(MOST);
        Ok(review)
    }
}
