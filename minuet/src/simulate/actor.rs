//! [`Thread`]: a worker thread of an actor, as `actor/src/play/worker.rs` works.
//!
//! Games that can continue fill an open request, which is sent when it is full, or when no game can continue before an answer.
//! A game waits until its leaves are evaluated. So the rows of games that can continue are counted and not the games.

use super::clock::Generator;

/// Settings of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Rows of all games: games in progress times leaves.
    pub rows: u32,
    /// Rows of a full request.
    pub rows_per_request: u32,
    /// Requests in flight at the same time.
    pub requests_in_flight: usize,
    /// Processor time of a visit, in seconds.
    pub visit: f64,
    /// Share of the visits that ask the network.
    pub asking: f64,
}

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ticket {
    /// Thread that waits for the answer.
    pub thread: usize,
    /// Number of the thread's stream. The answer counts only while this stream is open.
    pub stream: u32,
    /// Number of the request within its thread.
    pub number: u32,
    /// Positions.
    pub rows: u32,
}

/// A request in flight, as its thread sees it.
#[derive(Clone, Copy, Debug)]
struct Flight {
    ticket: Ticket,
    /// Time at which the request was first sent.
    sent: f64,
}

/// Next step of a thread.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// Send a request to the server.
    Send(usize, Ticket),
    /// Play for this processor time, in seconds.
    Play(f64),
    /// Wait for an answer.
    Wait,
}

/// A worker thread.
#[derive(Debug)]
pub struct Thread {
    index: usize,
    settings: Settings,
    /// Rows of games that can continue.
    free: u32,
    /// Rows in the open request.
    open: u32,
    /// Rows that are added to it by the games that play now, and their visits.
    playing: Option<(u32, f64)>,
    in_flight: Vec<Flight>,
    /// Server of the open stream.
    pub server: Option<usize>,
    /// Number of the stream, counted up when it breaks or is replaced.
    pub stream: u32,
    /// True if the stream takes no more requests and is replaced once all of them are answered.
    pub is_old: bool,
    /// Attempts to open a stream since the last answer.
    pub attempts: u32,
    /// False while the process is down.
    pub is_alive: bool,
    sent: u32,
    /// Positions of games that are not finished.
    pub unsent_positions: f64,
}

impl Thread {
    /// A thread without a stream whose games all begin.
    pub fn new(index: usize, settings: Settings) -> Self {
        Self {
            index,
            settings,
            free: settings.rows,
            open: 0,
            playing: None,
            in_flight: Vec::new(),
            server: None,
            stream: 0,
            is_old: false,
            attempts: 0,
            is_alive: true,
            sent: 0,
            unsent_positions: 0.0,
        }
    }

    /// Decides what to do now, and counts it as begun.
    pub fn next(&mut self, now: f64, generator: &mut Generator) -> Next {
        if !self.is_alive || self.playing.is_some() {
            return Next::Wait;
        }
        let is_complete = self.open == self.settings.rows_per_request || (self.open > 0 && self.free == 0);
        if let Some(server) = self.server.filter(|_| {
            is_complete && !self.is_old && self.in_flight.len() < self.settings.requests_in_flight
        }) {
            let ticket = Ticket {
                thread: self.index,
                stream: self.stream,
                number: self.sent,
                rows: self.open,
            };
            self.sent = self.sent.wrapping_add(1);
            self.open = 0;
            self.in_flight.push(Flight { ticket, sent: now });
            return Next::Send(server, ticket);
        }
        let rows = self.free.min(self.settings.rows_per_request - self.open);
        if rows == 0 {
            return Next::Wait;
        }
        // The visits until a share p of them has asked n times have the mean n/p and the variance n(1-p)/p².
        let (asked, share) = (f64::from(rows), self.settings.asking);
        let visits = generator
            .normal(asked / share, (asked * (1.0 - share)).sqrt() / share)
            .max(asked);
        self.free -= rows;
        self.playing = Some((rows, visits));
        Next::Play(visits * self.settings.visit)
    }

    /// The games have played; returns their visits.
    pub fn played(&mut self) -> f64 {
        let (rows, visits) = self.playing.take().unwrap_or_default();
        self.open += rows;
        visits
    }

    /// Takes an answer: the rows and the time that the request took. `None` if the stream of the request is no longer open.
    pub fn answered(&mut self, ticket: Ticket, now: f64) -> Option<(u32, f64)> {
        if ticket.stream != self.stream || !self.is_alive {
            return None;
        }
        let at = self.in_flight.iter().position(|flight| flight.ticket == ticket)?;
        let flight = self.in_flight.remove(at);
        self.free += flight.ticket.rows;
        self.attempts = 0;
        Some((flight.ticket.rows, now - flight.sent))
    }

    /// True if no request is in flight.
    pub fn is_answered(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Opens a stream to a server; returns the requests that are sent again on it.
    pub fn connect(&mut self, server: usize) -> Vec<Ticket> {
        self.disconnect();
        self.server = Some(server);
        for flight in &mut self.in_flight {
            flight.ticket.stream = self.stream;
        }
        self.in_flight.iter().map(|flight| flight.ticket).collect()
    }

    /// Ends the stream. The requests in flight are kept for the next one.
    pub fn disconnect(&mut self) {
        self.stream = self.stream.wrapping_add(1);
        self.server = None;
        self.is_old = false;
    }

    /// The process ends; its games in progress are lost.
    pub fn stop(&mut self) {
        self.disconnect();
        self.is_alive = false;
        self.in_flight.clear();
        self.playing = None;
        self.open = 0;
        self.unsent_positions = 0.0;
    }

    /// The process starts again with new games.
    pub fn start(&mut self) {
        self.is_alive = true;
        self.attempts = 0;
        self.free = self.settings.rows;
    }
}
