//! The review of a finished game: where the value fell, and what was better, from a short search of the position before each turn.

use arena::{analysis, players::thinker::Thinker};
use games::{Action, Player};
use maud::{Markup, html};

use super::{
    jobs::Analysis,
    table::{Inner, Job, Kind, Table},
    view::first_turn,
};
use crate::{
    chart::{Chart, Curve, Look, chart},
    figures::{
        series::Point,
        words::{percent, points},
    },
};

/// Visits of the search of each position.
const VISITS: u32 = 200;
/// Turns that are named: those that lost most.
const NAMED: usize = 3;
/// Least loss of a turn that is named, as a share of the points.
const LEAST: f32 = 0.1;

/// Judged positions of a game: those before its turns, from the first on.
#[derive(Clone, Debug, Default)]
pub(super) struct Review(Vec<Judged>);

/// A judged position.
#[derive(Clone, Debug)]
struct Judged {
    /// Value for the first player, -1 to 1.
    value: f32,
    /// Best turn.
    best: Vec<Action>,
}

impl Review {
    /// True if a turn of the game is not judged.
    pub fn lacks(&self, turns: usize) -> bool {
        self.0.len() < turns
    }
}

impl Table {
    /// Judges the position before each turn, and reports after each.
    pub(super) fn review(&self, job: &Job) -> anyhow::Result<()> {
        let player = self.tables.player(self.game(), &self.seats.advisor)?;
        loop {
            let (state, at) = {
                let inner = self.inner.lock();
                let judged = inner.review.as_ref().map(|review| review.0.len());
                let next = judged.and_then(|judged| inner.course.turns().get(judged));
                let Some(turn) = next.filter(|_| inner.is_current(Kind::Review, job)) else {
                    return Ok(());
                };
                (inner.course.state_after(turn.first), turn.first)
            };
            let (_, searches) = player.searches(1)?;
            let settings = analysis::settings(&player, VISITS);
            let mut thinker = Thinker::new(&*state, settings, self.key(1 + at as u64), searches)?;
            {
                let _permit = self.permit(&self.tables.searches);
                thinker.think(VISITS, job, |_| ())?;
            }
            let analysis = Analysis::of(thinker.search(), player.name(), true);
            let best = analysis
                .rows
                .first()
                .map_or_else(Vec::new, |row| first_turn(&*state, &row.line));
            let inner = &mut *self.inner.lock();
            if !inner.is_current(Kind::Review, job) {
                return Ok(());
            }
            if let Some(review) = &mut inner.review {
                let value = analysis.value.get();
                review.0.push(Judged { value, best });
            }
            self.notify();
        }
    }
}

/// A turn that lost points.
#[derive(Debug)]
struct Fall {
    /// Number of the turn, from 0.
    turn: usize,
    /// Values for the player before and after it.
    from: f32,
    to: f32,
}

/// The turns of `players` that lost most, in the order of the game.
fn falls(values: &[f32], turns: &[Player], players: &[Player]) -> Vec<Fall> {
    let steps = values.windows(2).zip(turns).enumerate();
    let mut found: Vec<Fall> = steps
        .filter(|(_, (_, player))| players.contains(player))
        .map(|(turn, (pair, player))| Fall {
            turn,
            from: player.sign() * pair[0],
            to: player.sign() * pair[1],
        })
        .filter(|fall| fall.from - fall.to >= 2.0 * LEAST)
        .collect();
    found.sort_by(|one, other| (other.from - other.to).total_cmp(&(one.from - one.to)));
    found.truncate(NAMED);
    found.sort_by_key(|fall| fall.turn);
    found
}

/// The review as far as it is made.
pub(super) fn shown(table: &Table, inner: &Inner) -> Markup {
    let Some(Review(judged)) = &inner.review else {
        return Markup::default();
    };
    let turns = inner.course.turns();
    let mut values: Vec<f32> = judged.iter().map(|judged| judged.value).collect();
    let is_complete = judged.len() == turns.len();
    if is_complete {
        values.extend(
            inner
                .course
                .state()
                .outcome()
                .map(|outcome| outcome.value().get()),
        );
    }
    let curve: Vec<Point> = values
        .iter()
        .enumerate()
        .map(|(turn, &value)| Point::single(turn as f64, 50.0 * (f64::from(value) + 1.0)))
        .collect();
    let people = match &table.seats.people[..] {
        [] => &[Player::First, Player::Second][..],
        people => people,
    };
    let movers: Vec<Player> = turns.iter().map(|turn| turn.player).collect();
    let falls = falls(&values, &movers, people);
    let first = table.game().player_name(Player::First);
    html! {
        h2 { "Review" }
        (chart(&Chart {
            title: &format!("Chances of {first} in percent"),
            across: "turn",
            range: Some([0.0, 100.0]),
            figure: |share| percent(share / 100.0),
            curves: &[Curve { name: "value", points: &curve, look: Look::FIRST }],
            empty: "The first positions are being judged.",
        }))
        @if !is_complete {
            p.quiet { (judged.len()) " of " (turns.len()) " turns are judged." }
        } @else if falls.is_empty() {
            p { "No turn lost a tenth of the points or more." }
        }
        ol.falls {
            @for fall in &falls {
                @let begin = turns[fall.turn].first;
                @let end = turns.get(fall.turn + 1).map_or(inner.course.actions().len(), |turn| turn.first);
                @let state = inner.course.state_after(begin);
                @let played = &inner.course.actions()[begin..end];
                @let best = &judged[fall.turn].best;
                li {
                    button.turn type="button" data-go=(begin) { "Turn " (fall.turn + 1) }
                    " " (table.game().player_name(movers[fall.turn])) " played " b { (state.write_turn(played)) } ": chances fell from "
                    (points(fall.from)) " to " (points(fall.to)) "."
                    @if !best.is_empty() && best != played { " Better was " b { (state.write_turn(best)) } "." }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turns_that_lost_most_are_named_in_their_order() {
        use Player::{First, Second};
        let turns = [First, Second, First, Second, First, Second, First];
        let values = [0.0, -0.3, 0.5, 0.45, 0.45, -0.9, -0.9, -1.0];
        let named = |players: &[Player]| -> Vec<usize> {
            falls(&values, &turns, players)
                .iter()
                .map(|fall| fall.turn)
                .collect()
        };
        assert_eq!(named(&[First, Second]), [0, 1, 4]);
        assert_eq!(named(&[First]), [0, 4]);
        assert_eq!(named(&[Second]), [1]);
        let fall = &falls(&values, &turns, &[Second])[0];
        // For the second player the value fell from 0.3 to -0.5.
        assert!(
            (fall.from - 0.3).abs() < 1e-6 && (fall.to + 0.5).abs() < 1e-6,
            "{fall:?}"
        );
    }
}
