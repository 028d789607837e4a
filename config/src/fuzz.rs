//! Random text for the readers of settings.

use std::str::from_utf8;

use test_support::fuzz;

use crate::{Override, RunConfig, parse, template};

#[test]
fn fuzz_run_toml() {
    let whole = template(&RunConfig::default());
    let bare: String = whole
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    let small = b"[search]\nvisits = 100\n[game]\nname = \"chess\"\n[learner]\nbatch_size = 64\n";
    fuzz("run.toml", &[small, bare.as_bytes()], |bytes| {
        from_utf8(bytes).is_ok_and(|text| parse(text).is_ok())
    });
}

#[test]
fn fuzz_overrides() {
    fuzz(
        "override",
        &[b"search.visits=100", b"game.name=\"chess\""],
        |bytes| from_utf8(bytes).is_ok_and(|text| text.parse::<Override>().is_ok()),
    );
}
