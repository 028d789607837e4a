//! The table "sentence, code, test" of the book's page of the game: its files and tests exist.

#![expect(clippy::disallowed_methods, reason = "the test reads files of the project")]

use std::{fs, path::Path};

#[test]
fn every_sentence_of_the_specification_has_code_and_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("docs/guide/generator-game.md")).unwrap();
    let table = page.split("\n| sentence | code | test |\n").nth(1).unwrap();
    let lines = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let mut sentences = 0;
    for line in lines {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [sentence, code, test] = cells[..] else {
            panic!("{line} has {} cells", cells.len());
        };
        assert!(sentence.len() > 20, "{line}");
        let code = root.join(code.trim_matches('`'));
        assert!(code.is_file(), "{} is not a file", code.display());
        let (file, name) = test.trim_matches('`').split_once("::").unwrap();
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(&format!("fn {name}(")), "{file} has no test {name}");
        sentences += 1;
    }
    assert!(sentences >= 30, "{sentences} sentences");
}
