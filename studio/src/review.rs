//! Reviews of games as one HTML file, which makes no request and works from a disk: [`document`].

use arena::analysis::review::{Mistake, Review};
use games::{Player, erased::AnyGame};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{
    assets,
    board::{self, share},
    chart::{Chart, Curve, Look, chart},
    figures::series::Point,
};

/// A reviewed game.
#[derive(Clone, Debug)]
pub struct Reviewed {
    /// Title, e.g. the players' names.
    pub title: String,
    /// Result, network and visits in a sentence.
    pub remark: String,
    /// The review.
    pub review: Review,
}

/// Writes reviews as a document.
pub fn document(game: &AnyGame, title: &str, games: &[Reviewed]) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // Nothing may be requested, whatever a later hand writes into the file.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                title { (title) " · minuet" }
                style { @for name in assets::STYLES { (PreEscaped(assets::text(name))) } (PreEscaped(STYLE)) }
            }
            body {
                (board::pieces())
                main {
                    header.title { h1 { (title) } p.quiet { (game.title()) ", reviewed by minuet " (env!("CARGO_PKG_VERSION")) } }
                    @for one in games { (section(game, one)) }
                }
            }
        }
    }
}

/// Style of the mistakes: a board with a text next to it.
const STYLE: &str = "\
.mistake{display:grid;grid-template-columns:minmax(12rem,20rem) 1fr;gap:1rem;margin:1rem 0}\
         @media(max-width:40rem){.mistake{grid-template-columns:1fr}}";

/// Sentence in place of a list of mistakes.
pub(crate) const NO_MISTAKE: &str = "No turn gave away more than 5 % of the chances.";

/// Draws the values of a game over its turns.
pub(crate) fn graph(game: &AnyGame, review: &Review) -> Markup {
    let points: Vec<Point> = (0..)
        .zip(&review.values)
        .map(|(turn, value)| Point::single(f64::from(turn), f64::from(100.0 * share(game, value.get()))))
        .collect();
    let first = game.player_name(Player::First);
    let title = match game.players {
        1 => "Value in percent".to_owned(),
        _ => format!("{first}’s chances in percent"),
    };
    chart(&Chart {
        title: &title,
        across: "turn",
        range: Some([0.0, 100.0]),
        figure: |percent| format!("{percent:.0} %"),
        curves: &[Curve {
            name: &title,
            points: &points,
            look: Look::FIRST,
        }],
        empty: "The game has no turns.",
    })
}

/// Says how far the chances fell by a mistake.
pub(crate) fn fall(game: &AnyGame, mistake: &Mistake) -> String {
    let [before, after] = mistake.values.map(|value| 100.0 * share(game, value));
    format!("The chances fell from {before:.0} % to {after:.0} %.")
}

fn section(game: &AnyGame, one: &Reviewed) -> Markup {
    html! {
        section.card {
            h2 { (one.title) }
            p { (one.remark) }
            (graph(game, &one.review))
            @if one.review.mistakes.is_empty() { p { (NO_MISTAKE) } }
            @for mistake in &one.review.mistakes { (drawn(game, mistake)) }
            details { summary { "All turns" } p { @for (number, turn) in one.review.turns.iter().enumerate() { (number + 1) ". " (turn) " " } } }
        }
    }
}

fn drawn(game: &AnyGame, mistake: &Mistake) -> Markup {
    let texts = mistake.texts();
    html! {
        div.mistake {
            div { (board::position(&mistake.state.scene(&[]))) }
            div {
                h3 { (mistake.turn + 1) ". " (game.player_name(mistake.player)) " played " (mistake.state.write_turn(&mistake.played)) }
                p { (fall(game, mistake)) }
                @if let Some((best, rest)) = texts.split_first() {
                    p { "Better: " b { (best) } @for turn in rest { ", " (turn) } }
                }
            }
        }
    }
}
