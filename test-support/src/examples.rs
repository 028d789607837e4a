//! Commands that the README and the book show.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Programs whose commands are examples.
const PROGRAM: &str = "minuet ";

/// A command of `minuet` in a page.
#[derive(Debug)]
pub struct Example {
    /// Page, relative to the repository.
    pub page: String,
    /// Words as a shell would pass them, from `minuet` on, up to a pipe or the end of the command.
    pub words: Vec<String>,
}

/// Returns the commands of `minuet` in README.md and in the pages of the book: lines in blocks of code (the text of every
/// `--help` is one), and code within a sentence.
pub fn examples() -> Vec<Example> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a folder of the workspace");
    let mut pages = vec![root.join("README.md")];
    add_pages(&root.join("docs"), &mut pages);
    let mut examples = Vec::new();
    for path in pages {
        let text = fs::read_to_string(&path).expect("a page");
        let page = path
            .strip_prefix(root)
            .expect("a page of the repository")
            .display()
            .to_string();
        let blocks = text.split("```").enumerate();
        for (number, part) in blocks {
            let is_code = number % 2 == 1;
            let commands: Vec<&str> = match is_code {
                true => part.lines().filter_map(command).collect(),
                false => part
                    .split('`')
                    .skip(1)
                    .step_by(2)
                    .filter(|code| code.starts_with(PROGRAM))
                    .collect(),
            };
            examples.extend(commands.into_iter().map(|command| Example {
                page: page.clone(),
                words: words(command),
            }));
        }
    }
    examples
}

fn add_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the book") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// Returns the command of `minuet` in a line of a block of code, if there is one. It begins the line, or follows a pipe.
fn command(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("Example: ").unwrap_or(line);
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let line = line
        .rsplit_once("| ")
        .filter(|(_, rest)| rest.starts_with(PROGRAM))
        .map_or(line, |(_, rest)| rest);
    let line = line
        .strip_prefix('$')
        .or_else(|| line.strip_prefix("target/release/"))
        .unwrap_or(line);
    line.starts_with(PROGRAM).then_some(line)
}

/// Splits a command as a shell does, up to a pipe, a redirection, a comment, the end of the line or another command. Spaces in a row end the command too:
/// a remark follows.
fn words(command: &str) -> Vec<String> {
    let command = command.split("   ").next().unwrap_or_default();
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match (letter, quote) {
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (_, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(letter),
            ('|' | '>' | '<' | ';' | '&' | '\\', None) => break,
            ('#', None) if word.is_none() => break,
            _ if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_and_split_as_a_shell_does() {
        let split = |line: &str| command(line).map(words);
        for (line, expected) in [
            (
                "$ minuet query runs/x 'e2 e4' --json > out",
                "minuet query runs/x e2 e4 --json",
            ),
            ("  printf 'go\\n' | minuet uci   (a remark)", "minuet uci"),
            ("Example: minuet bench games # all", "minuet bench games"),
            ("$ $minuet up --for \"4m\" && minuet doctor", "minuet up --for 4m"),
        ] {
            assert_eq!(split(line).unwrap().join(" "), expected, "{line}");
        }
        assert_eq!(split("$ make up"), None);
        assert!(examples().len() > 100);
    }
}
