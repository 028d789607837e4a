//! The page of the four source documents: every statement has a number, and its file and its test exist.

use std::fs;

use crate::pages::root;

/// Letter of each document, and the number of its statements.
const DOCUMENTS: [(char, usize); 4] = [('P', 38), ('G', 31), ('D', 38), ('U', 35)];

#[test]
fn every_statement_of_the_source_documents_has_code_and_a_test() {
    let page = fs::read_to_string(root().join("docs/reference/sources.md")).unwrap();
    let lines: Vec<[&str; 5]> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| |"))
        .map(cells)
        .collect();
    let numbers: Vec<&str> = lines.iter().map(|[number, ..]| *number).collect();
    let expected =
        DOCUMENTS.map(|(letter, count)| (1..=count).map(move |number| format!("{letter}{number}")));
    assert_eq!(numbers, expected.into_iter().flatten().collect::<Vec<_>>());
    for [number, statement, holds, code, test] in lines {
        assert!(statement.len() > 20 && !holds.is_empty(), "{number}");
        let code = root().join(code.trim_matches('`'));
        assert!(code.is_file(), "{number}: {} is not a file", code.display());
        let (file, name) = test.trim_matches('`').split_once("::").unwrap();
        let text =
            fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{number}: {file}: {error}"));
        let keyword = if file.ends_with(".py") { "def" } else { "fn" };
        assert!(
            text.contains(&format!("{keyword} {name}(")),
            "{number}: {file} has no test {name}"
        );
    }
}

fn cells(line: &str) -> [&str; 5] {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    cells
        .try_into()
        .unwrap_or_else(|_| panic!("{line} has no five cells"))
}
