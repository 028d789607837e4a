//! [`Table`]: rows on a terminal that are updated in place, below the lines of events.

use std::io;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A table at the lower end of a terminal.
pub struct Table {
    all: MultiProgress,
    rows: Vec<ProgressBar>,
}

impl Table {
    /// Creates an empty table on standard output.
    pub fn new() -> Self {
        Self {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()),
            rows: Vec::new(),
        }
    }

    /// Prints a line above the table.
    ///
    /// # Errors
    /// The output is closed.
    pub fn print(&self, line: &str) -> io::Result<()> {
        self.all.println(line)
    }

    /// Replaces the rows.
    pub fn show(&mut self, rows: &[String]) {
        while self.rows.len() > rows.len() {
            if let Some(row) = self.rows.pop() {
                row.finish_and_clear();
                self.all.remove(&row);
            }
        }
        while self.rows.len() < rows.len() {
            // The message alone: indicatif cuts it to the terminal's width.
            let style =
                ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            self.rows
                .push(self.all.add(ProgressBar::new(0).with_style(style)));
        }
        for (row, text) in self.rows.iter().zip(rows) {
            row.set_message(text.clone());
        }
    }

    /// Stops updating; the rows stay on the terminal.
    pub fn close(&mut self) {
        self.rows.drain(..).for_each(|row| row.abandon());
    }
}
