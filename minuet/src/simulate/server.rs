//! [`Server`]: an inference server, as `inference-server/src/batching/batcher/mod.rs` forms batches.

use std::collections::VecDeque;

use super::actor::Ticket;

/// A request in the queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    ticket: Ticket,
    /// Rows that no batch has taken yet.
    left: u32,
}

/// A batch that the device computes.
#[derive(Debug, Default)]
struct Batch {
    rows: u32,
    /// Requests of which the batch has rows.
    requests: usize,
    /// Requests that are complete with this batch.
    complete: Vec<Ticket>,
    began: f64,
}

/// A batch that the device has computed.
#[derive(Debug)]
pub struct Computed {
    /// Rows of the batch.
    pub rows: u32,
    /// Seconds for which the device was busy.
    pub seconds: f64,
    /// Requests that can be answered.
    pub answers: Vec<Ticket>,
}

/// An inference server.
#[derive(Debug)]
pub struct Server {
    max_batch: u32,
    /// False while the process is down.
    pub is_alive: bool,
    /// Requests that have arrived; the first one is being read.
    arrived: VecDeque<Ticket>,
    queue: VecDeque<Queued>,
    batch: Option<Batch>,
    /// Half of the requests that waited or were answered when the device last became idle.
    half: usize,
}

impl Server {
    /// A server with an empty queue. Batches have at most `max_batch` rows.
    pub fn new(max_batch: u32) -> Self {
        Self {
            max_batch,
            is_alive: true,
            arrived: VecDeque::new(),
            queue: VecDeque::new(),
            batch: None,
            half: 0,
        }
    }

    /// Takes a request; true if reading it begins now.
    pub fn arrive(&mut self, ticket: Ticket) -> bool {
        if !self.is_alive {
            return false;
        }
        self.arrived.push_back(ticket);
        self.arrived.len() == 1
    }

    /// The first request that is not read yet.
    pub fn reading(&self) -> Option<Ticket> {
        self.arrived.front().copied()
    }

    /// The first request has been read and is queued.
    pub fn read(&mut self) {
        if let Some(ticket) = self.arrived.pop_front() {
            let left = ticket.rows;
            self.queue.push_back(Queued { ticket, left });
        }
    }

    /// Forms a batch if the device is idle and enough requests wait. Returns its rows.
    ///
    /// An idle device gets what has been read once nothing more arrives, or half of the recent requests are back, or a batch is full.
    pub fn begin(&mut self, now: f64) -> Option<u32> {
        if self.batch.is_some() || self.queue.is_empty() {
            return None;
        }
        let waiting: u32 = self.queue.iter().map(|queued| queued.left).sum();
        let is_half = self.half > 1 && self.queue.len() >= self.half;
        if waiting < self.max_batch && !is_half && !self.arrived.is_empty() {
            return None;
        }
        let mut batch = Batch {
            began: now,
            ..Batch::default()
        };
        while let Some(queued) = self.queue.front_mut() {
            let rows = queued.left.min(self.max_batch - batch.rows);
            if rows == 0 {
                break;
            }
            queued.left -= rows;
            batch.rows += rows;
            batch.requests += 1;
            if queued.left == 0 {
                batch.complete.push(queued.ticket);
                self.queue.pop_front();
            }
        }
        let rows = batch.rows;
        self.batch = Some(batch);
        Some(rows)
    }

    /// The device has finished its batch.
    pub fn computed(&mut self, now: f64) -> Option<Computed> {
        let batch = self.batch.take()?;
        self.half = (batch.requests + self.queue.len()) / 2;
        Some(Computed {
            rows: batch.rows,
            seconds: now - batch.began,
            answers: batch.complete,
        })
    }

    /// The process ends; everything that it had received is lost.
    pub fn stop(&mut self) {
        *self = Self {
            is_alive: false,
            ..Self::new(self.max_batch)
        };
    }
}
