//! [`Printer`]: writes what is shown, in one of the forms of the screen.

use std::{
    io::{self, Write},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Losses, Shown, What, figures, rows, text};
use crate::{
    event::{self, Event},
    watch::Summary,
};

/// Form of the output.
pub enum Form {
    /// A table at the lower end of a terminal, with the lines of events above it.
    Table(Table),
    /// Lines of text.
    Lines,
    /// Lines of JSON.
    Json,
}

impl Form {
    /// Returns an empty table on standard output.
    pub fn table() -> Self {
        Self::Table(Table {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()),
            rows: Vec::new(),
        })
    }
}

/// Writes events and figures.
pub struct Printer {
    form: Form,
    out: Box<dyn Write + Send>,
    losses: Arc<Losses>,
}

impl Printer {
    /// Makes a printer to `out`. A table is drawn on standard output.
    pub fn new(form: Form, out: Box<dyn Write + Send>, losses: Arc<Losses>) -> Self {
        Self { form, out, losses }
    }

    /// Writes an event or figures. What cannot be written is counted as lost.
    pub fn show(&mut self, Shown(after, what): Shown) {
        if let Err(error) = self.write(after, what) {
            if self.losses.count.load(Ordering::SeqCst) == 0 {
                // There is no other place for this line, so an error is ignored.
                let _ = writeln!(
                    io::stderr(),
                    "minuet: cannot write to standard output: {error}; the run continues without it"
                );
            }
            self.losses.add(&error.to_string());
        }
    }

    fn write(&mut self, after: Duration, what: What) -> io::Result<()> {
        let lost = self.losses.count.load(Ordering::SeqCst);
        if lost > 0 {
            let text = format!("{lost} lines of output are lost, because they could not be written");
            self.event(after, &Event::Warning { text })?;
            self.losses.count.fetch_sub(lost, Ordering::SeqCst);
        }
        match what {
            What::Event(event) => self.event(after, &event),
            What::Figures(summary) => self.figures(after, summary),
            What::Last(event) => {
                if let Form::Table(table) = &mut self.form {
                    table.rows.drain(..).for_each(|row| row.abandon());
                }
                self.event(after, &event)
            }
        }
    }

    fn event(&mut self, after: Duration, event: &Event) -> io::Result<()> {
        if let Form::Json = self.form {
            return self.line(&event::entry(event, Vec::new())?.to_string());
        }
        let lines = text::lines(event).into_iter();
        lines
            .map(|line| format!("{} {line}", figures::clock(after)))
            .try_for_each(|line| self.line(&service::plain(&line)))
    }

    fn figures(&mut self, after: Duration, summary: Box<Summary>) -> io::Result<()> {
        match &mut self.form {
            Form::Table(table) => {
                table.show(&rows::rows(&summary));
                Ok(())
            }
            Form::Lines => self.line(&format!("{} {}", figures::clock(after), rows::line(&summary))),
            Form::Json => self.event(after, &Event::Summary(summary)),
        }
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        if let Form::Table(table) = &self.form {
            return table.all.println(line);
        }
        self.out.write_all(format!("{line}\n").as_bytes())?;
        self.out.flush()
    }
}

/// A table at the lower end of a terminal.
pub struct Table {
    all: MultiProgress,
    rows: Vec<ProgressBar>,
}

impl Table {
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
}
