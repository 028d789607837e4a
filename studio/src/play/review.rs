//! The review of a finished game: where the value fell, and what was better, from a short search of the position before each turn.

use std::sync::Arc;

use arena::analysis::review;
use maud::{Markup, html};

use super::table::{Inner, Job, Kind, Table};
use crate::review::{NO_MISTAKE, fall, graph};

/// Visits of the search of each position.
const VISITS: u32 = 200;

/// The review of a game, once somebody wants it.
#[derive(Clone, Debug, Default)]
pub(super) struct Review {
    /// Positions that are searched, while the review is made.
    judged: usize,
    made: Option<review::Review>,
}

impl Review {
    /// True if it is not made yet.
    pub fn is_missing(&self) -> bool {
        self.made.is_none()
    }
}

impl Table {
    /// Searches the positions of the game, and reports after each.
    pub(super) fn review(self: &Arc<Self>, job: &Job) -> anyhow::Result<()> {
        let player = Arc::new(self.tables.player(self.game(), &self.seats.advisor)?);
        let course = self.inner.lock().course.clone();
        let change = {
            let (table, job) = (Arc::clone(self), Arc::clone(job));
            move |change: &dyn Fn(&mut Review)| {
                let inner = &mut *table.inner.lock();
                if inner.is_current(Kind::Review, &job) {
                    inner.review.iter_mut().for_each(change);
                    table.notify();
                }
            }
        };
        change(&|review| review.judged = 0);
        let judged = {
            let change = change.clone();
            move || change(&|review| review.judged += 1)
        };
        let search = |at| self.asked(job, Arc::clone(&player), &course, at, VISITS);
        let made = review::Review::of(&self.tables.engine, &course, search, judged)?;
        change(&|review| review.made = Some(made.clone()));
        Ok(())
    }
}

/// The review as far as it is made.
pub(super) fn shown(table: &Table, inner: &Inner) -> Markup {
    let Some(review) = &inner.review else {
        return Markup::default();
    };
    let (game, turns, people) = (table.game(), inner.course.turns(), &table.seats.people);
    let Some(made) = &review.made else {
        let judged = review.judged.min(turns.len());
        return html! { h2 { "Review" } p.quiet { (judged) " of " (turns.len()) " turns are judged." } };
    };
    let mistakes = made.mistakes.iter();
    let mistakes: Vec<_> = mistakes
        .filter(|mistake| people.is_empty() || people.contains(&mistake.player))
        .collect();
    html! {
        h2 { "Review" }
        (graph(game, made))
        @if mistakes.is_empty() { p { (NO_MISTAKE) } }
        ol.falls {
            @for mistake in mistakes {
                @let begin = turns.get(mistake.turn).map(|turn| turn.first);
                li {
                    button.turn type="button" data-go=[begin] { "Turn " (mistake.turn + 1) }
                    " " (game.player_name(mistake.player)) " played " b { (mistake.state.write_turn(&mistake.played)) } ". "
                    (fall(game, mistake))
                    @if let Some(best) = mistake.texts().first() { " Better was " b { (best) } "." }
                }
            }
        }
    }
}
