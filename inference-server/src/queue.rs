//! Requests that wait: bounded, fair between clients, cut into batches.
//!
//! No clock, no tasks: [`crate::batcher`] decides when a batch is taken, this file decides what is in it.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::time::Instant;

use crate::{
    job::{ClientId, Job, Piece},
    model::Model,
    refusal::Refusal,
};

/// The pieces of one batch, all to be answered by one model.
#[derive(Debug)]
pub struct Formed {
    /// The model.
    pub model: Arc<Model>,
    /// At least one.
    pub pieces: Vec<Piece>,
    /// Positions in all pieces.
    pub positions: usize,
}

/// Requests that wait.
#[derive(Debug)]
pub struct Queue {
    /// Positions that may wait.
    limit: usize,
    /// Positions that wait.
    waiting: usize,
    /// Clients with waiting requests.
    lines: HashMap<ClientId, Line>,
    /// The same clients in the order of their turns.
    turns: VecDeque<ClientId>,
    /// Requests dropped since [`Queue::take_dropped`], because nobody waited for them any more.
    dropped: u64,
}

/// One client's requests, oldest first.
#[derive(Debug, Default)]
struct Line {
    jobs: VecDeque<Arc<Job>>,
    /// Positions of the first job that were taken already; more than 0 only where it is larger than a batch.
    taken: usize,
    /// The model that answered those.
    started: Option<Arc<Model>>,
}

impl Line {
    /// Positions of the first job that are left.
    fn next_len(&self) -> usize {
        self.jobs
            .front()
            .map_or(0, |job| job.positions().saturating_sub(self.taken))
    }

    /// The model that must answer the first job; `None`: the current one.
    fn bound_to(&self) -> Option<&Arc<Model>> {
        let exact = || self.jobs.front().and_then(|job| job.exact.as_ref());
        self.started.as_ref().or_else(exact)
    }

    fn drop_front(&mut self) -> usize {
        let left = self.next_len();
        self.jobs.pop_front();
        self.taken = 0;
        self.started = None;
        left
    }
}

impl Queue {
    /// An empty queue for at most `limit` positions.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            waiting: 0,
            lines: HashMap::new(),
            turns: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Positions that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// When the request that waits longest came.
    pub fn oldest(&self) -> Option<Instant> {
        let fronts = self.lines.values().filter_map(|line| line.jobs.front());
        fronts.map(|job| job.queued).min()
    }

    /// Requests dropped since the last call, because nobody waited for them any more.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Adds a request at the end of its client's line.
    ///
    /// # Errors
    /// [`Refusal::QueueFull`]. A request is taken whole or not at all.
    pub fn push(&mut self, job: Arc<Job>) -> Result<(), Refusal> {
        let waiting = self.waiting + job.positions();
        if waiting > self.limit {
            return Err(Refusal::QueueFull {
                waiting: self.waiting,
                most: self.limit,
            });
        }
        self.waiting = waiting;
        let line = self.lines.entry(job.client).or_insert_with(|| {
            self.turns.push_back(job.client);
            Line::default()
        });
        line.jobs.push_back(job);
        Ok(())
    }

    /// Cuts the next batch: clients take turns, one request each, as long as whole requests fit into the largest batch.
    /// Only a request that is larger than a batch is cut. Who did not fit comes first next time, so nobody waits for ever.
    /// `None` where nothing waits.
    pub fn take(&mut self, current: &Arc<Model>) -> Option<Formed> {
        let mut formed: Option<Formed> = None;
        // Those that had a turn go to the back; those that could not be served keep their places.
        let (mut passed, mut served) = (VecDeque::new(), VecDeque::new());
        loop {
            let Some(client) = self.turns.pop_front() else {
                if served.is_empty() {
                    break;
                }
                // A further round, among those that were served in this one.
                std::mem::swap(&mut self.turns, &mut served);
                continue;
            };
            let Some(line) = self.lines.get_mut(&client) else {
                continue;
            };
            while line.jobs.front().is_some_and(|job| job.is_over()) {
                self.waiting -= line.drop_front();
                self.dropped += 1;
            }
            match serve(line, current, &mut formed) {
                Turn::Served(positions) => {
                    self.waiting -= positions;
                    served.push_back(client);
                }
                Turn::DoesNotFit => passed.push_back(client),
                Turn::Empty => drop(self.lines.remove(&client)),
            }
            if formed.as_ref().is_some_and(Formed::is_full) {
                break;
            }
        }
        passed.append(&mut self.turns);
        passed.append(&mut served);
        self.turns = passed;
        formed
    }

    /// Takes out everything, to be refused.
    pub fn drain(&mut self) -> Vec<Arc<Job>> {
        self.waiting = 0;
        self.turns.clear();
        self.lines.drain().flat_map(|(_, line)| line.jobs).collect()
    }
}

impl Formed {
    fn is_full(&self) -> bool {
        self.positions >= self.model.buckets.largest()
    }
}

enum Turn {
    Served(usize),
    DoesNotFit,
    Empty,
}

/// One client's turn: its first request, or as much of it as a batch of its own holds.
fn serve(line: &mut Line, current: &Arc<Model>, formed: &mut Option<Formed>) -> Turn {
    let Some(job) = line.jobs.front().cloned() else {
        return Turn::Empty;
    };
    let model = line.bound_to().unwrap_or(current).clone();
    let largest = model.buckets.largest();
    let left = line.next_len();
    let room = match formed {
        None => largest,
        Some(formed) if Arc::ptr_eq(&formed.model, &model) => largest.saturating_sub(formed.positions),
        Some(_) => 0,
    };
    // Only an empty batch is given a part of a request.
    if left > room && room < largest {
        return Turn::DoesNotFit;
    }
    let count = left.min(room);
    let piece = Piece {
        job,
        first: line.taken,
        count,
    };
    if count < left {
        line.taken += count;
        line.started = Some(model.clone());
    } else {
        line.drop_front();
    }
    let formed = formed.get_or_insert_with(|| Formed {
        model,
        pieces: Vec::new(),
        positions: 0,
    });
    formed.pieces.push(piece);
    formed.positions += count;
    Turn::Served(count)
}

#[cfg(test)]
mod tests;
