//! Strength of an earlier run of the same game with its default settings, so that a person knows what the next minutes bring.
//! `scripts/strength_curve.py` measures it and writes `earlier.json`.

use std::{collections::BTreeMap, sync::LazyLock};

use maud::{Markup, html};
use serde::Deserialize;

use crate::figures::words::count;

/// A checkpoint of an earlier run and its match against uniform UCT with ten times its visits.
#[derive(Deserialize)]
struct Point {
    /// Age of the run, in minutes of two cores.
    minutes: f64,
    wins: u64,
    draws: u64,
    losses: u64,
}

static EARLIER: LazyLock<BTreeMap<String, Vec<Point>>> =
    LazyLock::new(|| serde_json::from_str(include_str!("earlier.json")).unwrap_or_default());

/// Returns a sentence about an earlier run of this game. Nothing if none was measured.
pub fn expected(game: &str) -> Markup {
    let points = EARLIER.get(game).map_or(&[][..], Vec::as_slice);
    html! {
        @if !points.is_empty() {
            p.quiet.small {
                "An earlier run of this game with its usual settings, by minutes of two cores, against a search without a network that \
                 has ten times the visits: "
                @for (at, point) in points.iter().enumerate() {
                    @if at > 0 { ", " }
                    b { (point.wins) " of " (count((point.wins + point.draws + point.losses) as f64)) }
                    " games won after " (point.minutes) " min"
                }
                "."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_games_have_a_sentence() {
        let file: BTreeMap<String, Vec<Point>> = serde_json::from_str(include_str!("earlier.json")).unwrap();
        for (game, points) in &file {
            assert!(games::registry::find(game).is_ok(), "{game}");
            let shown = expected(game).into_string();
            assert_eq!(shown.matches(" min").count(), points.len() + 1, "{shown}");
        }
        assert!(expected("no game").into_string().is_empty());
    }
}
