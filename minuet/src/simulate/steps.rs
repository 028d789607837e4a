//! Steps of the roles in a simulated [`System`].

use service::role::Role;

use super::{
    actor::{Next, Ticket},
    costs::GAME,
    host::Work,
    storage::Request,
    system::{Event, System},
};

/// Longest age of a stream, in seconds; the shortest is half of it.
const STREAM: f64 = 18.0;
/// Delays before a broken stream is opened again, in seconds: the first one, and the longest one.
const RETRY: [f64; 2] = [0.05, 5.0];

impl System<'_> {
    /// Lets a thread do what it can.
    pub fn play(&mut self, index: usize) {
        loop {
            let now = self.clock.now();
            match self.threads[index].next(now, &mut self.generator) {
                Next::Send(server, ticket) => self
                    .clock
                    .after(self.settings.latency, Event::Request(server, ticket)),
                Next::Play(seconds) => return self.begin(Work::Play(index), seconds, 1),
                Next::Wait => return,
            }
        }
    }

    pub fn played(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        let visits = thread.played();
        let positions = visits * self.settings.costs.positions;
        thread.unsent_positions += positions;
        self.recorder.played(self.clock.now(), visits, positions);
        while thread.unsent_positions >= GAME {
            thread.unsent_positions -= GAME;
            self.clock
                .after(self.settings.latency, Event::Store(Request::Append(GAME)));
        }
        self.play(index);
    }

    pub fn answered(&mut self, ticket: Ticket) {
        let now = self.clock.now();
        let thread = &mut self.threads[ticket.thread];
        if let Some((rows, seconds)) = thread.answered(ticket, now) {
            self.recorder.answered(now, rows, seconds);
            if thread.is_old && thread.is_answered() {
                self.connect(ticket.thread);
            }
            self.play(ticket.thread);
        }
    }

    /// Opens a stream to a random server that runs, or tries it later.
    pub fn connect(&mut self, index: usize) {
        let alive: Vec<usize> = (0..self.servers.len())
            .filter(|&server| self.servers[server].is_alive)
            .collect();
        if alive.is_empty() {
            return self.retry(index);
        }
        let server = alive[self.generator.below(alive.len())];
        let again = self.threads[index].connect(server);
        let stream = self.threads[index].stream;
        let age = STREAM * (0.5 + 0.5 * self.generator.share());
        self.clock.after(
            age,
            Event::Old {
                thread: index,
                stream,
            },
        );
        for ticket in again {
            self.clock
                .after(self.settings.latency, Event::Request(server, ticket));
        }
    }

    /// Ends a stream and opens another one after a delay that doubles with each attempt.
    pub fn retry(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        thread.disconnect();
        let [first, longest] = RETRY;
        let delay = (first * 2_f64.powi(thread.attempts.min(30) as i32)).min(longest);
        thread.attempts += 1;
        let stream = thread.stream;
        let delay = delay * (0.5 + 0.5 * self.generator.share());
        self.clock.after(
            delay,
            Event::Connect {
                thread: index,
                stream,
            },
        );
    }

    /// Begins to read the first request of a server.
    pub fn read(&mut self, server: usize) {
        if let Some(ticket) = self.servers[server].reading() {
            let costs = &self.settings.costs;
            let seconds = costs.request + f64::from(ticket.rows) * costs.row;
            self.begin(Work::Read(server), seconds, 1);
        }
    }

    /// Gives the device of a server a batch if it can have one.
    pub fn compute(&mut self, server: usize) {
        let now = self.clock.now();
        if let Some(rows) = self.servers[server].begin(now) {
            let costs = &self.settings.costs;
            let (seconds, threads) = (f64::from(rows) * costs.compute, costs.compute_threads);
            self.begin(Work::Compute(server), seconds, threads);
        }
    }

    pub fn computed(&mut self, server: usize) {
        let now = self.clock.now();
        if let Some(computed) = self.servers[server].computed(now) {
            self.recorder.computed(now, computed.rows, computed.seconds);
            for ticket in computed.answers {
                self.clock.after(self.settings.latency, Event::Answer(ticket));
            }
        }
        self.compute(server);
    }

    pub fn begin_store(&mut self) {
        let Some(costs) = self.settings.costs.store else {
            return;
        };
        if let Some(request) = self.store.begin() {
            let seconds = match request {
                Request::Append(positions) => positions * costs.append,
                Request::Sample(positions) => positions * costs.sample,
            };
            self.begin(Work::Store, seconds, 1);
        }
    }

    pub fn stored(&mut self) {
        match self.store.done() {
            Some(Request::Append(positions)) => {
                self.recorder.stored(self.clock.now(), positions);
                self.learner.stored(positions);
                self.begin_training();
            }
            Some(Request::Sample(_)) => self.clock.after(self.settings.latency, Event::Batch),
            None => {}
        }
        self.begin_store();
    }

    /// Begins a training step and asks for further batches.
    pub fn begin_training(&mut self) {
        let Some(train) = self.settings.costs.train.filter(|_| self.settings.has_learner()) else {
            return;
        };
        if let Some(samples) = self.learner.begin() {
            self.begin(Work::Train, samples * train, 1);
        }
        while let Some(samples) = self.learner.ask() {
            self.clock
                .after(self.settings.latency, Event::Store(Request::Sample(samples)));
        }
    }

    pub fn stop(&mut self, role: Role, number: usize) {
        match role {
            Role::Actor if number < self.threads.len() => {
                self.threads[number].stop();
                self.abandon(Work::Play(number));
            }
            Role::InferenceServer if number < self.servers.len() => {
                self.servers[number].stop();
                self.abandon(Work::Read(number));
                self.abandon(Work::Compute(number));
                for index in 0..self.threads.len() {
                    if self.threads[index].server == Some(number) {
                        self.retry(index);
                    }
                }
            }
            Role::ReplayStore => {
                self.store.stop();
                self.abandon(Work::Store);
            }
            Role::Learner => {
                self.learner.stop();
                self.abandon(Work::Train);
            }
            _ => {}
        }
    }

    pub fn start(&mut self, role: Role, number: usize) {
        match role {
            Role::Actor if number < self.threads.len() => {
                self.threads[number].start();
                self.connect(number);
                self.play(number);
            }
            Role::InferenceServer if number < self.servers.len() => self.servers[number].is_alive = true,
            Role::ReplayStore => {
                self.store.is_alive = true;
                self.begin_store();
            }
            Role::Learner => {
                self.learner.is_alive = true;
                self.begin_training();
            }
            _ => {}
        }
    }
}
