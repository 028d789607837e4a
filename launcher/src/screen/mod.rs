//! [`Screen`]: shows the run as a table on a terminal, as lines of text, or as lines of JSON.

pub mod figures;
mod printer;
mod rows;
pub(crate) mod text;

use std::{
    convert::Infallible,
    env,
    io::{self, IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{event::Event, watch::Summary};
use printer::{Form, Printer};

/// Time between two lines of figures.
const INTERVAL: Duration = Duration::from_secs(10);
/// Events and figures that may wait for the output. Later ones are lost.
const WAITING: usize = 256;
/// Time limit for the last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Shows a run on standard output. A thread of its own writes, so an output that blocks or fails neither delays nor ends the run:
/// what cannot be written is lost, and the number of lost lines is shown when the output works again.
pub struct Screen {
    /// `None` while this is dropped.
    shown: Option<SyncSender<Shown>>,
    /// Never receives anything; disconnected when the thread has ended.
    ended: Receiver<Infallible>,
    losses: Arc<Losses>,
    is_table: bool,
    began: Instant,
    /// Time at which figures were shown last, or of the start.
    printed: Instant,
}

/// An event or figures, and the time since the start.
struct Shown(Duration, What);

enum What {
    Event(Event),
    Figures(Box<Summary>),
    /// The last event.
    Last(Event),
}

/// Output that was lost.
#[derive(Default)]
struct Losses {
    /// Number of events and figures that were lost since the output last worked.
    count: AtomicU64,
    /// Reason of the first failure, until [`Screen::failure`] returns it.
    failure: Mutex<Option<String>>,
}

impl Screen {
    /// Chooses the form: lines of JSON if `json`, else a table if the output is a terminal that can move its cursor, else lines of text.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn new(json: bool) -> io::Result<Self> {
        let can_move = env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        let form = match json {
            true => Form::Json,
            false if can_move && io::stdout().is_terminal() => Form::table(),
            false => Form::Lines,
        };
        Self::on(form, Box::new(io::stdout()))
    }

    fn on(form: Form, out: Box<dyn Write + Send>) -> io::Result<Self> {
        let is_table = matches!(form, Form::Table(_));
        let (shown, to_show) = mpsc::sync_channel(WAITING);
        let (has_ended, ended) = mpsc::channel::<Infallible>();
        let losses = Arc::new(Losses::default());
        let mut printer = Printer::new(form, out, losses.clone());
        thread::Builder::new().name("screen".into()).spawn(move || {
            let _has_ended = has_ended;
            to_show.iter().for_each(|shown| printer.show(shown));
        })?;
        let now = Instant::now();
        Ok(Self {
            shown: Some(shown),
            ended,
            losses,
            is_table,
            began: now,
            printed: now,
        })
    }

    /// Shows an event.
    pub fn event(&self, event: &Event) {
        self.show(What::Event(event.clone()));
    }

    /// Shows the figures. Lines are printed every ten seconds, a table is always updated.
    pub fn summary(&mut self, summary: Summary) {
        if self.is_table || self.printed.elapsed() >= INTERVAL {
            self.printed = Instant::now();
            self.show(What::Figures(Box::new(summary)));
        }
    }

    fn show(&self, what: What) {
        let shown = Shown(self.began.elapsed(), what);
        if self
            .shown
            .as_ref()
            .is_none_or(|screen| screen.try_send(shown).is_err())
        {
            self.losses.add("it is blocked");
        }
    }

    /// Returns the reason why output was lost, once.
    pub fn failure(&self) -> Option<String> {
        self.losses.failure.lock().take()
    }

    /// Shows the last event. The rows of the table stay on the terminal.
    pub fn close(self, last: &Event) {
        self.show(What::Last(last.clone()));
    }
}

impl Drop for Screen {
    /// Waits until everything is written, but not long for an output that blocks.
    fn drop(&mut self) {
        self.shown = None;
        // Disconnected, or the time is up.
        let _ = self.ended.recv_timeout(LAST_LINES);
    }
}

impl Losses {
    fn add(&self, reason: &str) {
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            *self.failure.lock() = Some(reason.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that blocks until it is released, and then fails or works.
    struct Output {
        released: Receiver<()>,
        fails: Arc<AtomicU64>,
        written: Arc<Mutex<String>>,
    }

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // An error means that it is released forever.
            let _ = self.released.recv();
            if self.fails.load(Ordering::SeqCst) > 0 {
                self.fails.fetch_sub(1, Ordering::SeqCst);
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.written.lock().push_str(&String::from_utf8_lossy(bytes));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn warning(text: &str) -> Event {
        Event::Warning { text: text.into() }
    }

    #[test]
    fn an_output_that_blocks_delays_nothing_and_the_lost_lines_are_counted() {
        let (release, released) = mpsc::channel();
        let written = Arc::new(Mutex::default());
        let output = Output {
            released,
            fails: Arc::default(),
            written: written.clone(),
        };
        let screen = Screen::on(Form::Lines, Box::new(output)).unwrap();
        (0..2 * WAITING).for_each(|_| screen.event(&warning("early")));
        assert_eq!(screen.failure().unwrap(), "it is blocked");
        assert_eq!(screen.failure(), None);
        drop(release);
        while !written.lock().contains("lost") {
            thread::yield_now();
        }
        screen.close(&warning("last"));
        let written = written.lock();
        let early = written.lines().filter(|line| line.contains("early")).count();
        assert!((WAITING..WAITING + 2).contains(&early), "{early}");
        let lost = format!("{} lines of output are lost", 2 * WAITING - early);
        assert!(written.contains(&lost), "{written}");
        assert!(written.ends_with("last\n"));
    }

    #[test]
    fn an_output_that_fails_loses_lines_and_nothing_else() {
        let written = Arc::new(Mutex::default());
        let output = Output {
            released: mpsc::channel().1,
            fails: Arc::new(AtomicU64::new(2)),
            written: written.clone(),
        };
        let screen = Screen::on(Form::Lines, Box::new(output)).unwrap();
        for text in ["first", "second"] {
            screen.event(&warning(text));
        }
        screen.close(&warning("third"));
        let written = written.lock();
        assert!(
            !written.contains("first") && written.ends_with("third\n"),
            "{written}"
        );
        assert!(written.contains("lines of output are lost"), "{written}");
    }
}
