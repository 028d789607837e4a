//! `scripts/gpu/measure.sh --dry-run`: everything that the script does on a machine with a GPU, on the CPU with tiny networks.

use std::{fs, path::Path, process::Command};

use crate::support::program::{done, fails, minuet, printed_json};

#[test]
fn a_dry_run_packs_unpacks_measures_and_prints_every_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_minuet")).parent().unwrap();
    let Ok(binaries) = binaries.strip_prefix(root) else {
        return test_support::skip(
            "the GPU script",
            "the programs are not built inside the repository",
        );
    };
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let mut measure = Command::new(root.join("scripts/gpu/measure.sh"));
    measure
        .arg("--dry-run")
        .env("MINUET_BINARIES", binaries)
        .env("MINUET_RESULTS", &results)
        .env("TMPDIR", folder.path())
        .env_remove("MINUET_CONFIG")
        .env_remove("ORT_DYLIB_PATH");
    let measured = done(&mut measure);
    let tables = fs::read_to_string(results.join("tables.md")).unwrap_or_default();
    assert_eq!(measured.code, Some(0), "{}\n{tables}", measured.error);
    // Two batches and half precision, two networks, one load.
    let rows = |title: &str| {
        let section = tables.split("\n## ").find(|section| section.starts_with(title));
        let section = section.unwrap_or_else(|| panic!("no {title} in {tables}"));
        section.lines().filter(|line| line.starts_with("| ")).count() - 1
    };
    for (title, count) in [
        ("Evaluations a second", 6),
        ("Latency in ms", 4),
        ("Training samples a second", 2),
        ("Self-play", 2),
        ("make up", 1),
    ] {
        assert_eq!(rows(title), count, "{title}: {tables}");
    }
    assert!(tables.contains("## Failed\n\nNothing."), "{tables}");
    // A plan can be made of the figures.
    let words = "plan --game connect-four --network 2x16 --json --positions-per-day 1000000 --measured";
    let plan = printed_json(minuet(words).arg(results.join("figures.jsonl")));
    assert_eq!(plan["unknown"], serde_json::json!([]), "{plan}");
    // A script that knows no argument says what it takes.
    let mut wrong = Command::new(root.join("scripts/gpu/measure.sh"));
    fails(wrong.arg("--dry"), 2, "--pack DIR");
}
