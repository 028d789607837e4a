//! [`Plot`]: curves as an SVG picture that needs no script and no font of its own.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
/// Space around the curves: left, top, right, bottom.
const AROUND: [f64; 4] = [78.0, 44.0, 190.0, 50.0];
/// Colours that people with any colour vision can tell apart (Okabe and Ito 2008), each with its dashes.
const LOOKS: [(&str, &str); 6] = [
    ("#0072b2", ""),
    ("#d55e00", "7 3"),
    ("#009e73", "2 3"),
    ("#cc79a7", "9 3 2 3"),
    ("#56b4e9", "4 2"),
    ("#000000", "1 2"),
];

/// A curve and its name.
#[derive(Clone, Debug)]
pub struct Curve {
    pub name: String,
    /// Points in ascending order of the first number.
    pub points: Vec<[f64; 2]>,
}

/// Curves over common axes.
#[derive(Clone, Debug)]
pub struct Plot {
    pub title: String,
    pub across: &'static str,
    pub up: &'static str,
    /// True for logarithmic axes, on which points that are not above 0 are left out.
    pub is_logarithmic: bool,
    pub curves: Vec<Curve>,
}

/// An axis from `least` to `most`, drawn from `from` to `to`.
struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
    is_logarithmic: bool,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64> + Clone, [from, to]: [f64; 2], is_logarithmic: bool) -> Self {
        let most = values.clone().fold(f64::MIN_POSITIVE, f64::max);
        let (least, most) = if is_logarithmic {
            let least = values.fold(most, f64::min);
            // Whole powers of ten, at least one of them apart.
            let (low, high) = (least.log10().floor(), most.log10().ceil());
            (10_f64.powf(low), 10_f64.powf(high.max(low + 1.0)))
        } else {
            (0.0, ticks_to(most))
        };
        Self {
            least,
            most,
            from,
            to,
            is_logarithmic,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value / self.least).ln() / (self.most / self.least).ln()
        } else {
            (value - self.least) / (self.most - self.least)
        };
        self.from + share * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            let powers = (self.most / self.least).log10().round() as i32;
            (0..=powers)
                .map(|power| self.least * 10_f64.powi(power))
                .collect()
        } else {
            (0..=4).map(|part| self.most * f64::from(part) / 4.0).collect()
        }
    }
}

/// The least number that is not below `most` and whose quarters are short to write.
fn ticks_to(most: f64) -> f64 {
    let power = 10_f64.powf(most.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0];
    let found = steps.into_iter().find(|step| step * power >= most);
    found.unwrap_or(10.0) * power
}

/// A number as people write it at an axis: `20 k`, `1.5 M`.
fn number(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        large if large >= 1e6 => (value / 1e6, " M"),
        large if large >= 1e3 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let text = format!("{scaled:.2}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Replaces the characters that XML gives a meaning.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

impl Plot {
    /// Draws the picture.
    pub fn svg(&self) -> String {
        let is_drawn = |point: &&[f64; 2]| !self.is_logarithmic || (point[0] > 0.0 && point[1] > 0.0);
        let points = || {
            self.curves
                .iter()
                .flat_map(|curve| &curve.points)
                .filter(is_drawn)
        };
        let [left, top, right, bottom] = AROUND;
        let (end, floor) = (WIDTH - right, HEIGHT - bottom);
        let across = Axis::of(points().map(|point| point[0]), [left, end], self.is_logarithmic);
        let up = Axis::of(points().map(|point| point[1]), [floor, top], self.is_logarithmic);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\" \
             role=\"img\">\n<title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
             <text x=\"{left}\" y=\"24\" font-size=\"15\">{title}</text>\n",
            title = escaped(&self.title)
        );
        // Writing to a string cannot fail.
        for tick in across.ticks() {
            let x = across.place(tick);
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {top}V{floor}\" stroke=\"#dddddd\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                floor + 18.0,
                number(tick)
            );
        }
        for tick in up.ticks() {
            let y = up.place(tick);
            let _ = writeln!(
                svg,
                "<path d=\"M{left} {y:.1}H{end}\" stroke=\"#dddddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 8.0,
                y + 4.0,
                number(tick)
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(18 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(left, end),
            HEIGHT - 10.0,
            escaped(self.across),
            f64::midpoint(top, floor),
            escaped(self.up)
        );
        for (index, curve) in self.curves.iter().enumerate() {
            let (colour, dashes) = LOOKS[index % LOOKS.len()];
            let line: Vec<String> = curve
                .points
                .iter()
                .filter(is_drawn)
                .map(|&[x, y]| format!("{:.1},{:.1}", across.place(x), up.place(y)))
                .collect();
            let y = top + 10.0 + 22.0 * index as f64;
            let look =
                format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"");
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" {look}/>\n<path d=\"M{:.1} {:.1}h26\" {look}/><text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
                line.join(" "),
                end + 10.0,
                y - 4.0,
                end + 42.0,
                escaped(&curve.name)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}
