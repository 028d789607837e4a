//! Numbers and times as people read them, for all pages.

use launcher::{moment::rfc3339, screen::figures};
use maud::{Markup, html};

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

/// A moment. Without scripts it is a time of day; the page's script replaces that by the distance from now.
pub fn moment(at_ms: u64) -> Markup {
    let text = rfc3339(at_ms);
    html! { time datetime=(text) data-at=(at_ms) title=(text) { (text.replace('T', " ").replace('Z', " UTC")) } }
}

/// A value from -1 to 1 as the share of points that it promises: 54 %.
pub fn points(value: f32) -> String {
    percent((f64::from(value) + 1.0) / 2.0)
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
        let moment = moment(1_795_255_200_000).into_string();
        assert!(moment.contains("data-at=\"1795255200000\""), "{moment}");
        assert!(moment.contains(">2026-11-21 10:00:00 UTC<"), "{moment}");
    }
}
