//! The search for a solution as it runs, on a terminal.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use games::{Notation as _, generator::GeneratorGame, terminal::Style};
use search::Search;

/// Time between two pictures.
const INTERVAL: Duration = Duration::from_millis(100);
/// Most lines of a picture, so that it fits a small terminal: the cursor cannot go up beyond its first line.
const LINES: usize = 20;
/// Switches the wrapping of long lines off and on, because a wrapped line is two.
const NO_WRAP: &str = "\u{1b}[?7l";
const WRAP: &str = "\u{1b}[?7h";

/// Shows one search after the other in the last lines of a terminal.
pub(super) struct Live {
    style: Style,
    shown: Option<Instant>,
    lines: usize,
}

impl Live {
    /// Returns a display on standard output. `None` if that is not a terminal.
    pub(super) fn new(style: Style) -> Option<Self> {
        io::stdout().is_terminal().then_some(Self {
            style,
            shown: None,
            lines: 0,
        })
    }

    /// Replaces the picture, unless the present one is new. A terminal that takes no more output ends nothing but the display.
    pub(super) fn show(&mut self, name: &str, search: &Search<GeneratorGame>) {
        if self.shown.is_some_and(|shown| shown.elapsed() < INTERVAL) {
            return;
        }
        self.clear();
        let picture = picture(name, search, self.style);
        self.lines = picture.lines().count();
        let _ = write!(io::stdout(), "{NO_WRAP}{picture}{WRAP}");
        let _ = io::stdout().flush();
        self.shown = Some(Instant::now());
    }

    /// Removes the picture.
    pub(super) fn clear(&mut self) {
        if self.lines > 0 {
            let _ = write!(io::stdout(), "\u{1b}[{}A\u{1b}[J", self.lines);
            let _ = io::stdout().flush();
        }
        self.lines = 0;
    }
}

/// Returns the state of a search as text: how far it is, its most visited line, targets and drawing, and the program so far.
fn picture(name: &str, search: &Search<GeneratorGame>, style: Style) -> String {
    let (state, settings) = (search.state(), search.settings());
    let line = search.principal_variation(None);
    let text = format!(
        "{name}: move {} of at most {}, {} of {} visits\nbest so far: {}\n{}",
        state.plies() + 1,
        state.rules().move_limit,
        search.visits_done(),
        settings.visits,
        state.write_turn(&line),
        state.draw(style)
    );
    text.lines().take(LINES).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use games::{Game, generator::Rules};
    use search::GameKey;

    use super::*;

    #[test]
    fn a_picture_says_how_far_the_search_is_and_what_is_drawn() {
        let start = GeneratorGame::start(&Rules::default(), Some(r#"{"target":[[1,1],[1,0]]}"#)).unwrap();
        let key = GameKey { run_seed: 1, game: 0 };
        let settings = arena::players::solver::settings(64);
        let search = Search::new(start, settings, key);
        let text = picture("train:0", &search, Style::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "train:0: move 1 of at most 64, 0 of 64 visits");
        assert!(lines[1].starts_with("best so far:"));
        assert!(
            lines[2].starts_with("target") && lines[2].ends_with("drawn"),
            "{text}"
        );
        assert!(lines.len() <= LINES && text.contains("Generator"), "{text}");
    }
}
