//! Checks the pages of the book: generated references are current, links and paths exist.
//!
//! `make pages` writes the generated pages anew.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use games::registry::NAMES;

use crate::support::program::{minuet, printed};

/// Folder of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Every Markdown page of the book, relative to `docs/`.
fn book_pages() -> BTreeSet<PathBuf> {
    fn visit(folder: &Path, pages: &mut BTreeSet<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, pages);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.insert(path);
            }
        }
    }
    let docs = root().join("docs");
    let mut pages = BTreeSet::new();
    visit(&docs, &mut pages);
    pages
        .into_iter()
        .map(|page| page.strip_prefix(&docs).unwrap().to_owned())
        .collect()
}

/// Targets of the Markdown links in `text`, outside code blocks.
fn links(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            if let Some(end) = rest.find(')') {
                targets.push(rest[..end].to_owned());
            }
        }
    }
    targets
}

/// The commands that a help text lists, without `help` itself.
fn subcommands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Appends the help of a command and of all commands below it.
fn write_help(words: &[&str], page: &mut String) {
    let help = printed(minuet("").args(words).arg("--help"));
    let title = [&["minuet"], words].concat().join(" ");
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("\n## `{title}`\n\n```text\n{}\n```\n", help.join("\n")));
    for name in subcommands(&help.join("\n")) {
        write_help(&[words, &[&name]].concat(), page);
    }
}

/// Compares a generated page with the file, or writes it where `MINUET_WRITE_PAGES` is set.
fn expect_page(name: &str, expected: &str) {
    let path = root().join("docs/reference").join(name);
    if std::env::var_os("MINUET_WRITE_PAGES").is_some() {
        fs::write(path, expected).unwrap();
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/reference/{name} is not what the program says; `make pages` writes it anew"
    );
}

#[test]
fn configuration_reference_is_the_template() {
    let mut page = String::from(
        "# run.toml\n\nEvery key, with its value in a new run of Paco Ŝako. `minuet config` prints this file; `--game NAME` prints that \
         of another game.\n\n```toml\n",
    );
    page.push_str(&printed(&mut minuet("config")));
    page.push_str("```\n\n## Rules of the other games\n");
    for game in NAMES.iter().filter(|game| **game != "paco-sako") {
        let text = printed(minuet("config --game").arg(game));
        let rules = text.split("[game.rules]\n").nth(1).unwrap_or_default();
        let rules: Vec<&str> = rules.lines().take_while(|line| !line.is_empty()).collect();
        if !rules.is_empty() {
            let rules = rules.join("\n");
            page.push_str(&format!("\n`[game.rules]` of {game}:\n\n```toml\n{rules}\n```\n"));
        }
    }
    expect_page("run-toml.md", &page);
}

#[test]
fn command_reference_is_the_help() {
    let mut page = String::from("# Commands\n\nThe text that each command prints for `--help`.\n");
    write_help(&[], &mut page);
    expect_page("commands.md", &page);
}

#[test]
fn every_command_or_its_group_shows_an_example() {
    fn check(words: &[&str], group_has_example: bool, missing: &mut Vec<String>) {
        let help = printed(minuet("").args(words).arg("--help"));
        let below = subcommands(&help);
        let has_example = group_has_example || help.contains("Example");
        if below.is_empty() && !has_example {
            missing.push(words.join(" "));
        }
        for name in below {
            check(&[words, &[&name]].concat(), has_example, missing);
        }
    }
    let mut missing = Vec::new();
    check(&[], false, &mut missing);
    assert!(missing.is_empty(), "no example in the help of: {missing:?}");
}

#[test]
fn summary_lists_every_page_once() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: Vec<PathBuf> = links(&summary).into_iter().map(PathBuf::from).collect();
    let once: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    assert_eq!(once.len(), listed.len(), "SUMMARY.md lists a page twice");
    let mut pages = book_pages();
    pages.remove(Path::new("SUMMARY.md"));
    assert_eq!(once, pages);
}

#[test]
fn links_between_pages_lead_to_files() {
    let book = book_pages();
    let mut pages: Vec<PathBuf> = book.iter().map(|page| root().join("docs").join(page)).collect();
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    pages.extend(["CHANGELOG.md", "deploy/README.md"].map(|name| root().join(name)));
    let mut dead = Vec::new();
    for page in pages {
        for target in links(&fs::read_to_string(&page).unwrap()) {
            let path = target.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            if !page.parent().unwrap().join(path).exists() {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links: {dead:#?}");
}

#[test]
fn paths_in_the_architecture_page_exist() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut found = 0;
    let mut dead = Vec::new();
    for word in page.split('`').skip(1).step_by(2) {
        let is_other = word.starts_with('/') || word.contains([' ', '<', '*', ':', '=']);
        if word.contains('/') && !is_other {
            found += 1;
            if !root().join(word).exists() {
                dead.push(word);
            }
        }
    }
    assert!(found > 40, "only {found} paths were found in ARCHITECTURE.md");
    assert!(dead.is_empty(), "paths that do not exist: {dead:#?}");
}

#[test]
fn readme_is_short() {
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    let lines = page.lines().count();
    assert!(lines <= 120, "README.md has {lines} lines");
}
