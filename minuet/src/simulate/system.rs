//! [`simulate`]: actors, inference servers, a replay store and a learner as discrete events, and nothing else: no clock, no thread.
//!
//! | what is simulated | as in |
//! |---|---|
//! | requests of a thread, in flight and open | `actor/src/play/worker.rs` |
//! | streams that are replaced every 9 to 18 s and go to a random server | `docs/decisions/stream-lifetime.md` |
//! | batches without a timer | `docs/decisions/batching-without-a-timer.md` |
//! | games that wait for the store, and are not lost with it | `docs/decisions/acknowledged-is-durable.md` |
//! | cores that are shared, where all roles are on one machine | [`Host`] |
//!
//! The steps of the roles are in [`super::steps`]. Left out: new checkpoints on the servers, the limits of spools and queues, bandwidth,
//! the object store.

use service::role::Role;

use super::{
    actor::{self, Thread, Ticket},
    clock::{Clock, Generator},
    costs::Costs,
    failure::Failure,
    host::{Host, Work},
    outcome::{Outcome, Recorder},
    server::Server,
    storage::{Learner, Request, Store},
};

/// A system to simulate.
#[derive(Clone, Debug)]
pub struct Settings {
    pub costs: Costs,
    /// Worker threads of all actors.
    pub actors: usize,
    pub servers: usize,
    /// Rows of the games of one thread: games in progress times leaves.
    pub rows: u32,
    pub rows_per_request: u32,
    pub requests_in_flight: usize,
    pub max_batch: u32,
    /// One-way time of a message between two processes, in seconds.
    pub latency: f64,
    /// Cores of the one machine that all roles share; `None`: each thread, server, store and learner has a core of its own.
    pub cores: Option<u32>,
    /// Samples of a training step, and samples for each position; `None`: there is no learner.
    pub learner: Option<(f64, f64)>,
    pub failures: Vec<Failure>,
    /// Seconds before the figures are counted, and seconds for which they are.
    pub warm_up: f64,
    pub seconds: f64,
    pub seed: u64,
}

impl Settings {
    /// True if training is simulated, which needs figures of the store and of training.
    pub fn has_learner(&self) -> bool {
        self.learner.is_some() && self.costs.train.is_some() && self.costs.store.is_some()
    }
}

/// Something that happens at a moment.
#[derive(Debug)]
pub enum Event {
    /// The next task of a host is complete, unless the host has changed since.
    Done { host: usize, changes: u64 },
    /// A request reaches a server.
    Request(usize, Ticket),
    /// An answer reaches its thread.
    Answer(Ticket),
    /// A thread opens a stream, unless its stream has changed since.
    Connect { thread: usize, stream: u32 },
    /// A stream is old, unless it has changed since.
    Old { thread: usize, stream: u32 },
    /// A request reaches the store.
    Store(Request),
    /// A batch reaches the learner.
    Batch,
    /// A process ends.
    Stop(Role, usize),
    /// A process runs again.
    Start(Role, usize),
}

/// Simulates a system. Equal settings give equal outcomes.
pub fn simulate(settings: &Settings) -> Outcome {
    let mut system = System::new(settings);
    let end = settings.warm_up + settings.seconds;
    while let Some(event) = system.clock.next_before(end) {
        system.happen(event);
    }
    system.recorder.outcome(settings)
}

/// The state of all parts.
pub struct System<'a> {
    pub settings: &'a Settings,
    pub clock: Clock<Event>,
    pub generator: Generator,
    hosts: Vec<Host>,
    pub threads: Vec<Thread>,
    pub servers: Vec<Server>,
    pub store: Store,
    pub learner: Learner,
    pub recorder: Recorder,
}

impl<'a> System<'a> {
    fn new(settings: &'a Settings) -> Self {
        let hosts = match settings.cores {
            Some(cores) => vec![Host::new(f64::from(cores))],
            None => (0..settings.actors + settings.servers + 2)
                .map(|_| Host::new(1.0))
                .collect(),
        };
        let of_thread = actor::Settings {
            rows: settings.rows,
            rows_per_request: settings.rows_per_request,
            requests_in_flight: settings.requests_in_flight,
            visit: settings.costs.visit,
            asking: settings.costs.asking,
        };
        let (batch, uses) = settings.learner.unwrap_or_default();
        let mut clock = Clock::new();
        for thread in 0..settings.actors {
            clock.after(0.0, Event::Connect { thread, stream: 0 });
        }
        for (index, failure) in settings.failures.iter().enumerate() {
            let before = settings.failures[..index].iter();
            let number = before.filter(|other| other.role == failure.role).count();
            clock.after(failure.at, Event::Stop(failure.role, number));
            clock.after(failure.at + failure.seconds, Event::Start(failure.role, number));
        }
        Self {
            settings,
            clock,
            generator: Generator::new(settings.seed),
            hosts,
            threads: (0..settings.actors)
                .map(|index| Thread::new(index, of_thread))
                .collect(),
            servers: (0..settings.servers)
                .map(|_| Server::new(settings.max_batch))
                .collect(),
            store: Store::new(),
            learner: Learner::new(batch, uses),
            recorder: Recorder::new(settings.warm_up, settings.seconds),
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Done { host, changes } => self.completed(host, changes),
            Event::Request(server, ticket) => {
                if self.servers[server].arrive(ticket) {
                    self.read(server);
                }
            }
            Event::Answer(ticket) => self.answered(ticket),
            Event::Connect { thread, stream } => {
                if self.threads[thread].stream == stream && self.threads[thread].is_alive {
                    self.connect(thread);
                    self.play(thread);
                }
            }
            Event::Old { thread, stream } => {
                let found = &mut self.threads[thread];
                if found.stream == stream {
                    found.is_old = true;
                    if found.is_answered() {
                        self.connect(thread);
                    }
                }
            }
            Event::Store(request) => {
                self.store.arrive(request);
                self.begin_store();
            }
            Event::Batch => {
                self.learner.received();
                self.begin_training();
            }
            Event::Stop(role, number) => self.stop(role, number),
            Event::Start(role, number) => self.start(role, number),
        }
    }

    /// Host of a piece of work.
    fn host(&self, work: Work) -> usize {
        if self.settings.cores.is_some() {
            return 0;
        }
        let (actors, servers) = (self.settings.actors, self.settings.servers);
        match work {
            Work::Play(thread) => thread,
            Work::Read(server) | Work::Compute(server) => actors + server,
            Work::Store => actors + servers,
            Work::Train => actors + servers + 1,
        }
    }

    /// Begins a piece of work on its host.
    pub fn begin(&mut self, work: Work, seconds: f64, threads: u32) {
        let host = self.host(work);
        self.hosts[host].start(self.clock.now(), work, seconds, threads);
        self.foresee(host);
    }

    /// Ends a piece of work that is not complete.
    pub fn abandon(&mut self, work: Work) {
        let host = self.host(work);
        self.hosts[host].stop(self.clock.now(), work);
        self.foresee(host);
    }

    /// Sets the event of a host's next completion.
    fn foresee(&mut self, host: usize) {
        if let Some(delay) = self.hosts[host].remaining() {
            let changes = self.hosts[host].changes;
            self.clock.after(delay, Event::Done { host, changes });
        }
    }

    fn completed(&mut self, host: usize, changes: u64) {
        if self.hosts[host].changes != changes {
            return;
        }
        let now = self.clock.now();
        while let Some((work, seconds)) = self.hosts[host].completed(now) {
            self.recorder.worked(now, work, seconds);
            match work {
                Work::Play(thread) => self.played(thread),
                Work::Read(server) => {
                    self.servers[server].read();
                    self.read(server);
                    self.compute(server);
                }
                Work::Compute(server) => self.computed(server),
                Work::Store => self.stored(),
                Work::Train => {
                    let samples = self.learner.trained();
                    self.recorder.trained(now, samples);
                    self.begin_training();
                }
            }
        }
        self.foresee(host);
    }
}
