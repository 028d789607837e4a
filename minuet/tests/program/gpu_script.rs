//! `scripts/gpu/measure.sh --dry-run`: everything that the script does on a machine with a GPU, on the CPU with tiny networks.

use std::{fs, path::Path, process::Command};

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
    let output = Command::new(root.join("scripts/gpu/measure.sh"))
        .arg("--dry-run")
        .env("MINUET_BINARIES", binaries)
        .env("MINUET_RESULTS", &results)
        .env("TMPDIR", folder.path())
        .env_remove("MINUET_CONFIG")
        .env_remove("ORT_DYLIB_PATH")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let tables = fs::read_to_string(results.join("tables.md")).unwrap_or_default();
    assert!(output.status.success(), "{said}\n{tables}");
    // Two batches and half precision, two networks, one load.
    let rows = |title: &str| {
        let section = tables.split("\n## ").find(|section| section.starts_with(title));
        let section = section.unwrap_or_else(|| panic!("no {title} in {tables}"));
        section.lines().filter(|line| line.starts_with("| ")).count() - 1
    };
    assert_eq!(rows("Evaluations a second"), 6, "{tables}");
    assert_eq!(rows("Latency in ms"), 4, "{tables}");
    assert_eq!(rows("Training samples a second"), 2, "{tables}");
    assert_eq!(rows("Self-play"), 2, "{tables}");
    assert_eq!(rows("make up"), 1, "{tables}");
    assert!(tables.contains("## Failed\n\nNothing."), "{tables}");
    // A plan can be made of the figures.
    let plan = Command::new(env!("CARGO_BIN_EXE_minuet"))
        .args(["plan", "--game", "connect-four", "--network", "2x16", "--json"])
        .args(["--positions-per-day", "1000000", "--measured"])
        .arg(results.join("figures.jsonl"))
        .output()
        .unwrap();
    assert!(plan.status.success(), "{plan:?}");
    let plan: serde_json::Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["unknown"], serde_json::json!([]), "{plan}");
    // A script that knows no argument says what it takes.
    let wrong = Command::new(root.join("scripts/gpu/measure.sh"))
        .arg("--dry")
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--pack DIR"));
}
