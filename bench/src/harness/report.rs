//! Prints the figures of a benchmark: a table for people, or one JSON object with `--json`.

use serde::Serialize;

/// Prints `report` as one line of JSON, or as the text that `text` makes of it.
pub fn print<T: Serialize>(report: &T, json: bool, text: impl FnOnce(&T) -> String) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string(report)?);
    } else {
        print!("{}", text(report));
    }
    Ok(())
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
