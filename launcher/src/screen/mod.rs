//! How the run is shown: a table that is kept up to date on a terminal, lines where there is none, JSON for programs.

mod figures;
mod rows;
mod table;
mod text;

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

/// How often the figures are printed where they cannot be kept up to date in place.
const EVERY: Duration = Duration::from_secs(10);

/// Where the run is shown.
pub struct Screen {
    form: Form,
    began: Instant,
    /// When the figures were printed last.
    printed: Instant,
}

enum Form {
    Table(Table),
    Lines,
    Json,
}

impl Screen {
    /// JSON lines if asked for, else a table on a terminal, else lines.
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
    /// If nobody reads any more.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
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

    /// Shows the figures, where it is time for them.
    ///
    /// # Errors
    /// If nobody reads any more.
    pub fn summary(&mut self, summary: Summary) -> io::Result<()> {
        if let Form::Table(table) = &mut self.form {
            table.show(&rows::rows(&summary));
            return Ok(());
        }
        if self.printed.elapsed() < EVERY {
            return Ok(());
        }
        self.printed = Instant::now();
        match self.form {
            Form::Lines => print(&format!("{} {}", self.clock(), rows::line(&summary))),
            _ => print(&event::line(&Event::Summary(Box::new(summary)))?),
        }
    }

    /// Nothing more is kept up to date.
    pub fn close(&mut self) {
        if let Form::Table(table) = &mut self.form {
            table.close();
        }
    }

    fn clock(&self) -> String {
        figures::clock(self.began.elapsed().as_secs_f64())
    }
}

fn print(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
