//! The page of matches: the ladder of checkpoints with intervals, and every rated match.

use arena::{
    rating::{
        RatedMatch,
        ratings::{Ratings, members},
    },
    statistics::Rating,
};
use axum::{Router, extract::State, response::IntoResponse, routing::get};
use checkpoints::Version;
use maud::{Markup, html};

use crate::{
    app::App,
    failure::Failure,
    figures::words::{moment, version},
    live::{self, Slots},
    overview::parts::{outcome, rating_now},
    page::{Section, page},
};

/// Routes of the matches.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/matches", get(matches))
        .route("/matches/live", get(stream))
}

async fn matches(State(app): State<App>) -> Markup {
    let rated = app.watched.look(|state| state.rated.clone());
    let body = html! {
        h1 { "Matches" }
        div data-live="/matches/live" { (slots(&app).show("rating")) }
        @if rated.is_empty() {
            p.empty {
                "No match has ended yet. Each new checkpoint plays against the best one, and the stronger gets the label " code { "best" }
                ". The first match begins with the second checkpoint, unless " code { "rating.enabled" }
                " is false; the overview shows its rating while it is played."
            }
        } @else {
            section.card aria-labelledby="ladder" { h2 #ladder { "Ladder" } (ladder(&rated)) }
            section.card aria-labelledby="played" { h2 #played { "Rated matches" } (table(&rated)) }
        }
    };
    page(&app, Section::Matches, "Matches", &["ages.js", "live.js"], &body)
}

async fn stream(State(app): State<App>) -> Result<impl IntoResponse, Failure> {
    let shown = app.clone();
    live::stream(&app, move || std::future::ready(slots(&shown)))
}

/// The rating that the match at work gives so far.
fn slots(app: &App) -> Slots {
    Slots::default().with("rating", app.watched.look(rating_now))
}

/// The checkpoints by rating, the strongest first, each with its interval.
pub fn ladder(lines: &[RatedMatch]) -> Markup {
    let ratings = Ratings::of(lines, None);
    let mut rated: Vec<(&Version, Rating)> = members(lines)
        .into_iter()
        .filter_map(|version| Some((version, ratings.rating(version)?)))
        .collect();
    rated.sort_by(|left, right| right.1.elo.total_cmp(&left.1.elo));
    let low = rated
        .iter()
        .map(|(_, rating)| rating.low)
        .fold(f64::INFINITY, f64::min);
    let high = rated
        .iter()
        .map(|(_, rating)| rating.high)
        .fold(f64::NEG_INFINITY, f64::max);
    let place = |elo: f64| 2.0 + 196.0 * (elo - low) / (high - low).max(1.0);
    html! {
        p.quiet.small { "Elo above the first checkpoint, with 95 % intervals, from all matches together." }
        div.scroll tabindex="0" role="region" aria-label="Ladder, scrollable" {
            table.ladder {
                thead { tr { th scope="col" { "Checkpoint" } th.number scope="col" { "Elo" } th.number scope="col" { "Interval" } th scope="col" { span.hidden-text { "Drawing" } } } }
                tbody {
                    @for (checkpoint, rating) in &rated {
                        tr {
                            th scope="row" { (version(&checkpoint.to_string())) }
                            td.number { (format!("{:+.0}", rating.elo)) }
                            td.number.quiet {
                                @if rating.low < rating.high { (format!("{:+.0} to {:+.0}", rating.low, rating.high)) } @else { "reference" }
                            }
                            td.drawn {
                                svg viewBox="0 0 200 12" preserveAspectRatio="none" aria-hidden="true" {
                                    path.whisker d=(format!("M{:.1} 6H{:.1}", place(rating.low), place(rating.high))) {}
                                    path.dots.curve.first d=(format!("M{:.1} 6h0", place(rating.elo))) {}
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn table(lines: &[RatedMatch]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Rated matches, scrollable" {
            table.games {
                thead {
                    tr {
                        th scope="col" { "Ended" }
                        th scope="col" { "Checkpoint" }
                        th scope="col" { "Against" }
                        th.number scope="col" { "Won" }
                        th.number scope="col" { "Drawn" }
                        th.number scope="col" { "Lost" }
                        th scope="col" { abbr title="Pairs of games in which the checkpoint took 0, ½, 1, 1½ and 2 points" { "Pairs" } }
                        th.number scope="col" { abbr title="Log-likelihood ratio of the sequential test" { "Ratio" } }
                        th scope="col" { "Difference" }
                        th scope="col" { "Outcome" }
                    }
                }
                tbody {
                    @for line in lines.iter().rev() {
                        tr {
                            th scope="row" { (moment(line.time_ms)) }
                            td { (version(&line.candidate.to_string())) }
                            td { (version(&line.opponent.to_string())) }
                            td.number { (line.wins) }
                            td.number { (line.draws) }
                            td.number { (line.losses) }
                            td { (line.pairs.0.map(|pairs| pairs.to_string()).join(" · ")) }
                            td.number { (format!("{:+.2}", line.log_likelihood_ratio)) }
                            td { (difference(line)) }
                            td { (outcome(line.outcome)) }
                        }
                    }
                }
            }
        }
    }
}

/// The difference of a match with its interval; an end without bound is infinite.
fn difference(line: &RatedMatch) -> String {
    let [low, high] = line.elo_difference_interval;
    let end =
        |end: Option<f64>, infinite: &str| end.map_or_else(|| infinite.into(), |elo| format!("{elo:+.0}"));
    let middle = end(line.elo_difference, "beyond measure");
    format!("{middle} ({} to {})", end(low, "−∞"), end(high, "+∞"))
}
