//! How a benchmark says what it found: a table for people, or one JSON object with `--json`.

use std::time::Instant;

use serde::Serialize;

/// Prints `report` as one line of JSON, or its `text` for people.
pub fn print<T: Serialize>(report: &T, json: bool, text: impl FnOnce(&T) -> String) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string(report)?);
    } else {
        print!("{}", text(report));
    }
    Ok(())
}

/// The median of some measurements; 0 for none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

/// Runs `work`, which says how much it did, `rounds` times, and gives the rate of each round per second.
pub fn rates(rounds: usize, mut work: impl FnMut() -> u64) -> Vec<f64> {
    (0..rounds)
        .map(|_| {
            let began = Instant::now();
            let amount = work();
            amount as f64 / began.elapsed().as_secs_f64()
        })
        .collect()
}
