//! `minuet bench dense` as a process, with both servers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::process::Command;

use serde_json::Value;

/// Requests have the bytes that the rows and the planes of 9×9 Go take. The program itself compares the values of the forms.
#[test]
fn every_form_is_served_and_planes_are_larger_than_rows() {
    let words = "dense --games go --network 1x8 --positions 1,16 --streams 2 --rounds 1 --seconds 0.3 --json";
    let mut command = Command::new(env!("CARGO_BIN_EXE_minuet-bench"));
    let output = command.args(words.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figures = report["figures"].as_array().unwrap();
    let forms = ["rows", "rows-logits", "planes"];
    let found: Vec<(u64, &str)> = figures
        .iter()
        .map(|one| (one["positions"].as_u64().unwrap(), one["form"].as_str().unwrap()))
        .collect();
    let expected = [1, 16].map(|count| forms.map(|form| (count, form)));
    assert_eq!(found, expected.concat());
    let number = |one: &Value, name: &str| one[name].as_f64().unwrap_or_else(|| panic!("no {name} in {one}"));
    for one in figures {
        for name in ["loopback", "link", "server_us", "client_us", "reply_bytes"] {
            assert!(number(one, name) > 0.0, "{name}: {one}");
        }
    }
    let layout = games::registry::find("go").unwrap();
    let layout = layout.variant(&layout.rules(), None).unwrap().layout();
    let planes = 4.0 * layout.stack().unwrap().tensor_len() as f64;
    let row = 4.0 * layout.row_len().unwrap() as f64;
    let bytes = |at: usize| number(&figures[at], "request_bytes");
    // Rows are four bytes for each index as tensors, and fewer as packed numbers, with the legal actions.
    assert!(bytes(5) > planes && bytes(5) < 1.1 * planes + 100.0, "{report}");
    assert!(bytes(4) > row && bytes(4) < 1.1 * row + 100.0, "{report}");
    assert!(bytes(3) < bytes(5), "{report}");
}
