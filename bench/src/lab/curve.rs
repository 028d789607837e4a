//! Curves as SVG: [`draw`].

use std::fmt::Write as _;

/// Width and height of a picture, and the margins for axes and legend, in pixels.
const SIZE: [f64; 2] = [760.0, 420.0];
const MARGIN: [f64; 4] = [70.0, 20.0, 40.0, 50.0];
/// Colours that people with colour blindness tell apart (Okabe and Ito).
const COLORS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];
const TICKS: u32 = 5;

/// A named line with a band.
pub struct Curve {
    /// Name for the legend.
    pub name: String,
    /// Points by ascending `x`.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Height of the line.
    pub mean: f64,
    /// Lower edge of the band.
    pub low: f64,
    /// Upper edge of the band.
    pub high: f64,
}

/// Draws `curves` with a title and the name of the horizontal axis. Both axes are linear; the horizontal one begins at 0.
pub fn draw(title: &str, x_axis: &str, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let end = points().map(|point| point.x).fold(1.0, f64::max);
    let low = points().map(|point| point.low).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.high).fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = if low < high {
        (low, high)
    } else {
        (low.min(0.0), low.max(0.0) + 1.0)
    };
    let (low, high) = if low.is_finite() { (low, high) } else { (0.0, 1.0) };
    let [left, right, top, bottom] = MARGIN;
    let across = |x: f64| left + x / end * (SIZE[0] - left - right);
    let down = |y: f64| SIZE[1] - bottom - (y - low) / (high - low) * (SIZE[1] - top - bottom);

    let [width, height] = SIZE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"22\" font-size=\"15\">{}</text>\n",
        escaped(title)
    );
    for tick in 0..=TICKS {
        let share = f64::from(tick) / f64::from(TICKS);
        let (x, y) = (share * end, low + share * (high - low));
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" x2=\"{0}\" y1=\"{1:.1}\" y2=\"{1:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{y:.1}</text>\
             <text x=\"{4:.1}\" y=\"{5}\" text-anchor=\"middle\">{6}</text>",
            width - right,
            down(y),
            left - 6.0,
            down(y) + 4.0,
            across(x),
            height - bottom + 18.0,
            thousands(x)
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        (left + width - right) / 2.0,
        height - 10.0,
        escaped(x_axis)
    );
    for (curve, (number, color)) in curves.iter().zip(COLORS.iter().cycle().enumerate()) {
        let upper = curve.points.iter().map(|point| (point.x, point.high));
        let lower = curve.points.iter().rev().map(|point| (point.x, point.low));
        let path = |points: &mut dyn Iterator<Item = (f64, f64)>| {
            points
                .map(|(x, y)| format!("{:.1},{:.1}", across(x), down(y)))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let _ = writeln!(
            svg,
            "<polygon points=\"{}\" fill=\"{color}\" opacity=\"0.15\"/>\n\
             <polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n\
             <text x=\"{}\" y=\"{}\" fill=\"{color}\">{}</text>",
            path(&mut upper.chain(lower)),
            path(&mut curve.points.iter().map(|point| (point.x, point.mean))),
            left + 8.0,
            top + 14.0 + 16.0 * number as f64,
            escaped(&curve.name)
        );
    }
    svg += "</svg>\n";
    svg
}

fn thousands(number: f64) -> String {
    if number >= 10_000.0 {
        format!("{:.0} k", number / 1000.0)
    } else {
        format!("{number:.0}")
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_inside_the_axes_and_names_are_escaped() {
        let point = |x, mean| Point {
            x,
            mean,
            low: mean - 10.0,
            high: mean + 10.0,
        };
        let curve = Curve {
            name: "a < b".into(),
            points: vec![point(0.0, -50.0), point(200_000.0, 400.0)],
        };
        let svg = draw("Elo & more", "evaluations", &[curve]);
        assert!(svg.contains("a &lt; b") && svg.contains("Elo &amp; more"));
        let line = svg
            .split("<polyline points=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let points: Vec<Vec<f64>> = line
            .split(' ')
            .map(|point| point.split(',').map(|number| number.parse().unwrap()).collect())
            .collect();
        let [left, right, top, bottom] = MARGIN;
        assert_eq!(points[0][0], left);
        assert_eq!(points[1][0], SIZE[0] - right);
        // The band of 10 lies above the last point and below the first one.
        let ten = 10.0 / 470.0 * (SIZE[1] - top - bottom);
        assert!((points[1][1] - (top + ten)).abs() < 0.1);
        assert!((points[0][1] - (SIZE[1] - bottom - ten)).abs() < 0.1);
    }

    #[test]
    fn a_picture_without_points_is_drawn() {
        assert!(draw("nothing", "x", &[]).ends_with("</svg>\n"));
    }
}
