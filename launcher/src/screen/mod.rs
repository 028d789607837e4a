//! [`Screen`]: shows the run as a table on a terminal, as lines of text, or as lines of JSON.

pub mod figures;
mod rows;
mod table;
pub(crate) mod text;

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    event::{self, Event},
    watch::Summary,
};
use table::Table;

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
            Form::Json => print(&event::line(event)?),
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
            _ => print(&event::line(&Event::Summary(Box::new(summary)))?),
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
