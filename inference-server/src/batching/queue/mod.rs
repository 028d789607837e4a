//! Queue of waiting requests: bounded, fair between clients, cut into batches.
//!
//! Clients take turns by deficit round robin (Shreedhar and Varghese, 1995): each turn grants a client some positions, so a
//! client with large requests gets no more of the device than one with small requests. There is one round robin for each
//! priority. Play fills a batch first and self-play the rest, but self-play is never left out for long.
//!
//! This module uses no clock and no tasks. [`crate::batching::batcher`] decides when a batch is formed.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::time::Instant;

use crate::{
    batching::job::{Job, JobSlice},
    intake::{
        refusal::Refusal,
        request::{ClientId, Priority},
    },
};
use network::model::Model;

/// One part in this many of the queue is reserved for play, so that self-play cannot fill it all.
const FOR_PLAY: usize = 8;

/// Number of consecutive batches without self-play, while some waits, after which a batch starts with self-play.
const MOST_WITHOUT_SELF_PLAY: u32 = 7;

/// Returns the largest number of waiting positions, including a new request of this priority, in a queue for `limit`
/// positions.
pub fn limit_of(priority: Priority, limit: usize) -> usize {
    match priority {
        Priority::Play => limit,
        Priority::SelfPlay => limit - limit / FOR_PLAY,
    }
}

/// A batch for the device: slices of jobs that one model computes.
#[derive(Debug)]
pub struct FormedBatch {
    /// The model.
    pub model: Arc<Model>,
    /// At least one slice.
    pub slices: Vec<JobSlice>,
    /// Number of positions in all slices.
    pub positions: usize,
}

/// Length of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLength {
    /// Waiting requests, including those of which a part was taken.
    pub requests: usize,
    /// Positions of these requests that are still to be taken.
    pub positions: usize,
}

/// Waiting requests of both priorities.
#[derive(Debug)]
pub struct Queue {
    /// Largest number of waiting positions.
    limit: usize,
    waiting: QueueLength,
    play: RoundRobin,
    self_play: RoundRobin,
    /// Number of batches since the last one with self-play, while self-play waited.
    without_self_play: u32,
    /// Number of requests that were dropped because nobody waited for them any more.
    cancelled: u64,
}

/// Round robin over the clients of one priority.
#[derive(Debug, Default)]
struct RoundRobin {
    /// Queues of clients with waiting requests.
    clients: HashMap<ClientId, ClientQueue>,
    /// These clients in the order of their turns.
    turns: VecDeque<ClientId>,
}

/// Waiting requests of one client, oldest first.
#[derive(Debug, Default)]
struct ClientQueue {
    jobs: VecDeque<Arc<Job>>,
    /// Number of positions that are still to be taken.
    waiting: usize,
    /// Number of positions that the client may still take in this turn.
    deficit: usize,
    /// True if the end of a batch interrupted the turn.
    is_in_turn: bool,
    /// Number of positions of the first job that were taken. Above 0 only for a job that is larger than a batch.
    taken: usize,
    /// Model that computes the taken positions of the first job.
    started: Option<Arc<Model>>,
}

impl ClientQueue {
    /// Returns the number of positions of the first job that are left.
    fn next_len(&self) -> usize {
        self.jobs
            .front()
            .map_or(0, |job| job.positions().saturating_sub(self.taken))
    }

    /// Removes the first job. Returns the number of its positions that were left.
    fn drop_front(&mut self) -> usize {
        let left = self.next_len();
        self.jobs.pop_front();
        self.taken = 0;
        self.started = None;
        self.waiting -= left;
        left
    }
}

impl Queue {
    /// Makes an empty queue for at most `limit` positions.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            waiting: QueueLength::default(),
            play: RoundRobin::default(),
            self_play: RoundRobin::default(),
            without_self_play: 0,
            cancelled: 0,
        }
    }

    /// Returns the length of the queue.
    pub fn waiting(&self) -> QueueLength {
        self.waiting
    }

    /// Returns the number of requests that were dropped since the last call, because nobody waited for them any more.
    pub fn take_cancelled(&mut self) -> u64 {
        std::mem::take(&mut self.cancelled)
    }

    /// Adds a request at the end of its client's queue, whole or not at all. Once the queue is half full, no client may hold
    /// more than a fair share of it. The last part of the queue is reserved for play.
    ///
    /// # Errors
    /// [`Refusal::QueueFull`] without a retry hint.
    pub fn push(&mut self, job: Arc<Job>) -> Result<(), Refusal> {
        let positions = job.positions();
        let waiting = self.waiting.positions + positions;
        let clients = self.play.clients.len() + self.self_play.clients.len();
        let round = match job.priority() {
            Priority::Play => &mut self.play,
            Priority::SelfPlay => &mut self.self_play,
        };
        let own = round.clients.get(&job.client).map_or(0, |line| line.waiting);
        let limit = limit_of(job.priority(), self.limit);
        let is_greedy = 2 * waiting > self.limit && own > 0 && own + positions > self.limit / clients.max(1);
        if waiting > limit || is_greedy {
            return Err(Refusal::QueueFull {
                waiting: self.waiting.positions,
                most: limit,
                retry_after_ms: 0,
            });
        }
        self.waiting.positions = waiting;
        self.waiting.requests += 1;
        let line = round.clients.entry(job.client).or_insert_with(|| {
            round.turns.push_back(job.client);
            ClientQueue::default()
        });
        line.waiting += positions;
        line.jobs.push_back(job);
        Ok(())
    }

    /// Removes the requests of a client that nobody waits for any more.
    pub fn sweep(&mut self, client: ClientId, now: Instant) {
        for round in [&mut self.play, &mut self.self_play] {
            let Some(line) = round.clients.get_mut(&client) else {
                continue;
            };
            // A job of which a part was taken is checked when its turn comes.
            let begun = usize::from(line.taken > 0);
            let jobs = std::mem::take(&mut line.jobs);
            for (place, job) in jobs.into_iter().enumerate() {
                if place < begun || is_wanted(&job, now, &mut self.cancelled) {
                    line.jobs.push_back(job);
                } else {
                    line.waiting -= job.positions();
                    self.waiting.positions -= job.positions();
                    self.waiting.requests -= 1;
                }
            }
        }
    }

    /// Takes the next batch: at most `most` positions, and no more than the model's largest batch. Only a request that is
    /// larger than a batch is split. A request that did not fit comes first in the next batch, so none waits for ever.
    /// `None` if nothing waits. `now` decides which deadlines have passed.
    pub fn take(&mut self, most: usize, now: Instant) -> Option<FormedBatch> {
        let mut cut = BatchCut {
            most,
            waiting: self.waiting.positions,
            now,
            formed: None,
            freed: QueueLength::default(),
            cancelled: &mut self.cancelled,
        };
        let is_starved = self.without_self_play >= MOST_WITHOUT_SELF_PLAY;
        let mut rounds = [&mut self.play, &mut self.self_play];
        if is_starved {
            rounds.reverse();
        }
        rounds.into_iter().for_each(|round| cut.fill(round));
        let (formed, freed) = (cut.formed, cut.freed);
        self.waiting.positions -= freed.positions;
        self.waiting.requests -= freed.requests;
        let mut slices = formed.iter().flat_map(|formed| &formed.slices);
        let has_self_play = slices.any(|slice| slice.job.priority() == Priority::SelfPlay);
        self.without_self_play = if has_self_play || self.self_play.clients.is_empty() {
            0
        } else {
            self.without_self_play + 1
        };
        formed
    }

    /// Removes all requests.
    pub fn drain(&mut self) -> Vec<Arc<Job>> {
        self.waiting = QueueLength::default();
        let rounds = [&mut self.play, &mut self.self_play];
        rounds
            .into_iter()
            .flat_map(|round| {
                round.turns.clear();
                round.clients.drain()
            })
            .flat_map(|(_, line)| line.jobs)
            .collect()
    }
}

/// True if a job must be computed. Counts it as cancelled if nobody waits for it any more.
fn is_wanted(job: &Job, now: Instant, cancelled: &mut u64) -> bool {
    if job.is_over() {
        return false;
    }
    if job.is_abandoned() {
        *cancelled += 1;
        return false;
    }
    job.is_open(now)
}

/// A batch that is being put together.
struct BatchCut<'a> {
    most: usize,
    /// Number of waiting positions before the batch.
    waiting: usize,
    now: Instant,
    formed: Option<FormedBatch>,
    /// Numbers of requests and positions that were taken or dropped.
    freed: QueueLength,
    cancelled: &'a mut u64,
}

/// Result of one client's turn.
enum Turn {
    /// The batch is full, or the next request does not fit into it. The client continues in the next batch.
    Passed,
    /// The client has used up its share.
    Over,
    /// The client has no more requests.
    Empty,
}

impl BatchCut<'_> {
    fn fill(&mut self, round: &mut RoundRobin) {
        let mut passed = Vec::new();
        while !self.is_full()
            && let Some(client) = round.turns.pop_front()
        {
            let Some(line) = round.clients.get_mut(&client) else {
                continue;
            };
            match self.serve(line) {
                Turn::Passed => passed.push((client, self.positions(), round.turns.len())),
                Turn::Over => round.turns.push_back(client),
                Turn::Empty => drop(round.clients.remove(&client)),
            }
        }
        // Clients whose requests did not fit keep their turns, and get the share that later clients took meanwhile.
        for &(client, before, others) in passed.iter().rev() {
            round.turns.push_front(client);
            if let Some(line) = round.clients.get_mut(&client) {
                let lost = (self.positions() - before) / others.max(1);
                line.deficit = (line.deficit + lost).min(2 * self.most);
            }
        }
    }

    fn positions(&self) -> usize {
        self.formed.as_ref().map_or(0, |formed| formed.positions)
    }

    fn is_full(&self) -> bool {
        self.room().is_some_and(|room| room == 0)
    }

    /// Returns the number of positions that still fit. `None` while the batch is empty.
    fn room(&self) -> Option<usize> {
        let formed = self.formed.as_ref()?;
        let largest = self.most.min(formed.model.buckets.cut(self.waiting));
        Some(largest.saturating_sub(formed.positions))
    }

    /// Takes requests of one client in its turn.
    fn serve(&mut self, line: &mut ClientQueue) -> Turn {
        if !line.is_in_turn {
            line.deficit = (line.deficit + quantum(self.most)).min(2 * self.most);
        }
        line.is_in_turn = false;
        loop {
            while let Some(job) = line.jobs.front()
                && !is_wanted(job, self.now, self.cancelled)
            {
                self.freed.positions += line.drop_front();
                self.freed.requests += 1;
            }
            let Some(job) = line.jobs.front().cloned() else {
                return Turn::Empty;
            };
            let model = line.started.clone().unwrap_or_else(|| job.model());
            let largest = self.most.min(model.buckets.largest()).max(1);
            let left = line.next_len();
            let wanted = left.min(largest);
            if wanted > line.deficit {
                return Turn::Over;
            }
            let room = match &self.formed {
                None => largest,
                Some(formed) if Arc::ptr_eq(&formed.model, &model) => self.room().unwrap_or(0),
                Some(_) => 0,
            };
            // Only an empty batch gets a part of a request.
            if left > room && (self.formed.is_some() || room < largest) {
                line.is_in_turn = true;
                return Turn::Passed;
            }
            self.add(line, job, model, wanted);
            line.deficit -= wanted;
            if self.is_full() {
                line.is_in_turn = true;
                return if line.jobs.is_empty() {
                    Turn::Empty
                } else {
                    Turn::Passed
                };
            }
        }
    }

    fn add(&mut self, line: &mut ClientQueue, job: Arc<Job>, model: Arc<Model>, count: usize) {
        let slice = JobSlice {
            job,
            first: line.taken,
            count,
        };
        if count < line.next_len() {
            line.taken += count;
            line.waiting -= count;
            line.started = Some(model.clone());
        } else {
            line.drop_front();
            self.freed.requests += 1;
        }
        self.freed.positions += count;
        let formed = self.formed.get_or_insert_with(|| FormedBatch {
            model,
            slices: Vec::new(),
            positions: 0,
        });
        formed.slices.push(slice);
        formed.positions += count;
    }
}

/// Returns the number of positions that each turn grants a client: an eighth of a batch.
fn quantum(most: usize) -> usize {
    (most / 8).max(1)
}

#[cfg(test)]
mod tests;
