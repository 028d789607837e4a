//! Prints the figures of a benchmark, as text for people or as one JSON object with `--json`, and their medians.

use serde::Serialize;
use toml::{Table, Value};

/// Number of results next to each other in a table.
const COLUMNS: usize = 6;

/// Prints `report` as one line of JSON, or as text with the same names of figures.
///
/// # Errors
/// The report has a map whose keys are not strings, or a number that neither form can hold.
pub fn print(report: &impl Serialize, json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string(report)?);
    } else {
        print!("{}", text(Table::try_from(report)?));
    }
    Ok(())
}

/// Returns a line for each figure, then a table for each list of results. A result has a column, a figure a line.
fn text(report: Table) -> String {
    let (mut figures, mut lists) = (Table::new(), String::new());
    for (name, value) in report {
        match value {
            Value::Array(results) if results.iter().any(Value::is_table) => {
                let results: Vec<Table> = results.into_iter().map(flat).collect();
                for columns in results.chunks(COLUMNS) {
                    lists += &format!("\n{name}\n{}", table(columns));
                }
            }
            value => add(&mut figures, name, value),
        }
    }
    table(&[figures]) + &lists
}

fn flat(result: Value) -> Table {
    let mut figures = Table::new();
    add(&mut figures, String::new(), result);
    figures
}

/// Adds a figure as text. The figures of an inner table or list of tables are named after it, e.g. `latency.p50_ms`.
fn add(figures: &mut Table, name: String, value: Value) {
    let inner = |key: String| {
        if name.is_empty() {
            key
        } else {
            format!("{name}.{key}")
        }
    };
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                add(figures, inner(key), value);
            }
        }
        Value::Array(list) if list.iter().any(Value::is_table) => {
            for (number, value) in list.into_iter().enumerate() {
                add(figures, inner(number.to_string()), value);
            }
        }
        value => {
            figures.insert(name, Value::String(cell(&value)));
        }
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) if number.abs() >= 1000.0 => format!("{number:.0}"),
        Value::Float(number) => format!("{number:.3}"),
        Value::Array(list) => list.iter().map(cell).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Returns the lines of a table with a column for each of `results`, whose values are texts. A value that a result lacks is `-`.
fn table(results: &[Table]) -> String {
    let mut names: Vec<&String> = Vec::new();
    for name in results.iter().flat_map(Table::keys) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let value = |result: &Table, name: &str| {
        let text = result.get(name).and_then(Value::as_str);
        text.unwrap_or("-").to_owned()
    };
    let widest_name = width(names.iter().map(|name| name.as_str()));
    let widths: Vec<usize> = results
        .iter()
        .map(|result| width(result.values().filter_map(Value::as_str)))
        .collect();
    let mut lines = String::new();
    for name in names {
        lines += &format!("{name:widest_name$}");
        for (result, width) in results.iter().zip(&widths) {
            lines += &format!("  {:>width$}", value(result, name));
        }
        lines.push('\n');
    }
    lines
}

fn width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

/// Returns the median of `values`; 0 if there are none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

/// Returns the median of a figure over all rounds; 0 if there are none.
pub fn median_of<T>(rounds: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    median(&rounds.iter().map(figure).collect::<Vec<_>>())
}

/// Returns the median of a figure's ratio to the same figure of a baseline that was measured in turn with it.
pub fn median_ratio<T>(rounds: &[T], baseline: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    let pairs = rounds.iter().zip(baseline);
    let ratios: Vec<f64> = pairs.map(|(one, base)| figure(one) / figure(base)).collect();
    median(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Report {
        bench: &'static str,
        results: Vec<Figures>,
        is_pinned: bool,
    }

    #[derive(Serialize)]
    struct Figures {
        network: &'static str,
        latency: Latency,
        busy: Option<f64>,
        discs: [u32; 2],
    }

    #[derive(Serialize)]
    struct Latency {
        p50_ms: f64,
    }

    #[test]
    fn the_text_has_a_line_for_each_figure_and_a_column_for_each_result() {
        let figures = |network, p50_ms, busy| Figures {
            network,
            latency: Latency { p50_ms },
            busy,
            discs: [10, 15],
        };
        let report = Report {
            bench: "inference",
            results: vec![
                figures("2x32", 1.5, None),
                figures("20x256", 12_345.6, Some(0.934)),
            ],
            is_pinned: true,
        };
        let expected = "\
bench      inference
is_pinned       true

results
network           2x32  20x256
latency.p50_ms   1.500   12346
discs           10, 15  10, 15
busy                 -   0.934
";
        assert_eq!(text(Table::try_from(&report).unwrap()), expected);
    }
}
