//! The page that compares this run with others in the same parent folder: aligned curves, and the settings that differ.
//!
//! | module | contents |
//! |---|---|
//! | [`runs`] | the runs of the folder, and their curves |
//! | [`timeline`] | what a run had done at each moment |

pub mod runs;
pub mod timeline;

use std::collections::BTreeSet;

use anyhow::Context as _;
use axum::{Router, extract::State, routing::get};
use maud::{Markup, html};
use serde::Deserialize;

use self::runs::{Axis, Curves, Sibling, Siblings};
use crate::{
    app::App,
    assets,
    chart::{Chart, Curve, Look, chart, digits},
    failure::Failure,
    figures::{
        series::{Point, newest},
        words::{count, shown},
    },
    form::Parameters,
    page::{Section, columns, page},
    settings::list::{self, Setting},
};

/// Parameters of the page's address.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    by: Axis,
    /// Names of the other runs, empty for none. All `None`: the page chooses.
    first: Option<String>,
    second: Option<String>,
    third: Option<String>,
}

/// A run on the page, and its curves.
type Shown<'a> = (&'a Sibling, Curves);

/// Routes of the comparison.
pub fn routes() -> Router<App> {
    Router::new().route("/compare", get(show))
}

async fn show(State(app): State<App>, Parameters(asked): Parameters<Asked>) -> Result<Markup, Failure> {
    let shown = app.clone();
    let body = tokio::task::spawn_blocking(move || body(&shown, &asked));
    let body = body.await.context("comparing failed")??;
    Ok(page(&app, Section::Compare, "Compare", &[], &body))
}

fn body(app: &App, asked: &Asked) -> Result<Markup, Failure> {
    let run = &app.run;
    let own = list::read(&run.folder).map_err(|error| {
        Failure::Unavailable(format!(
            "The settings cannot be read: {}.",
            service::chain(&error)
        ))
    })?;
    let siblings = Siblings::of(&run.folder, &own.game.title());
    let chosen = chosen(&siblings.same_game, asked)?;
    let own = Sibling {
        name: run.name.clone(),
        folder: run.folder.clone(),
        config: own,
    };
    let runs = std::iter::once(&own).chain(chosen.iter().copied());
    let shown: Vec<Shown<'_>> = runs
        .map(|run| (run, app.compared.curves(&run.folder, asked.by)))
        .collect();
    Ok(html! {
        link rel="stylesheet" href=(assets::path("settings.css"));
        h1 { "Compare runs" }
        p.quiet { "This run next to others of " (run.config.game.title()) " in the same folder, as of the moment when the page was loaded." }
        @if siblings.same_game.is_empty() {
            p.empty { "There is no other run of " (run.config.game.title()) " in the same folder." }
        } @else {
            (choice(&siblings.same_game, &chosen, asked.by))
        }
        (left_out(&siblings))
        section.card aria-labelledby="so-far" { h2 #so-far { "So far" } (totals(&shown)) }
        (charts(&shown, asked.by))
        section.card aria-labelledby="settings" { h2 #settings { "Settings that differ" } (settings(&shown)) }
    })
}

/// Requested runs, or the most recently trained ones.
fn chosen<'a>(known: &'a [Sibling], asked: &Asked) -> Result<Vec<&'a Sibling>, Failure> {
    let names = [&asked.first, &asked.second, &asked.third];
    if names.iter().all(|name| name.is_none()) {
        return Ok(known.iter().take(names.len()).collect());
    }
    let mut seen = BTreeSet::new();
    let names = names.into_iter().flatten().filter(|name| !name.is_empty());
    names
        .filter(|name| seen.insert(name.as_str()))
        .map(|name| {
            let found = known.iter().find(|sibling| sibling.name == *name);
            found.ok_or_else(|| {
                Failure::Missing(format!(
                    "There is no run `{name}` of this game in the same folder."
                ))
            })
        })
        .collect()
}

fn choice(known: &[Sibling], chosen: &[&Sibling], by: Axis) -> Markup {
    html! {
        form.filters method="get" action="/compare" {
            @for (at, name) in ["first", "second", "third"].into_iter().enumerate().take(known.len()) {
                @let at = chosen.get(at).map(|sibling| sibling.name.as_str());
                label { span { @if name == "first" { "With" } @else { "and" } }
                    select name=(name) {
                        option value="" { "none" }
                        @for sibling in known {
                            option value=(sibling.name) selected[at == Some(sibling.name.as_str())] { (sibling.name) }
                        }
                    }
                }
            }
            label { span { "Aligned by" }
                select name="by" {
                    @for (axis, name, text, _) in Axis::ALL { option value=(name) selected[axis == by] { (text) } }
                }
            }
            button type="submit" { "Compare" }
        }
    }
}

/// Sentences about folders that are not offered.
fn left_out(siblings: &Siblings) -> Markup {
    html! {
        @if siblings.others > 0 {
            p.quiet.small {
                @if siblings.others == 1 { "One run of another game is left out." } @else { (siblings.others) " runs of other games are left out." }
            }
        }
        @for (name, reason) in &siblings.unusable {
            p.warning { "The run " code { (name) } " cannot be used: " (reason) "." }
        }
    }
}

fn totals(all: &[Shown<'_>]) -> Markup {
    let loss = |points: &[Point]| shown(newest(points), |point| digits(point.mean));
    let elo = |best: &Point| format!("{:+.0} ({:+.0} to {:+.0})", best.mean, best.low, best.high);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Totals, scrollable" {
            table.games.figures {
                (columns(&[
                    "Run", "Steps", "Minutes at work", "Games", "Evaluations", "Policy loss, held out", "Value loss, held out", "Elo",
                ]))
                tbody {
                    @for (run, curves) in all {
                        tr {
                            th scope="row" { (run.name) }
                            td { (count(curves.step)) }
                            td { (count(curves.last.minutes)) }
                            td { (count(curves.last.games)) }
                            td { (count(curves.last.evaluations)) }
                            @for [held_out, _] in &curves.losses { td { (loss(held_out)) } }
                            td { (shown(curves.elo.last(), elo)) }
                        }
                    }
                }
            }
        }
    }
}

fn charts(shown: &[Shown<'_>], by: Axis) -> Markup {
    html! {
        div.cards.wide {
            (card(shown, by, "Policy loss on held-out games", |curves| &curves.losses[0][0]))
            (card(shown, by, "Value loss on held-out games", |curves| &curves.losses[1][0]))
            (card(shown, by, "Policy loss in training", |curves| &curves.losses[0][1]))
            (card(shown, by, "Value loss in training", |curves| &curves.losses[1][1]))
            (card(shown, by, "Elo of the best checkpoint", |curves| &curves.elo))
        }
        p.quiet.small {
            "Elo counts from the first checkpoint of each run. Evaluations are summed from the rates that " code { "minuet up" }
            " recorded every ten seconds."
        }
    }
}

fn card(shown: &[Shown<'_>], by: Axis, title: &str, points: fn(&Curves) -> &Vec<Point>) -> Markup {
    let curves: Vec<Curve<'_>> = shown
        .iter()
        .zip(Look::ALL)
        .map(|((run, curves), look)| Curve {
            name: &run.name,
            points: points(curves),
            look,
        })
        .collect();
    html! {
        section.card {
            h2 { (title) }
            (chart(&Chart { title, across: by.across(), range: None, figure: digits, curves: &curves, empty: "None of these runs has such figures." }))
        }
    }
}

/// Settings that are not the same in all runs, with the value in each.
fn settings(shown: &[Shown<'_>]) -> Markup {
    let of_runs = shown.iter().map(|(run, _)| list::settings(&run.config));
    let of_runs: Vec<Vec<Setting>> = of_runs.collect();
    let mut seen = BTreeSet::new();
    let paths = of_runs.iter().flatten().map(|setting| setting.path.as_str());
    let paths: Vec<&str> = paths.filter(|path| seen.insert(*path)).collect();
    let value = |settings: &[Setting], path: &str| {
        let found = settings.iter().find(|setting| setting.path == path);
        found.map(|setting| setting.value.clone())
    };
    let rows: Vec<(&str, Vec<Option<String>>)> = paths
        .into_iter()
        .map(|path| {
            (
                path,
                of_runs.iter().map(|settings| value(settings, path)).collect(),
            )
        })
        .filter(|(_, values): &(&str, Vec<Option<String>>)| {
            values.iter().any(|value| values.first() != Some(value))
        })
        .collect();
    html! {
        @if rows.is_empty() {
            p.empty { @if shown.len() < 2 { "There is nothing to compare with." } @else { "All settings are the same." } }
        } @else {
            div.scroll tabindex="0" role="region" aria-label="Settings that differ, scrollable" {
                table.different {
                    thead { tr { th scope="col" { "Key" } @for (run, _) in shown { th scope="col" { (run.name) } } } }
                    tbody {
                        @for (path, values) in &rows {
                            tr {
                                th scope="row" { a href=(format!("/config#{path}")) { code { (path) } } }
                                @for value in values {
                                    td { @match value { Some(value) => { code { (value) } } None => { span.quiet { "none" } } } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
