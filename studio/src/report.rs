//! The report: the run as one HTML file, which makes no request and works from a disk.

use axum::{
    Router,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
    routing::get,
};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use proto::v1::{Game, GameFilter, GameSort};
use replay_store::client::{NEWEST, Order};

use crate::{
    app::App,
    assets, board,
    failure::Failure,
    figures::words::{length, moment, points, version},
    matches,
    overview::parts,
    records::replay::{Replay, scenes},
};

/// Games of a report: the newest, the longest and the most surprising one.
const ORDERS: [(&str, Order); 3] = [
    ("The newest game", NEWEST),
    ("The longest game", Order::from_most(GameSort::Length)),
    ("The most surprising game", Order::from_most(GameSort::Surprise)),
];

/// Routes of the report.
pub fn routes() -> Router<App> {
    Router::new().route("/report", get(download))
}

/// `GET /report`: the file. A browser saves it, because the studio's own pages allow no style within a page.
async fn download(State(app): State<App>) -> Result<Response, Failure> {
    let name: String = app
        .run
        .name
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() || letter == '-' {
                letter
            } else {
                '_'
            }
        })
        .collect();
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"minuet-{name}.html\""),
        ),
    ];
    Ok((headers, report(&app).await?.into_string()).into_response())
}

/// Makes the report.
///
/// # Errors
/// [`Failure`] if the stored games cannot be read.
pub async fn report(app: &App) -> Result<Markup, Failure> {
    let run = &app.run;
    let mut games = Vec::new();
    for (title, order) in ORDERS {
        let listed = app
            .store
            .list(order, GameFilter::default(), 1, Vec::new())
            .await?;
        if let Some(summary) = listed.games.first() {
            games.push((title, app.store.game(&summary.id).await?));
        }
    }
    let games: Vec<Markup> = games
        .iter()
        .enumerate()
        .map(|(number, (title, game))| replayed(number, title, game))
        .collect::<Result<Vec<Markup>, Failure>>()?;
    let settings = std::fs::read_to_string(run.folder.join("run.toml")).unwrap_or_default();
    let rated = app.watched.look(|state| state.rated.clone());
    let figures = app.watched.look(|state| {
        html! {
            section.top { (parts::status(state)) }
            div.cards.wide {
                @if parts::has_problems(run) { section.card { h2 { "Problems" } (parts::problems(state)) } }
                section.card { h2 { "Strength" } (parts::strength(state)) }
                section.card { h2 { "Policy loss" } (parts::losses("Policy loss", &state.learning.policy)) }
                section.card { h2 { "Value loss" } (parts::losses("Value loss", &state.learning.value)) }
            }
        }
    });
    Ok(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // Nothing may be requested, whatever a later hand writes into the file.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                title { (run.name) " · minuet" }
                style { @for name in assets::STYLES { (PreEscaped(assets::text(name))) } (PreEscaped(FRAMES)) }
            }
            body {
                (board::pieces())
                main {
                    header.title {
                        h1 { (run.name) }
                        p.quiet { (run.config.game.title()) ", written by minuet " (env!("CARGO_PKG_VERSION")) " at " (moment(launcher::moment::now())) }
                    }
                    (figures)
                    @if !rated.is_empty() { section.card { h2 #ladder { "Ladder" } (matches::ladder(&rated)) } }
                    @for game in &games { (game) }
                    section.card { details { summary { h2 { "Settings" } } pre.settings { (settings) } } }
                }
            }
        }
    })
}

/// Most positions of a game in a report.
const POSITIONS: usize = 300;

/// A game that is stepped through without a script: each position has a radio button, which the style pairs with its drawing.
fn replayed(number: usize, title: &str, game: &Game) -> Result<Markup, Failure> {
    let whole = Replay::of(game, usize::MAX)?;
    let drawn = scenes(game, POSITIONS)?;
    let played = |at: usize| at.checked_sub(1).and_then(|before| whole.plies.get(before));
    Ok(html! {
        section.card.told {
            h2 { (title) }
            p { (whole.result) " " span.quiet { (length(game)) " · " @for model in &game.model_versions { (version(model)) " " } } }
            div.frames {
                @for (at, scene) in drawn.iter().enumerate() {
                    label {
                        input type="radio" name=(format!("game-{number}")) checked[at == 0]
                            aria-label=(format!("Position {at}"));
                        span.at {
                            @match played(at) {
                                Some(ply) => { (at) ". " (ply.text) }
                                None => { "start" }
                            }
                        }
                        div.shown {
                            (board::position(scene))
                            @if let Some(ply) = played(at) { p.quiet { (points(ply.value)) " for " (whole.players[0]) } }
                        }
                    }
                }
            }
        }
    })
}

/// Style of the games of a report. The arrow keys move between radio buttons of one name, so they step through a game.
const FRAMES: &str = "\
.told .frames{position:relative;display:flex;flex-wrap:wrap;gap:.25rem;align-content:start;min-height:30rem;padding-left:min(26rem,100%)}\
         .told label{padding:0 .5rem;border:1px solid var(--line);border-radius:var(--radius);font-size:var(--size-small)}\
         .told input{position:absolute;opacity:0}\
         .told label:has(:checked){border-color:var(--blue);background:var(--blue-soft)}\
         .told label:has(:focus-visible){outline:2px solid var(--focus)}\
         .told .shown{display:none;position:absolute;left:0;top:0;width:min(25rem,100%)}\
         .told label:has(:checked) .shown{display:block}\
         .settings{overflow-x:auto}summary h2{display:inline}\
         @media(max-width:48rem){.told .frames{padding:32rem 0 0}}";
