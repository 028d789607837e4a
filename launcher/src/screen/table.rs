//! The table on a terminal, kept up to date in place below the lines that events leave.

use std::io;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The table.
pub struct Table {
    all: MultiProgress,
    rows: Vec<ProgressBar>,
}

impl Table {
    /// An empty table on standard output.
    pub fn new() -> Self {
        Self {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()),
            rows: Vec::new(),
        }
    }

    /// Prints a line above the table.
    ///
    /// # Errors
    /// If nobody reads any more.
    pub fn print(&self, line: &str) -> io::Result<()> {
        self.all.println(line)
    }

    /// Shows these rows.
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

    /// Leaves the rows as they are; nothing is kept up to date any more.
    pub fn close(&mut self) {
        self.rows.drain(..).for_each(|row| row.abandon());
    }
}
