//! Numbers and times as people read them, for all pages.

use launcher::{moment::rfc3339, screen::figures};
use maud::{Markup, html};
use proto::v1::Game;

pub use figures::{bytes, clock, count, percent, rate, short_time};

/// A dash for a figure that is not known, with words for a screen reader.
pub fn unknown() -> Markup {
    html! { span.unknown title="not known yet" { "–" } }
}

/// A figure, or a dash.
pub fn shown<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> Markup {
    match value {
        Some(value) => html! { (show(value)) },
        None => unknown(),
    }
}

/// A text in which backquotes enclose what is typed or read literally.
pub fn with_code(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split('`').enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Length of a game: `1 move`, `1,200 moves`, `9 moves from a drawn position`.
pub fn length(game: &Game) -> String {
    let moves = game.actions.len();
    let noun = if moves == 1 { "move" } else { "moves" };
    let from = if game.start.is_empty() {
        ""
    } else {
        " from a drawn position"
    };
    format!("{} {noun}{from}", count(moves as f64))
}

/// A moment. Without scripts it is a time of day; the page's script replaces that by the distance from now.
pub fn moment(at_ms: u64) -> Markup {
    let text = rfc3339(at_ms);
    html! { time datetime=(text) data-at=(at_ms) title=(text) { (text.replace('T', " ").replace('Z', " UTC")) } }
}

/// A value from -1 to 1 as the share of points that it promises: 54 %.
pub fn points(value: f32) -> String {
    percent((f64::from(value) + 1.0) / 2.0)
}

/// The sentence with a capital letter at its beginning.
pub fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The steps of a version, which begins with them: `000000000150-3fa94c21` is step 150.
pub fn version(version: &str) -> Markup {
    let step = version
        .split('-')
        .next()
        .and_then(|step| step.parse::<u64>().ok());
    html! {
        @match step {
            Some(step) => { span title=(version) { "step " (count(step as f64)) } }
            None => { (version) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_whole_percents_and_moments_have_both_forms() {
        assert_eq!(
            (points(-1.0), points(0.0), points(0.087)),
            ("0 %".into(), "50 %".into(), "54 %".into())
        );
        let length = |moves, start: &str| {
            length(&Game {
                actions: vec![0; moves],
                start: start.into(),
                ..Game::default()
            })
        };
        assert_eq!([length(1, ""), length(1_200, "")], ["1 move", "1,200 moves"]);
        assert_eq!(length(9, "[3,4]"), "9 moves from a drawn position");
        let moment = moment(1_795_255_200_000).into_string();
        assert!(moment.contains("data-at=\"1795255200000\""), "{moment}");
        assert!(moment.contains(">2026-11-21 10:00:00 UTC<"), "{moment}");
    }
}
