//! The fair queue of an analysis engine: clients take turns by their visits, and each orders its own jobs by priority.

use std::{
    collections::BTreeMap,
    fmt,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{End, Job, Report, Reporter};
use crate::players::searches::AnySearch;

/// Memory of the trees of interrupted jobs, in bytes.
const MOST_BYTES: u64 = 512 << 20;

/// A job in the engine.
pub(super) struct Task {
    pub job: Job,
    pub report: Reporter,
    /// Number of the job, in the order in which jobs came.
    pub number: u64,
    /// Time of the first slice.
    pub began: Option<Instant>,
    pub fresh: u64,
    /// The search, while the job is interrupted.
    pub tree: Option<Box<dyn AnySearch>>,
}

impl fmt::Debug for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Task({})", self.number)
    }
}

impl Task {
    /// Reports the state of the search, and the end if there is one.
    pub fn report(&mut self, search: Option<&dyn AnySearch>, end: Option<End>) {
        let fresh = self.fresh;
        (self.report)(&Report { search, fresh, end });
    }

    fn tree_bytes(&self) -> u64 {
        self.tree.as_ref().map_or(0, |tree| tree.counters().bytes)
    }

    pub fn is_stopped(&self) -> bool {
        self.job.stop.load(Ordering::Relaxed)
    }

    pub fn is_time_up(&self) -> bool {
        let used = self.began.map_or(Duration::ZERO, |began| began.elapsed());
        self.job.time.is_some_and(|time| used >= time)
    }

    /// Returns the name of the job's tree: everything that the result depends on, but for the number of visits.
    pub fn tree_name(&self) -> String {
        let Job {
            player,
            place,
            settings,
            key,
            ..
        } = &self.job;
        // A file by its digest, a network behind a server by its version.
        let network = player.network();
        let network = network.map(|network| (network.digest(), &network.description().version));
        let settings = search::Settings {
            visits: 1,
            ..settings.clone()
        };
        format!("{}|{network:?}|{key:?}|{settings:?}|{place}", player.written())
    }
}

#[derive(Debug, Default)]
struct Client {
    /// Visits so far, those before the client came included.
    served: u64,
    waiting: Vec<Task>,
    at_work: usize,
}

/// Jobs that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    clients: BTreeMap<u64, Client>,
    waiting: usize,
    /// Bytes of the trees of interrupted jobs.
    tree_bytes: u64,
    /// Visits of the client whose job was taken last: a new client begins with these.
    clock: u64,
}

impl Queue {
    pub const fn len(&self) -> usize {
        self.waiting
    }

    /// True if a job with a tree of this size may be interrupted: others wait, and there is memory for the tree.
    pub const fn may_interrupt(&self, bytes: u64) -> bool {
        self.waiting > 0 && self.tree_bytes + bytes <= MOST_BYTES
    }

    pub fn push(&mut self, task: Task) {
        self.tree_bytes += task.tree_bytes();
        let clock = self.clock;
        let client = self.clients.entry(task.job.client).or_insert_with(|| Client {
            served: clock,
            ..Client::default()
        });
        client.waiting.push(task);
        self.waiting += 1;
    }

    /// Takes the next job: of the client with the fewest visits one that is stopped, or else the one with the highest priority, or else
    /// the oldest.
    pub fn pop(&mut self) -> Option<Task> {
        let waiting = self.clients.values_mut();
        let client = waiting
            .filter(|client| !client.waiting.is_empty())
            .min_by_key(|client| client.served)?;
        let rank = |task: &Task| {
            let priority = task.job.priority.load(Ordering::Relaxed);
            (task.is_stopped(), priority, u64::MAX - task.number)
        };
        let tasks = client.waiting.iter().enumerate();
        let (place, _) = tasks.max_by_key(|(_, task)| rank(task))?;
        self.clock = client.served;
        client.at_work += 1;
        self.waiting -= 1;
        let task = client.waiting.swap_remove(place);
        self.tree_bytes -= task.tree_bytes();
        Some(task)
    }

    /// Counts visits of a client whose job was taken.
    pub fn charge(&mut self, client: u64, visits: u32) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.served += u64::from(visits);
        }
    }

    /// Notes that a job is not at work any more. A client without jobs is forgotten.
    pub fn leave(&mut self, client: u64) {
        if let Some(found) = self.clients.get_mut(&client) {
            found.at_work -= 1;
            if found.at_work == 0 && found.waiting.is_empty() {
                self.clients.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::AtomicI32};

    use games::registry;

    use super::*;
    use crate::{
        Player,
        players::{NetworkOptions, Networks},
    };

    fn task(player: &Arc<Player>, number: u64, client: u64, priority: i32) -> Task {
        let game = player.game();
        let state = game.variant(&game.rules(), None).unwrap().start(None).unwrap();
        let job = Job {
            client,
            priority: Arc::new(AtomicI32::new(priority)),
            ..Job::new(Arc::clone(player), state, String::new(), 1)
        };
        Task {
            job,
            report: Box::new(|_| {}),
            number,
            began: None,
            fresh: 0,
            tree: None,
        }
    }

    #[test]
    fn clients_take_turns_by_visits_and_a_client_s_jobs_come_by_priority_then_age() {
        let mut networks = Networks::new(NetworkOptions::default());
        let game = registry::find("connect-four").unwrap();
        let player = Player::open(game, &"uct".parse().unwrap(), &mut networks).unwrap();
        let player = Arc::new(player);
        let mut queue = Queue::default();
        for (number, (client, priority)) in [(1, 0), (1, 5), (1, 5), (1, 0), (2, 0), (2, -1)]
            .into_iter()
            .enumerate()
        {
            queue.push(task(&player, number as u64, client, priority));
        }
        let last = queue
            .clients
            .get(&1)
            .and_then(|client| client.waiting.last())
            .unwrap();
        last.job.stop.store(true, Ordering::Relaxed);
        let raised = Arc::clone(&queue.clients[&2].waiting[1].job.priority);
        let mut order = Vec::new();
        while let Some(next) = queue.pop() {
            raised.store(9, Ordering::Relaxed);
            queue.charge(next.job.client, 64);
            order.push(next.number);
            queue.leave(next.job.client);
        }
        assert_eq!(order, [3, 5, 1, 4, 2, 0]);
        assert!(queue.clients.is_empty() && queue.len() == 0);
        // A client that comes later has no claim on the visits of the past.
        queue.push(task(&player, 6, 3, 0));
        assert_eq!(queue.clients[&3].served, 192);
    }
}
