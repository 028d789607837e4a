//! [`Chart`]: curves with their ranges, as SVG with axes in HTML, and [`picture`]: the same as one SVG file.
//!
//! The plot is stretched to its box, and strokes and words keep their size. A curve is told apart by its dashes and its name as well as by
//! its colour. Nothing in it needs a script, and it has no address, so that a saved report draws the same chart.

use maud::{Markup, html};

use crate::figures::{series::Point, words};

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

/// Look of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Blue, drawn through.
    First,
    /// Orange, dashed, with a dot at each point if there are few.
    Second,
    /// Grey, dotted.
    Third,
    /// Colour of the text, dashed and dotted.
    Fourth,
}

impl Curve<'_> {
    /// True if a dot is drawn at each point. A single point has no line, and many dots would hide each other.
    fn has_dots(&self) -> bool {
        self.points.len() == 1 || self.look == Look::Second && self.points.len() <= DOTS
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

impl Look {
    fn class(self) -> &'static str {
        match self {
            Self::First => "curve first",
            Self::Second => "curve second",
            Self::Third => "curve third",
            Self::Fourth => "curve fourth",
        }
    }
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
                            path.(curve.look.class()) d="M0 4H24" {}
                            @if curve.has_dots() { circle.dot.second cx="12" cy="4" r="3" {} }
                        }
                        (curve.name)
                        @if let Some(last) = curve.points.iter().rev().find(|point| point.mean.is_finite()) {
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
                        path.range.(curve.look.class()) d=(range(curve.points, place)) {}
                        path.(curve.look.class()) d=(line(curve.points, place)) {}
                        @if curve.has_dots() {
                            // A line of no length with round ends is a dot that the stretched plot does not flatten.
                            path.dots.(curve.look.class()) d=(dots(curve.points, place)) {}
                        }
                    }
                }
                div.ticks-across aria-hidden="true" { @for text in across.labels() { span { (text) } } }
                div.name.quiet.small { (chart.across) }
            }
        }
    }
}

/// Margins of a picture in its units: left, top, right, bottom.
const MARGINS: [f64; 4] = [70.0, 40.0, 20.0, 50.0];
/// Colours of a picture that people with colour blindness tell apart (Okabe and Ito).
const COLORS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];

/// Draws curves, each a name with its points, as an SVG file that needs no style sheet.
pub fn picture(title: &str, across: &str, curves: &[(String, Vec<Point>)]) -> String {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let empty = Axis { low: 0.0, step: 1.0 };
    let horizontal = Axis::of(std::iter::once(0.0).chain(points().map(|point| point.x))).unwrap_or(empty);
    let vertical = Axis::of(points().flat_map(|point| [point.low, point.high])).unwrap_or(empty);
    let [left, top, right, bottom] = MARGINS;
    let (width, height) = (left + WIDTH + right, top + 1.5 * HEIGHT + bottom);
    let place = |x: f64, y: f64| {
        let up = 1.0 - vertical.share(y);
        (left + WIDTH * horizontal.share(x), top + 1.5 * HEIGHT * up)
    };
    let ticks = || (0..=INTERVALS).map(|at| at as f64);
    let at = |axis: &Axis, tick: f64| axis.low + tick * axis.step;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {height}")) font-family="sans-serif" font-size="12" {
            rect width=(width) height=(height) fill="white" {}
            text x=(left) y="22" font-size="15" { (title) }
            @for (tick, text) in ticks().zip(vertical.labels()) {
                @let (x, y) = place(horizontal.low, at(&vertical, tick));
                path d=(format!("M{x} {y:.1}H{}", width - right)) stroke="#ddd" {}
                text x=(x - 6.0) y=(y + 4.0) text-anchor="end" { (text) }
            }
            @for (tick, text) in ticks().zip(horizontal.labels()) {
                @let (x, y) = place(at(&horizontal, tick), vertical.low);
                text x=(x) y=(y + 18.0) text-anchor="middle" { (text) }
            }
            text x=(left + WIDTH / 2.0) y=(height - 10.0) text-anchor="middle" { (across) }
            @for (number, ((name, points), color)) in curves.iter().zip(COLORS.iter().cycle()).enumerate() {
                path d=(range(points, place)) fill=(color) opacity="0.15" {}
                path d=(line(points, place)) fill="none" stroke=(color) stroke-width="2" {}
                text x=(left + 8.0) y=(top + 14.0 + 16.0 * number as f64) fill=(color) { (name) }
            }
        }
    }
    .into_string()
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
        let known = || curve.points.iter().filter(|point| point.mean.is_finite());
        let (first, last) = (known().next()?, known().next_back()?);
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
            look: Look::First,
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

    #[test]
    fn a_picture_has_its_points_inside_the_axes_and_escapes_names() {
        let point = |x, mean: f64| Point::with_interval(x, mean, mean - 10.0, mean + 10.0);
        let curve = (
            "a < b".to_owned(),
            vec![point(0.0, -50.0), point(200_000.0, 400.0)],
        );
        let drawn = picture("Elo & more", "evaluations", &[curve]);
        assert!(
            drawn.contains("a &lt; b") && drawn.contains("Elo &amp; more"),
            "{drawn}"
        );
        // The vertical axis goes from -200 to 600, the horizontal one from 0 to 200,000.
        assert!(drawn.contains("d=\"M70.0 283.8L670.0 115.0\""), "{drawn}");
        assert!(picture("nothing", "x", &[]).ends_with("</svg>"));
    }
}
