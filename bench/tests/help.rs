//! The binary `minuet-bench` runs and lists its benchmarks.

use std::process::Command;

#[test]
fn help_lists_every_benchmark() {
    let output = Command::new(env!("CARGO_BIN_EXE_minuet-bench"))
        .arg("--help")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let help = String::from_utf8(output.stdout).unwrap();
    let names = "accuracy dense games generator inference playouts replay search selfplay tasks training";
    for name in names.split(' ') {
        let line = format!("\n  {name} ");
        assert!(help.contains(&line), "{name} is missing from:\n{help}");
    }
}
