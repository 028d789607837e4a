//! [`Chart`]: curves with their ranges, as SVG with axes in HTML.
//!
//! The plot is stretched to its box, and strokes and words keep their size. A curve is told apart by its dashes and its name as well as by
//! its colour. Nothing in it needs a script, and it has no address, so that a saved report draws the same chart.

use maud::{Markup, html};

use crate::figures::{
    series::{Point, newest},
    words,
};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 200.0;
/// Intervals of the vertical axis, and of the horizontal one.
const INTERVALS: usize = 4;

/// Most points of a curve that are drawn as dots.
const DOTS: usize = 24;

/// A curve of a chart.
#[derive(Clone, Copy, Debug)]
pub struct Curve<'a> {
    /// Name in the legend.
    pub name: &'a str,
    /// Points in ascending order of `x`.
    pub points: &'a [Point],
    /// Look of the curve.
    pub look: Look,
}

/// Look of a curve: the classes of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look(&'static str);

impl Look {
    /// Blue, drawn through.
    pub const FIRST: Self = Self("curve first");
    /// Orange, dashed, with a dot at each point if there are few.
    pub const SECOND: Self = Self("curve second");
    /// All looks: after the first two grey, dotted; and the colour of the text, dashed and dotted.
    pub const ALL: [Self; 4] = [
        Self::FIRST,
        Self::SECOND,
        Self("curve third"),
        Self("curve fourth"),
    ];
}

impl Curve<'_> {
    /// True if a dot is drawn at each point. A single point has no line, and many dots would hide each other.
    fn has_dots(&self) -> bool {
        self.points.len() == 1 || self.look == Look::SECOND && self.points.len() <= DOTS
    }
}

/// Curves over a common axis.
#[derive(Clone, Copy, Debug)]
pub struct Chart<'a> {
    /// Title, which is also the description for screen readers.
    pub title: &'a str,
    /// Name of the horizontal axis.
    pub across: &'a str,
    /// Least range of the vertical axis; `None`: that of the curves.
    pub range: Option<[f64; 2]>,
    /// Writes a value in the legend, e.g. [`digits`].
    pub figure: fn(f64) -> String,
    /// Curves.
    pub curves: &'a [Curve<'a>],
    /// Sentence in place of a chart without points.
    pub empty: &'a str,
}

/// Ends and step of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    low: f64,
    step: f64,
}

impl Axis {
    /// Axis of round numbers, with [`INTERVALS`] intervals, that holds all of these.
    fn of(numbers: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let low = numbers
            .clone()
            .filter(|number| number.is_finite())
            .reduce(f64::min)?;
        let high = numbers.filter(|number| number.is_finite()).reduce(f64::max)?;
        let span = (high - low).max(1e-9 + 1e-3 * high.abs());
        let size = 10f64.powf((span / INTERVALS as f64).log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0, 20.0].map(|step| step * size);
        let fits = |step: f64| {
            let low = (low / step).floor() * step;
            (low + INTERVALS as f64 * step >= high - 1e-9 * span).then_some(Self { low, step })
        };
        steps.into_iter().find_map(fits)
    }

    fn high(&self) -> f64 {
        self.low + INTERVALS as f64 * self.step
    }

    /// Share of the axis at a number, 0 to 1.
    fn share(&self, number: f64) -> f64 {
        ((number - self.low) / (self.high() - self.low)).clamp(0.0, 1.0)
    }

    fn labels(&self) -> impl DoubleEndedIterator<Item = String> {
        let axis = *self;
        (0..=INTERVALS).map(move |at| label(axis.low + at as f64 * axis.step, axis.step))
    }
}

/// A number with as many decimals as the step of its axis.
fn label(number: f64, step: f64) -> String {
    let is_whole = |number: f64| (number - number.round()).abs() < 1e-6;
    let decimals = (0..9)
        .find(|&decimals| is_whole(step * 10f64.powi(decimals)))
        .unwrap_or(9) as usize;
    let number = if number.abs() < step / 2.0 { 0.0 } else { number };
    if number.abs() >= 1e6 {
        format!("{:.2} M", number / 1e6)
    } else if decimals == 0 {
        words::count(number)
    } else {
        format!("{number:.decimals$}")
    }
}

/// A value with about three digits.
pub fn digits(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => words::count(number),
        size if size >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.3}"),
    }
}

/// Draws a chart.
pub fn chart(chart: &Chart<'_>) -> Markup {
    let points = || chart.curves.iter().flat_map(|curve| curve.points);
    let across = Axis::of(std::iter::once(0.0).chain(points().map(|point| point.x)));
    let least = chart.range.into_iter().flatten();
    let up = Axis::of(points().flat_map(|point| [point.low, point.high]).chain(least));
    let (Some(across), Some(up), Some(_)) = (across, up, points().next()) else {
        return html! { div.chart { p.empty { (words::with_code(chart.empty)) } } };
    };
    let place = |x: f64, y: f64| (WIDTH * across.share(x), HEIGHT * (1.0 - up.share(y)));
    html! {
        figure.chart {
            figcaption.legend {
                @for curve in chart.curves.iter().filter(|curve| !curve.points.is_empty()) {
                    span.key {
                        svg viewBox="0 0 24 8" aria-hidden="true" {
                            path.(curve.look.0) d="M0 4H24" {}
                            @if curve.has_dots() { circle.dot.second cx="12" cy="4" r="3" {} }
                        }
                        (curve.name)
                        @if let Some(last) = newest(curve.points) {
                            " " b { ((chart.figure)(last.mean)) }
                        }
                    }
                }
            }
            div.plot {
                div.ticks-up aria-hidden="true" { @for text in up.labels().rev() { span { (text) } } }
                svg role="img" data-low=(across.low) data-high=(across.high()) aria-label=(description(chart)) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" {
                    @for at in 0..=INTERVALS {
                        @let y = HEIGHT * at as f64 / INTERVALS as f64;
                        path.rule d=(format!("M0 {y}H{WIDTH}")) {}
                    }
                    @for curve in chart.curves {
                        path.range.(curve.look.0) d=(range(curve.points, place)) {}
                        path.(curve.look.0) d=(line(curve.points, place)) {}
                        @if curve.has_dots() {
                            // A line of no length with round ends is a dot that the stretched plot does not flatten.
                            path.dots.(curve.look.0) d=(dots(curve.points, place)) {}
                        }
                    }
                }
                div.ticks-across aria-hidden="true" { @for text in across.labels() { span { (text) } } }
                div.name.quiet.small { (chart.across) }
            }
        }
    }
}

/// The chart in a sentence, for those who do not see it.
fn description(chart: &Chart<'_>) -> String {
    let place = |x: f64| {
        if x.fract() == 0.0 {
            x.to_string()
        } else {
            format!("{x:.2}")
        }
    };
    let curves = chart.curves.iter().filter_map(|curve| {
        let first = curve.points.iter().find(|point| point.mean.is_finite())?;
        let last = newest(curve.points)?;
        Some(format!(
            "{}: {:.3} at {} {}, {:.3} at {}",
            curve.name,
            first.mean,
            chart.across,
            place(first.x),
            last.mean,
            place(last.x)
        ))
    });
    let curves: Vec<String> = curves.collect();
    format!("{}. {}.", chart.title, curves.join("; "))
}

/// Path through the means, interrupted at gaps.
fn line(points: &[Point], place: impl Fn(f64, f64) -> (f64, f64)) -> String {
    let mut path = String::new();
    let mut is_open = false;
    for point in points {
        if point.mean.is_finite() {
            let (x, y) = place(point.x, point.mean);
            path.push_str(&format!("{}{x:.1} {y:.1}", if is_open { 'L' } else { 'M' }));
        }
        is_open = point.mean.is_finite();
    }
    path
}

fn dots(points: &[Point], place: impl Fn(f64, f64) -> (f64, f64)) -> String {
    let known = points.iter().filter(|point| point.mean.is_finite());
    known
        .map(|point| {
            let (x, y) = place(point.x, point.mean);
            format!("M{x:.1} {y:.1}h0")
        })
        .collect()
}

/// Area between the smallest and the largest values.
fn range(points: &[Point], place: impl Fn(f64, f64) -> (f64, f64)) -> String {
    let mut path = String::new();
    for part in points.split(|point| !point.mean.is_finite()) {
        if part.len() < 2 || part.iter().all(|point| point.low == point.high) {
            continue;
        }
        let upper = part.iter().map(|point| place(point.x, point.high));
        let lower = part.iter().rev().map(|point| place(point.x, point.low));
        for (number, (x, y)) in upper.chain(lower).enumerate() {
            path.push_str(&format!("{}{x:.1} {y:.1}", if number == 0 { 'M' } else { 'L' }));
        }
        path.push('Z');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::series::Series;

    #[test]
    fn axes_are_round_and_hold_all_numbers() {
        for (numbers, low, step) in [
            ([0.0, 735.0], 0.0, 200.0),
            ([0.31, 0.94], 0.2, 0.2),
            ([-35.0, 212.0], -100.0, 100.0),
            ([5.0, 5.0], 5.0, 0.001),
        ] {
            let axis = Axis::of(numbers.into_iter()).unwrap();
            assert!(
                axis.low <= numbers[0] && axis.high() >= numbers[1],
                "{axis:?} {numbers:?}"
            );
            assert!(
                (axis.low - low).abs() < 1e-6 && (axis.step - step).abs() < 1e-6,
                "{axis:?} {numbers:?}"
            );
        }
        assert_eq!(Axis::of([f64::NAN].into_iter()), None);
        let labels: Vec<String> = Axis { low: 0.0, step: 0.25 }.labels().collect();
        assert_eq!(labels, ["0.00", "0.25", "0.50", "0.75", "1.00"]);
        let labels: Vec<String> = Axis {
            low: 0.0,
            step: 5_000.0,
        }
        .labels()
        .collect();
        assert_eq!(labels, ["0", "5,000", "10,000", "15,000", "20,000"]);
    }

    #[test]
    fn a_gap_interrupts_the_curve_and_no_points_give_the_sentence() {
        let mut series = Series::default();
        for (x, y) in [
            (0.0, Some(1.0)),
            (1.0, Some(2.0)),
            (2.0, None),
            (3.0, Some(1.0)),
            (4.0, Some(2.0)),
        ] {
            series.push(x, 0, y);
        }
        let curves = [Curve {
            name: "training",
            points: series.points(),
            look: Look::FIRST,
        }];
        let mut one = Chart {
            title: "Loss",
            across: "step",
            range: None,
            figure: digits,
            curves: &curves,
            empty: "Nothing yet.",
        };
        let drawn = chart(&one).into_string();
        let path = drawn
            .split("<path class=\"curve first\" d=\"")
            .nth(2)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        assert_eq!(path.matches('M').count(), 2, "{path}");
        assert!(
            drawn.contains("aria-label=\"Loss. training: 1.000 at step 0, 2.000 at 4.\""),
            "{drawn}"
        );
        one.curves = &[];
        // The place of the curve is kept, so that nothing moves when it comes.
        let empty = "<div class=\"chart\"><p class=\"empty\">Nothing yet.</p></div>";
        assert_eq!(chart(&one).into_string(), empty);
    }
}
