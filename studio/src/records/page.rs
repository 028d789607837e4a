//! The page of a game: its board at any move, its moves, and what the search thought.

use axum::{
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use proto::v1::Game;
use serde::Deserialize;

use super::replay::{Ply, Replay, parse_id};
use crate::{
    app::App,
    board,
    chart::{Chart, Curve, Look, chart},
    failure::{Failure, InJson},
    figures::{
        series::Point,
        words::{count, length, moment, percent, points, version},
    },
    form::Parameters,
    live::Slots,
    page::{Section, columns, page},
};

/// Candidates that are shown; the rest is one line.
const CANDIDATES: usize = 8;

/// Query of the page.
#[derive(Debug, Deserialize)]
pub struct At {
    /// Number of actions before the shown position; the last position if it is missing.
    ply: Option<usize>,
}

/// `GET /games/{id}`.
///
/// # Errors
/// [`Failure`] if there is no such game.
pub async fn game(
    State(app): State<App>,
    Path(id): Path<String>,
    Parameters(at): Parameters<At>,
) -> Result<Markup, Failure> {
    let game = app.store.game(&parse_id(&id)?).await?;
    let replay = Replay::of(&game, at.ply.unwrap_or(usize::MAX))?;
    let slots = slots(&id, &replay);
    let body = html! {
        (board::pieces())
        header.title {
            p.quiet { a href="/games" { "Games" } " / " code { (id.get(..8).unwrap_or_default()) } }
            h1 { (replay.result) }
            p.quiet {
                (length(&game)) ", ended " (moment(game.finished_at_ms))
                " · " (kind(&game)) " by " (game.actor) " · "
                @for (number, model) in game.model_versions.iter().enumerate() {
                    @if number > 0 { ", " }
                    (version(model))
                }
            }
            @if !replay.is_whole(&game) {
                p.warning { "The rules of this build refuse a move of this game, so it is shown up to there. " code { "minuet games check" } " says more." }
            }
        }
        div.game data-replay=(id) data-at=(replay.at) data-plies=(replay.plies.len()) {
            section.card.board-card aria-label="Board" {
                (slots.show("board"))
                (slots.show("steps"))
            }
            section.card aria-labelledby="thought" { h2 #thought { "The search" } (slots.show("thought")) }
            section.card.moves-card aria-labelledby="moves" { h2 #moves { "Moves" } (slots.show("moves")) }
            section.card.value-card aria-labelledby="value" {
                h2 #value { "Value for " (replay.players[0]) " after each search" }
                (value(&replay))
            }
        }
    };
    Ok(page(&app, Section::Games, "Game", &["replay.js"], &body))
}

/// `GET /games/{id}/at/{ply}`: the parts of the page that depend on the move, as JSON.
pub async fn at(State(app): State<App>, Path((id, ply)): Path<(String, usize)>) -> Result<Response, InJson> {
    let game = app.store.game(&parse_id(&id)?).await?;
    let replay = Replay::of(&game, ply)?;
    Ok(slots(&id, &replay).json().into_response())
}

fn kind(game: &Game) -> &str {
    if game.provenance.is_empty() {
        "self-play"
    } else {
        &game.provenance
    }
}

fn slots(id: &str, replay: &Replay) -> Slots {
    let board = html! { @if let Some(scene) = &replay.scene { (board::position(scene)) } };
    Slots::default()
        .with("board", board)
        .with("steps", steps(id, replay))
        .with("thought", thought(replay))
        .with("moves", plies(id, replay))
}

fn link(id: &str, ply: usize) -> String {
    format!("/games/{id}?ply={ply}")
}

fn steps(id: &str, replay: &Replay) -> Markup {
    let (at, last) = (replay.at, replay.plies.len());
    let to = |name: &str, shape: &str, target: Option<usize>| {
        let sign = html! { svg viewBox="0 0 16 16" aria-hidden="true" { path d=(shape) {} } };
        html! {
            @match target {
                Some(target) => { a.step href=(link(id, target)) data-ply=(target) aria-label=(name) title=(name) { (sign) } }
                None => { span.step aria-disabled="true" { (sign) } }
            }
        }
    };
    html! {
        nav.steps aria-label="Steps through the game" {
            (to("First position", "M3 3h2v10H3zM13 3v10L6 8z", (at > 0).then_some(0)))
            (to("Back", "M12 3v10L4 8z", at.checked_sub(1)))
            span.where aria-live="polite" { "after " (at) " of " (last) }
            (to("Forward", "M4 3v10l8-5z", (at < last).then_some(at + 1)))
            (to("Last position", "M11 3h2v10h-2zM3 3v10l7-5z", (at < last).then_some(last)))
        }
    }
}

fn thought(replay: &Replay) -> Markup {
    let Some(ply) = replay.plies.get(replay.at) else {
        return html! { p { (replay.result) } p.quiet { "This is the end of the game; go back to see what the search thought." } };
    };
    let rank = ply.candidates.iter().position(|candidate| candidate.is_played);
    let share = |visits: u32| f64::from(visits) / f64::from(ply.visits.max(1));
    let rest = ply.candidates.get(CANDIDATES..).unwrap_or_default();
    let player = |ply: &Ply| replay.players[ply.mover.index()];
    html! {
        p {
            b { (player(ply)) } " plays " b { (ply.text) }
            @match rank {
                Some(0) => { ", the most visited move." }
                Some(rank) => { ", explored: choice " (rank + 1) ", " (percent(share(ply.candidates[rank].visits))) " of the visits." }
                None => { "." }
            }
        }
        p.quiet {
            (points(ply.value)) " for " (replay.players[0]) " · " (count(f64::from(ply.visits))) " visits"
            @if let Some(model) = &ply.model { " · " (version(model)) }
        }
        @if ply.candidates.is_empty() {
            p.quiet { "No visits are recorded here: the move was not searched fully." }
        } @else {
            table.candidates {
                (columns(&["Move", "Visits", "Share"]))
                tbody {
                    @for candidate in ply.candidates.iter().take(CANDIDATES) {
                        tr.played[candidate.is_played] {
                            th scope="row" { (candidate.text) @if candidate.is_played { span.hidden-text { " (played)" } } }
                            td { (count(f64::from(candidate.visits))) }
                            td { meter min="0" max="1" value=(format!("{:.3}", share(candidate.visits))) aria-label=(percent(share(candidate.visits))) {} }
                        }
                    }
                    @if !rest.is_empty() {
                        tr.quiet {
                            th scope="row" { (rest.len()) " more" }
                            td { (count(f64::from(rest.iter().map(|candidate| candidate.visits).sum::<u32>()))) }
                            td {}
                        }
                    }
                }
            }
        }
    }
}

fn plies(id: &str, replay: &Replay) -> Markup {
    html! {
        ol.moves tabindex="0" aria-label="Moves" {
            @for (number, ply) in replay.plies.iter().enumerate() {
                li {
                    a.(format!("mover-{}", ply.mover.index())) href=(link(id, number + 1)) data-ply=(number + 1)
                        aria-current=[(number + 1 == replay.at).then_some("step")] {
                        span.number { (number + 1) }
                        span.text { (ply.text) }
                        span.value.quiet { (points(ply.value)) }
                    }
                }
            }
        }
    }
}

fn value(replay: &Replay) -> Markup {
    let points: Vec<Point> = replay
        .plies
        .iter()
        .enumerate()
        .map(|(ply, thought)| {
            let percent = 50.0 * (f64::from(thought.value) + 1.0);
            Point::single(ply as f64, percent)
        })
        .collect();
    chart(&Chart {
        title: "Value in percent",
        across: "move",
        range: Some([0.0, 100.0]),
        figure: |share| percent(share / 100.0),
        curves: &[Curve {
            name: "root value",
            points: &points,
            look: Look::FIRST,
        }],
        empty: "This game has no moves.",
    })
}
