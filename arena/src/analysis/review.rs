//! A game that is over, or under way, turn by turn: its values, and the turns that gave most away. [`Review`].

use games::{Action, Course, FirstValue, Player, erased::AnyState};

use super::{
    Engine, Figures, Job,
    figures::{texts, turns},
};

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
    pub player: Player,
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
    /// Searches the position before each turn of a game, and the last one. `job` makes the search of the position after so many actions;
    /// `judged` is called after each search, on the thread that searched.
    ///
    /// # Errors
    /// A search fails or is stopped.
    pub fn of(
        engine: &Engine,
        course: &Course,
        job: impl Fn(usize) -> Job,
        judged: impl Fn() + Clone + Send + 'static,
    ) -> anyhow::Result<Self> {
        let begins = course.turns().iter().map(|turn| turn.first);
        let begins: Vec<usize> = begins.chain([course.actions().len()]).collect();
        let states: Vec<_> = begins.iter().map(|&begin| course.state_after(begin)).collect();
        let searched = states
            .iter()
            .zip(&begins)
            .filter(|(state, _)| state.outcome().is_none());
        let jobs = searched.map(|(_, &begin)| job(begin));
        let figures = engine.run(jobs, move |search| {
            judged();
            Figures::of(search, 1)
        })?;
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
