//! [`Screen`]: shows the run as a table on a terminal, as lines of text, or as lines of JSON.

pub mod figures;
mod rows;
pub(crate) mod text;

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

use crate::{
    event::{self, Event},
    watch::Summary,
};

/// Time between two lines of figures.
const INTERVAL: Duration = Duration::from_secs(10);

/// Shows a run on standard output.
pub struct Screen {
    form: Form,
    began: Instant,
    /// Time at which figures were printed last.
    printed: Instant,
}

enum Form {
    Table(Table),
    Lines,
    Json,
}

impl Screen {
    /// Chooses the form: lines of JSON if `json`, else a table if the output is a terminal, else lines of text.
    pub fn new(json: bool) -> Self {
        let form = match json {
            true => Form::Json,
            false if io::stdout().is_terminal() => Form::Table(Table::new()),
            false => Form::Lines,
        };
        let now = Instant::now();
        Self {
            form,
            began: now,
            printed: now,
        }
    }

    /// Shows an event.
    ///
    /// # Errors
    /// The output is closed.
    pub fn event(&self, event: &Event) -> io::Result<()> {
        match &self.form {
            Form::Json => print(&event::entry(event, Vec::new())?.to_string()),
            Form::Lines => text::lines(event)
                .iter()
                .try_for_each(|line| print(&format!("{} {line}", self.clock()))),
            Form::Table(table) => text::lines(event)
                .iter()
                .try_for_each(|line| table.print(&format!("{} {line}", self.clock()))),
        }
    }

    /// Shows the figures. Lines are printed every ten seconds, a table is always updated.
    ///
    /// # Errors
    /// The output is closed.
    pub fn summary(&mut self, summary: Summary) -> io::Result<()> {
        if let Form::Table(table) = &mut self.form {
            table.show(&rows::rows(&summary));
            return Ok(());
        }
        if self.printed.elapsed() < INTERVAL {
            return Ok(());
        }
        self.printed = Instant::now();
        match self.form {
            Form::Lines => print(&format!("{} {}", self.clock(), rows::line(&summary))),
            _ => self.event(&Event::Summary(Box::new(summary))),
        }
    }

    /// Stops updating the table; its last rows stay on the terminal.
    pub fn close(&mut self) {
        if let Form::Table(table) = &mut self.form {
            table.close();
        }
    }

    fn clock(&self) -> String {
        figures::clock(self.began.elapsed())
    }
}

fn print(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// A table at the lower end of a terminal.
struct Table {
    all: MultiProgress,
    rows: Vec<ProgressBar>,
}

impl Table {
    /// Creates an empty table on standard output.
    fn new() -> Self {
        Self {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()),
            rows: Vec::new(),
        }
    }

    /// Prints a line above the table.
    fn print(&self, line: &str) -> io::Result<()> {
        self.all.println(line)
    }

    /// Replaces the rows.
    fn show(&mut self, rows: &[String]) {
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
    fn close(&mut self) {
        self.rows.drain(..).for_each(|row| row.abandon());
    }
}
