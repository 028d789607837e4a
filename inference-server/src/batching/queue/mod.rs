//! Requests that wait: bounded, fair between clients, cut into batches.
//!
//! Clients take turns by deficit round robin (Shreedhar and Varghese, 1995): each turn allows a client some more positions,
//! so that who sends large requests gets no more of the device than who sends small ones. There are two such rounds, one
//! for each priority: play fills a batch first and self-play the rest, but self-play is never left out for long.
//!
//! No clock, no tasks: [`crate::batching::batcher`] decides when a batch is taken, this file decides what is in it.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::time::Instant;

use crate::{
    batching::job::{Job, Piece, State},
    requests::{
        refusal::Refusal,
        request::{ClientId, Priority},
    },
};
use network::model::Model;

/// This part of the queue is for play alone, so that self-play that fills the rest cannot keep it out.
const FOR_PLAY: usize = 8;

/// After so many batches without self-play, though some waits, one begins with it.
const MOST_WITHOUT_SELF_PLAY: u32 = 7;

/// Positions that may wait when a request of this priority has come in, of `limit` for all.
pub fn limit_of(priority: Priority, limit: usize) -> usize {
    match priority {
        Priority::Play => limit,
        Priority::SelfPlay => limit - limit / FOR_PLAY,
    }
}

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

/// Requests that are not computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Nobody waited for them any more.
    pub cancelled: u64,
    /// Their deadlines had passed.
    pub late: u64,
}

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Requests, those of which a part was taken included.
    pub requests: usize,
    /// Positions that are left of them.
    pub positions: usize,
}

/// Requests that wait.
#[derive(Debug)]
pub struct Queue {
    /// Positions that may wait.
    limit: usize,
    waiting: Waiting,
    play: Round,
    self_play: Round,
    /// Batches since the last with self-play in it, while some waited.
    without_self_play: u32,
    dropped: Dropped,
}

/// The clients of one priority.
#[derive(Debug, Default)]
struct Round {
    /// Clients with waiting requests.
    lines: HashMap<ClientId, Line>,
    /// The same clients in the order of their turns.
    turns: VecDeque<ClientId>,
}

/// One client's requests, oldest first.
#[derive(Debug, Default)]
struct Line {
    jobs: VecDeque<Arc<Job>>,
    /// Positions of all of them, those taken not counted.
    waiting: usize,
    /// Positions that it may still have computed in this turn.
    deficit: usize,
    /// Whether its turn was interrupted by the end of a batch.
    is_in_turn: bool,
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

    /// Gives how many positions wait no longer.
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
    /// An empty queue for at most `limit` positions.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            waiting: Waiting::default(),
            play: Round::default(),
            self_play: Round::default(),
            without_self_play: 0,
            dropped: Dropped::default(),
        }
    }

    /// How much waits.
    pub fn waiting(&self) -> Waiting {
        self.waiting
    }

    /// When the request that waits longest came.
    pub fn oldest(&self) -> Option<Instant> {
        [&self.play, &self.self_play]
            .into_iter()
            .flat_map(|round| round.lines.values())
            .filter_map(|line| line.jobs.front())
            .map(|job| job.queued)
            .min()
    }

    /// Requests dropped since the last call.
    pub fn take_dropped(&mut self) -> Dropped {
        std::mem::take(&mut self.dropped)
    }

    /// Adds a request at the end of its client's line. A request is taken whole or not at all; once the queue is half full,
    /// nobody may hold more than a fair share of it; and the last of it is for play.
    ///
    /// # Errors
    /// [`Refusal::QueueFull`], without a hint when to try again.
    pub fn push(&mut self, job: Arc<Job>) -> Result<(), Refusal> {
        let positions = job.positions();
        let waiting = self.waiting.positions + positions;
        let clients = self.play.lines.len() + self.self_play.lines.len();
        let round = match job.priority() {
            Priority::Play => &mut self.play,
            Priority::SelfPlay => &mut self.self_play,
        };
        let own = round.lines.get(&job.client).map_or(0, |line| line.waiting);
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
        let line = round.lines.entry(job.client).or_insert_with(|| {
            round.turns.push_back(job.client);
            Line::default()
        });
        line.waiting += positions;
        line.jobs.push_back(job);
        Ok(())
    }

    /// Takes out what a client does not wait for any more.
    pub fn sweep(&mut self, client: ClientId, now: Instant) {
        for round in [&mut self.play, &mut self.self_play] {
            let Some(line) = round.lines.get_mut(&client) else {
                continue;
            };
            // A job that was begun is looked at when its turn comes.
            let begun = usize::from(line.taken > 0);
            let jobs = std::mem::take(&mut line.jobs);
            for (place, job) in jobs.into_iter().enumerate() {
                if place < begun || self.dropped.is_wanted(&job, now) {
                    line.jobs.push_back(job);
                } else {
                    line.waiting -= job.positions();
                    self.waiting.positions -= job.positions();
                    self.waiting.requests -= 1;
                }
            }
        }
    }

    /// Cuts the next batch, of at most `most` positions and no more than its model takes, as of `now`. Only a request that
    /// is larger than a batch is cut. Who did not fit comes first next time, so nobody waits for ever.
    /// `None` where nothing waits.
    pub fn take(&mut self, most: usize, now: Instant) -> Option<Formed> {
        let mut cut = Cut {
            most,
            waiting: self.waiting.positions,
            now,
            formed: None,
            freed: Waiting::default(),
            dropped: &mut self.dropped,
        };
        let is_starved = self.without_self_play >= MOST_WITHOUT_SELF_PLAY;
        if is_starved {
            cut.fill(&mut self.self_play);
            cut.fill(&mut self.play);
        } else {
            cut.fill(&mut self.play);
            cut.fill(&mut self.self_play);
        }
        let (formed, freed) = (cut.formed, cut.freed);
        self.waiting.positions -= freed.positions;
        self.waiting.requests -= freed.requests;
        let has_self_play = formed.as_ref().is_some_and(|formed| {
            let mut pieces = formed.pieces.iter();
            pieces.any(|piece| piece.job.priority() == Priority::SelfPlay)
        });
        self.without_self_play = if has_self_play || self.self_play.lines.is_empty() {
            0
        } else {
            self.without_self_play + 1
        };
        formed
    }

    /// Takes out everything, to be refused.
    pub fn drain(&mut self) -> Vec<Arc<Job>> {
        self.waiting = Waiting::default();
        let rounds = [&mut self.play, &mut self.self_play];
        rounds
            .into_iter()
            .flat_map(|round| {
                round.turns.clear();
                round.lines.drain()
            })
            .flat_map(|(_, line)| line.jobs)
            .collect()
    }
}

impl Dropped {
    fn is_wanted(&mut self, job: &Job, now: Instant) -> bool {
        match job.state(now) {
            State::Wanted => return true,
            State::Over => self.cancelled += 1,
            State::Late => self.late += 1,
        }
        false
    }
}

/// One batch as it is cut.
struct Cut<'a> {
    most: usize,
    /// Positions that waited before.
    waiting: usize,
    now: Instant,
    formed: Option<Formed>,
    /// What waits no longer.
    freed: Waiting,
    dropped: &'a mut Dropped,
}

enum Turn {
    /// The batch is full: the client goes on in the next one.
    Full,
    /// It had its share.
    Over,
    /// Its next request does not fit into this batch: it comes first in the next one.
    DoesNotFit,
    /// It has nothing more.
    Empty,
}

impl Cut<'_> {
    fn fill(&mut self, round: &mut Round) {
        let mut passed = Vec::new();
        while !self.is_full()
            && let Some(client) = round.turns.pop_front()
        {
            let Some(line) = round.lines.get_mut(&client) else {
                continue;
            };
            match self.serve(line) {
                Turn::Full | Turn::DoesNotFit => passed.push((client, self.positions(), round.turns.len())),
                Turn::Over => round.turns.push_back(client),
                Turn::Empty => drop(round.lines.remove(&client)),
            }
        }
        // Those that did not fit keep their places, and lose nothing against those that filled the batch after them.
        for &(client, before, others) in passed.iter().rev() {
            round.turns.push_front(client);
            if let Some(line) = round.lines.get_mut(&client) {
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

    /// Room that is left for further requests; `None` while nothing is in the batch.
    fn room(&self) -> Option<usize> {
        let formed = self.formed.as_ref()?;
        let largest = self.most.min(formed.model.buckets.cut(self.waiting));
        Some(largest.saturating_sub(formed.positions))
    }

    /// One client's turn.
    fn serve(&mut self, line: &mut Line) -> Turn {
        if !line.is_in_turn {
            line.deficit = (line.deficit + quantum(self.most)).min(2 * self.most);
        }
        line.is_in_turn = false;
        loop {
            while let Some(job) = line.jobs.front()
                && !self.dropped.is_wanted(job, self.now)
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
            // Only an empty batch is given a part of a request.
            if left > room && (self.formed.is_some() || room < largest) {
                line.is_in_turn = true;
                return Turn::DoesNotFit;
            }
            self.add(line, job, model, wanted);
            line.deficit -= wanted;
            if self.is_full() {
                line.is_in_turn = true;
                return if line.jobs.is_empty() {
                    Turn::Empty
                } else {
                    Turn::Full
                };
            }
        }
    }

    fn add(&mut self, line: &mut Line, job: Arc<Job>, model: Arc<Model>, count: usize) {
        let piece = Piece {
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
        let formed = self.formed.get_or_insert_with(|| Formed {
            model,
            pieces: Vec::new(),
            positions: 0,
        });
        formed.pieces.push(piece);
        formed.positions += count;
    }
}

/// Positions that each turn allows a client: an eighth of a batch, so that eight clients share one.
fn quantum(most: usize) -> usize {
    (most / 8).max(1)
}

#[cfg(test)]
mod tests;
